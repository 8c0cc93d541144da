"""The files of a split, their formats by name, and their encodings."""

from __future__ import annotations

import codecs
import encodings.aliases
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import PydanticCustomError

from regard.models.suggestions import did_you_mean

Format = Literal["parallel", "tsv", "csv", "jsonl", "parquet", "arrow", "tmx"]
# The formats that file names give; ``.gz`` may follow. A name without a suffix is a folder.
FORMATS: dict[str, Format] = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
FORMATS |= {".parquet": "parquet", ".arrow": "arrow", "": "arrow", ".tmx": "tmx"}
# Codecs of Python that are not encodings of files.
_NO_ENCODINGS = ("idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape")


def _name_files(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """Replace the errors of all forms of a value by one."""
    try:
        return handler(value)
    except ValidationError:
        raise PydanticCustomError(
            "files",
            "a path, a list of paths, or a path for each side such as "
            "{source: train.en, target: train.de} is expected",
        ) from None


_Path = Annotated[str, Field(pattern=r"\S")]
_Paths = _Path | Annotated[list[_Path], Field(min_length=1)]
Files = Annotated[
    _Paths | Annotated[dict[str, _Paths], Field(min_length=1)], WrapValidator(_name_files)
]


def paths_in(files: Files) -> Iterator[str]:
    """Yield the paths of a value of ``train``, ``eval`` or ``test``, one side after another."""
    for value in files.values() if isinstance(files, dict) else [files]:
        yield from [value] if isinstance(value, str) else value


def add_suffix(path: str, suffix: int | str) -> str:
    """Return the path of a language: ``corpus.gz`` becomes ``corpus.en.gz``."""
    stem = path.removesuffix(".gz")
    return f"{stem}.{suffix}{path[len(stem) :]}"


def _check_encoding(name: str) -> str:
    try:
        "a".encode(name)
        if codecs.lookup(name).name not in _NO_ENCODINGS:
            return name
    except (LookupError, ValueError):
        pass
    hint = did_you_mean(name, {*encodings.aliases.aliases, *encodings.aliases.aliases.values()})
    message = f"unknown encoding {name!r}. {hint}Examples: latin-1, cp1252, utf-16, gb18030"
    raise PydanticCustomError("encoding", "{message}", {"message": message})


Encoding = Annotated[str, AfterValidator(_check_encoding)]
