"""Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from regard.components.data.arrow_tables import BATCH_ROWS, ArrowTableFormat

if TYPE_CHECKING:
    import pyarrow as pa


class ParquetFormat(ArrowTableFormat):
    """Parquet files, of which only the columns of the features are read."""

    name = "parquet"
    text = "Parquet"
    endings = (".parquet",)

    def open_batches(
        self, path: str, choose: Callable[[pa.Schema], list[str]]
    ) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(BATCH_ROWS, columns=choose(file.schema_arrow))


FORMAT = ParquetFormat()
