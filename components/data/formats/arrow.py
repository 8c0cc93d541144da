"""Arrow files, among them those of folders that Hugging Face Datasets saved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from regard.components.data.arrow_tables import BATCH_ROWS, ArrowTableFormat

if TYPE_CHECKING:
    import pyarrow as pa


class ArrowFormat(ArrowTableFormat):
    """Arrow files, and streams as Hugging Face Datasets writes them."""

    name = "arrow"
    text = "Arrow"
    endings = (".arrow", "")

    def open_batches(
        self, path: str, choose: Callable[[pa.Schema], list[str]]
    ) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        with pa.OSFile(path) as source:
            is_file = source.read(6) == b"ARROW1"  # otherwise a stream
            source.seek(0)
            reader = pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)
            choose(reader.schema)
            numbers = range(reader.num_record_batches) if is_file else ()
            for batch in map(reader.get_batch, numbers) if is_file else reader:
                batch.validate(full=True)
                for start in range(0, len(batch), BATCH_ROWS):
                    yield batch.slice(start, BATCH_ROWS)


FORMAT = ArrowFormat()
