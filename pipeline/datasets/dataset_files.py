"""What all generators and downloads share: split sizes and files."""

import gzip
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from regard.core.errors import UserError
from regard.core.files import atomic_write, read_json_object

Progress = Callable[[str, float], None]
"""Called with a text and the fraction that is done, from 0 to 1."""

_PROGRESS_ROWS = 1000  # between two reports


def split_rows(rows: int, fractions: Mapping[str, float], min_rows: int = 20) -> dict[str, int]:
    """Return the number of rows of each split: its fraction, and the rest for ``train``.

    Raises:
        UserError: there are fewer rows than ``min_rows``.
    """
    if rows < min_rows:
        raise UserError(f"{rows} rows are too few.", "--rows", f"Use {min_rows} or more.")
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
    folders: Iterable[str] = (),
    **facts: object,
) -> dict[str, int]:
    """Generate the files of a data set, then write ``NAME.json``, and each file atomically.

    Args:
        name: the data set.
        directory: created if missing; files of an earlier data set of this name are replaced.
        seed: the seed that the data is generated with.
        rows: the number of rows of each split.
        files: the lines of each file by its name, generated in this order; files that end in
            ``.gz`` are compressed without a date, so equal lines give equal bytes.
        progress: receives the fraction of the lines of compressed files that is done.
        level: the level of compression.
        folders: folders of further files, which `prepare_folder` was called with.
        facts: what else the JSON file contains.

    Returns:
        ``rows``.

    Raises:
        UserError: a file exists, and is not one of an earlier data set.
    """
    content: dict[str, bytes] = {}
    count = 0
    total = sum(rows.values())
    for file, lines in files.items():
        parts = []
        for line in lines:
            parts.append(f"{line}\n")
            count += 1
            if progress and file.endswith(".gz") and count % _PROGRESS_ROWS == 0:
                progress(f"{count:,} of {total:,} rows", count / total)
        data = "".join(parts).encode("utf-8")
        content[file] = gzip.compress(data, level, mtime=0) if file.endswith(".gz") else data
    names = [*content, *folders]
    prepare_folder(name, directory, names)
    record = {"name": name, "seed": seed, "rows": rows, **facts, "files": names}
    _write_record(directory, record)
    for file, data in content.items():
        atomic_write(directory / file, data)
    return dict(rows)


def prepare_folder(name: str, directory: Path, files: Sequence[str]) -> None:
    """Create the folder of a data set, and record its files before the first of them is written.

    Args:
        name: the data set.
        directory: created if missing.
        files: the names of the files; one that ends in ``/`` is a folder of files.

    Raises:
        UserError: one of them exists, and is not part of a data set that was generated here.
    """
    directory.mkdir(parents=True, exist_ok=True)
    generated: set[str] = set()
    for path in directory.glob("*.json"):
        record = read_json_object(path)
        if record.get("name") == path.stem:
            generated.add(path.name)
            # Earlier versions listed no files.
            listed = record.get("files", files if path.stem == name else [])
            generated.update(listed if isinstance(listed, list) else [])
    for file in (f"{name}.json", *files):
        if file not in generated and os.path.lexists(directory / file):
            message = "The file exists, and is not part of an earlier generated data set."
            remedy = "Choose another folder with --out."
            raise UserError(message, str(directory / file), remedy)
    _write_record(directory, {"name": name, "files": list(files)})


def _write_record(directory: Path, record: Mapping[str, object]) -> None:
    content = json.dumps(record, indent=2) + "\n"
    atomic_write(directory / f"{record['name']}.json", content.encode("utf-8"))
