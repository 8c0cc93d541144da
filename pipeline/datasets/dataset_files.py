"""What all generators and downloads share: split sizes and files."""

import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from regard.components.common.errors import UserError
from regard.components.common.files import atomic_write

Progress = Callable[[str, float], None]
"""Called with a text and the fraction that is done, from 0 to 1."""


@dataclass(frozen=True)
class Dataset:
    """A data set on disk.

    Attributes:
        name: the data set.
        directory: the folder of its files.
        files: all its files, in a fixed order.
        rows: the number of rows of each split.
        files_written: how many files were written; the others existed and were correct.
    """

    name: str
    directory: Path
    files: tuple[Path, ...]
    rows: dict[str, int]
    files_written: int


def split_rows(rows: int, fractions: Mapping[str, float], min_rows: int = 20) -> dict[str, int]:
    """Return the number of rows of each split: its fraction, and the rest for ``train``.

    Raises:
        UserError: there are fewer rows than ``min_rows``.
    """
    if rows < min_rows:
        raise UserError(f"{rows} rows are too few.", remedy=f"Use {min_rows} or more.")
    counts = {split: int(rows * share) for split, share in fractions.items()}
    return {"train": rows - sum(counts.values()), **counts}


def gzip_text(text: str, level: int = 9) -> bytes:
    """Compress a text; the result has no date, so equal texts give equal bytes."""
    return gzip.compress(text.encode("utf-8"), level, mtime=0)


def write_dataset(
    name: str,
    directory: Path,
    seed: int,
    content: Mapping[str, bytes | str],
    rows: Mapping[str, int],
    **facts: object,
) -> Dataset:
    """Write the files of a generated data set, each atomically, and ``NAME.json``.

    Args:
        name: the data set.
        directory: created if missing; existing files are replaced.
        seed: the seed that the data was generated with.
        content: the content of each file by its name.
        rows: the number of rows of each split.
        facts: what else the JSON file contains.
    """
    record = {"name": name, "seed": seed, "rows": rows, **facts}
    content = {**content, f"{name}.json": json.dumps(record, indent=2) + "\n"}
    for file, data in content.items():
        atomic_write(directory / file, data)
    files = tuple(directory / file for file in content)
    return Dataset(name, directory, files, dict(rows), files_written=len(files))
