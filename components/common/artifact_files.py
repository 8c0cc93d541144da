"""The files of artifacts: shards of examples, JSON files, and files behind a URI."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import BaseModel, ConfigDict
from typing_extensions import Self

from regard.core.errors import DataError
from regard.core.files import temporary_name, write_json

if TYPE_CHECKING:
    from tfx.types.artifact import Artifact

_SHARD = re.compile(r"(.+)-\d{5}-of-(\d{5})(.*)")
# What TFX calls the format of tf.Examples, and of compressed files of records.
_PAYLOAD_FORMAT = "FORMAT_TF_EXAMPLE"
_FILE_FORMATS = ("tfrecords_gzip", "FORMAT_TFRECORDS_GZIP")
# The property of examples that holds the rows of each split as JSON.
ROWS = "rows"
SHARD_REMEDY = "Restore the folder, or make it again with `regard run --from CorpusGen`."


class JsonFile(BaseModel):
    """The content of a JSON file with a fixed name in an artifact."""

    model_config = ConfigDict(frozen=True)

    FILE: ClassVar[str]

    def write(self, folder: Path) -> None:
        """Write the file atomically."""
        write_json(folder / self.FILE, self.model_dump())

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """Read the file; return None if it is missing or not valid."""
        try:
            return cls.model_validate_json((folder / cls.FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None


def examples_split(examples: Artifact, split: str) -> str:
    """Return the folder of a split of an Examples artifact, of CorpusGen or of an ExampleGen.

    Raises:
        UserError: there is no such split, or its files are not compressed files of tf.Examples.
    """
    from tfx.components.util import examples_utils
    from tfx.types import artifact_utils

    splits = artifact_utils.decode_split_names(examples.split_names)
    if split not in splits:
        message = f"The examples have no split {split!r} (available: {', '.join(splits)})."
        remedy = "Set `data.{train,eval,test}` or `data.split`, or name another split."
        raise DataError(message, examples.uri, remedy)
    payload = examples_utils.get_payload_format_string(examples)
    files = examples_utils.get_file_format(examples)
    if payload != _PAYLOAD_FORMAT or files not in _FILE_FORMATS:
        message = f"The examples have the payload format {payload} in files of {files}."
        remedy = (
            f"Regard reads {_PAYLOAD_FORMAT} in {_FILE_FORMATS[0]}, the default of ExampleGens."
        )
        raise DataError(message, examples.uri, remedy)
    return artifact_utils.get_split_uri([examples], split)


def split_shards(folder: str) -> list[str]:
    """Return the files of a split of examples in their order, without hidden files.

    The names say how many there are. One that the folder does not list, which may be a stale cache
    of NFS, is looked up by its name.

    Raises:
        UserError: one is missing, or there are others.
    """
    from tfx.dsl.io import fileio

    try:
        names = {name for name in fileio.listdir(folder) if not name.startswith((".", "_"))}
    except fileio.NotFoundError:
        names = set()
    match = _SHARD.fullmatch(min(names, default=""))
    if match is None:
        raise DataError("There are no shards of examples.", folder, SHARD_REMEDY)
    start, count, end = match[1], int(match[2]), match[3]
    paths = [os.path.join(folder, f"{start}-{i:05d}-of-{count:05d}{end}") for i in range(count)]
    for path in paths:
        name = os.path.basename(path)
        if name not in names and not fileio.exists(path):
            raise DataError(f"{name} is missing.", folder, SHARD_REMEDY)
    if others := names - {os.path.basename(path) for path in paths}:
        raise DataError(f"{min(others)} is not one of {count} shards.", folder, SHARD_REMEDY)
    return paths


def shards_of(patterns: Iterable[str]) -> list[str]:
    """Return the shards of the splits that TFX names by patterns such as ``Split-train/*``."""
    return [path for pattern in patterns for path in split_shards(os.path.dirname(pattern))]


def write_uri(uri: str, content: bytes | str) -> None:
    """Write a file atomically to any file system that TFX supports.

    A runner may make two attempts at once: each has its own temporary name.

    Args:
        uri: the file, local or for example ``gs://bucket/path``.
        content: the whole content.
    """
    from tfx.dsl.io import fileio

    fileio.makedirs(os.path.dirname(uri))
    temporary = os.path.join(os.path.dirname(uri), temporary_name(os.path.basename(uri)))
    try:
        with fileio.open(temporary, "w" if isinstance(content, str) else "wb") as file:
            file.write(content)
        fileio.rename(temporary, uri, overwrite=True)
    finally:
        if fileio.exists(temporary):
            fileio.remove(temporary)
