"""What all generators and downloads share: split sizes and files."""

import gzip
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from regard.components.common import owned_folders
from regard.components.common.errors import UserError
from regard.components.common.files import atomic_write, read_json_object

Progress = Callable[[str, float], None]
"""Called with a text and the fraction that is done, from 0 to 1."""

_PROGRESS_ROWS = 1000  # between two reports


def split_rows(rows: int, fractions: Mapping[str, float], min_rows: int = 20) -> dict[str, int]:
    """Return the number of rows of each split: its fraction, and the rest for ``train``.

    Raises:
        UserError: there are fewer rows than ``min_rows``.
    """
    if rows < min_rows:
        raise UserError(f"{rows} rows are too few.", remedy=f"Use {min_rows} or more.")
    counts = {split: int(rows * share) for split, share in fractions.items()}
    return {"train": rows - sum(counts.values()), **counts}


def write_dataset(
    name: str,
    directory: Path,
    seed: int,
    rows: Mapping[str, int],
    files: Mapping[str, Iterable[str]],
    progress: Progress | None = None,
    level: int = 9,
    **facts: object,
) -> dict[str, int]:
    """Generate the files of a data set, then write each atomically, and ``NAME.json``.

    Args:
        name: the data set.
        directory: created if missing; files of an earlier data set of this name are replaced.
        seed: the seed that the data is generated with.
        rows: the number of rows of each split.
        files: the lines of each file by its name, generated in this order; files that end in
            ``.gz`` are compressed without a date, so equal lines give equal bytes.
        progress: receives the fraction of the lines of compressed files that is done.
        level: the level of compression.
        facts: what else the JSON file contains.

    Returns:
        ``rows``.

    Raises:
        UserError: a file exists, and is not one of an earlier data set.
    """
    may_replace = prepare_folder(name, directory)
    content: dict[str, bytes] = {}
    count, total = 0, sum(rows.values())
    for file, lines in files.items():
        parts = []
        for line in lines:
            parts.append(f"{line}\n")
            count += 1
            if progress and file.endswith(".gz") and count % _PROGRESS_ROWS == 0:
                progress(f"{count:,} of {total:,} rows", count / total)
        data = "".join(parts).encode("utf-8")
        content[file] = gzip.compress(data, level, mtime=0) if file.endswith(".gz") else data
    record = {"name": name, "seed": seed, "rows": rows, **facts}
    content[f"{name}.json"] = (json.dumps(record, indent=2) + "\n").encode("utf-8")
    for file in content:
        _check_replaceable(directory / file, may_replace)
    for file, data in content.items():
        write_file(directory / file, data, may_replace)
    return dict(rows)


def prepare_folder(name: str, directory: Path) -> bool:
    """Create the folder of a data set; return whether files in it may be replaced.

    They may if the folder was created for a data set, or contains the record of an earlier one.
    """
    is_owned = owned_folders.create(directory, owned_folders.DATA_SET)
    return is_owned or read_json_object(directory / f"{name}.json").get("name") == name


def write_file(path: Path, content: bytes, may_replace: bool) -> None:
    """Write a file of a data set atomically.

    Raises:
        UserError: it exists and may not be replaced.
    """
    _check_replaceable(path, may_replace)
    atomic_write(path, content)


def _check_replaceable(path: Path, may_replace: bool) -> None:
    if not may_replace and os.path.lexists(path):
        message = "The file exists, and is not part of an earlier generated data set."
        raise UserError(message, str(path), "Choose another folder with --out.")
