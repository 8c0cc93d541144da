"""The formats of data files. Each is one class in a module of its own, and one name in this table.

The section ``data``, its rules, its documentation and the reader of rows take everything that they
know about a format from its class. A module is imported when its format is used first: it reads
files as the section ``data`` says, and that section depends on the names of the formats.
"""

import functools
from pkgutil import resolve_name

from regard.components.data.formats.description import FILE_KEYS, FormatDescription

# In the order in which the documentation lists them.
NAMES = ("parallel", "tsv", "csv", "jsonl", "parquet", "arrow", "tmx", "squad")
# The text adds the modules to digests of the code that uses the table.
_MODULES = "regard.components.data.formats.*"

__all__ = ["FILE_KEYS", "NAMES", "FormatDescription"]


@functools.cache
def get_format(name: str) -> FormatDescription:
    """Return a format by its name: the object ``FORMAT`` of its module."""
    data_format: FormatDescription = resolve_name(f"{_MODULES.removesuffix('*')}{name}:FORMAT")
    return data_format


def all_formats() -> list[FormatDescription]:
    """Return all formats."""
    return [get_format(name) for name in NAMES]


def format_of_ending(ending: str) -> str | None:
    """Return the name of the format of files with an ending such as ``.tsv``; None if unknown."""
    for data_format in all_formats():
        if ending in data_format.endings:
            return data_format.name
    return None


def parallel_format() -> str:
    """Return the name of the format whose files hold one side each."""
    return next(data_format.name for data_format in all_formats() if data_format.is_parallel)


def describe_formats() -> str:
    """Return all formats with the endings of their files, for the reference."""
    texts = []
    for data_format in all_formats():
        endings = ", ".join(filter(None, data_format.endings))
        text = f"{data_format.text}, {endings}" if endings else data_format.text
        texts.append(f"{data_format.name} ({text})")
    return "; ".join(texts)


def describe_key(key: str) -> str:
    """Return the formats that use a key, and its meaning in each of them, for the reference."""
    names_by_meaning: dict[str, list[str]] = {}
    for data_format in all_formats():
        if key in data_format.keys:
            names_by_meaning.setdefault(data_format.keys[key], []).append(data_format.name)
    texts = [
        f"{', '.join(names)} ({meaning})" if meaning else ", ".join(names)
        for meaning, names in names_by_meaning.items()
    ]
    return "; ".join(texts)


def formats_with(key: str) -> list[str]:
    """Return the names of the formats that use a key."""
    return [data_format.name for data_format in all_formats() if key in data_format.keys]
