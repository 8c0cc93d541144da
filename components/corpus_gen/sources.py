"""From the ``data`` section to the files that are there, without reading them."""

from __future__ import annotations

import difflib
import glob
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from components.errors import UserError
from models.tasks.features import Feature

SPLITS = ("train", "eval", "test")
FORMATS = ("parallel", "tsv", "jsonl", "parquet")
# What a file's name tells of its format; with .gz behind it, too.
SUFFIXES = {
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}


@dataclass(frozen=True)
class Group:
    """Files that are read together: one a side for ``parallel``, otherwise a single one.

    ``sides`` are the names of the features that parallel files hold.
    """

    split: str
    format: str
    files: tuple[str, ...]
    sides: tuple[str, ...] = ()


def features(data: Mapping[str, Any]) -> list[Feature]:
    """The features of a row, in the order of a table's columns."""
    return [Feature.from_json(content) for content in data["features"]]


def resolve(data: Mapping[str, Any]) -> dict[str, list[Group]]:
    """Finds the files of every split that is given, in an order that is always the same.

    Raises:
        UserError: a file or a side is missing, a pattern finds nothing, sides have different
            numbers of files, or a format cannot be told; there is no folder of images.
    """
    if data.get("train") is None:
        raise UserError(
            "no training files are given",
            where="data.train",
            remedy="Name them, such as `train: train.tsv.gz`.",
        )
    if data.get("images"):
        _check_folder(os.path.join(_root(data), os.path.expanduser(data["images"])))
    return {
        split: _groups(data, split, data[split]) for split in SPLITS if data.get(split) is not None
    }


def _groups(data: Mapping[str, Any], split: str, value: Any) -> list[Group]:
    key = f"data.{split}"
    wanted = data.get("format")
    if wanted is not None and wanted not in FORMATS:
        raise UserError(
            f"unknown format {wanted!r}", "data.format", f"Choose one of {', '.join(FORMATS)}."
        )
    root = _root(data)
    if isinstance(value, Mapping):
        if wanted not in (None, "parallel"):
            raise UserError(
                f"names one file for each side, but the format is {wanted}",
                where=key,
                remedy=f"Give the {wanted} files as a path or a list, or set `format: parallel`.",
            )
        return _parallel(root, split, value, features(data))
    if wanted == "parallel":
        sides = ", ".join(f"{feature.name}: ..." for feature in features(data))
        raise UserError(
            "parallel files need a path for each side", key, f"Write `{split}: {{{sides}}}`."
        )
    paths = _paths(root, value, key)
    return [Group(split, wanted or _format(path, key), (path,)) for path in paths]


def _parallel(
    root: str, split: str, value: Mapping[str, Any], wanted: list[Feature]
) -> list[Group]:
    key = f"data.{split}"
    names = [feature.name for feature in wanted]
    for name in value:
        if name not in names:
            near = difflib.get_close_matches(str(name), names, 1)
            hint = f"Did you mean `{near[0]}`?" if near else f"The sides are {', '.join(names)}."
            raise UserError(f"unknown side {name!r}", f"{key}.{name}", hint)
    for feature in wanted:
        if not value.get(feature.name) and not feature.optional:
            needed = " and ".join(f.name for f in wanted if not f.optional)
            raise UserError(
                f"the {feature.name} side is missing: parallel files need {needed}",
                where=f"{key}.{feature.name}",
                remedy=f"Add `{feature.name}: FILE` below `{split}`.",
            )
    sides = tuple(name for name in names if value.get(name))
    columns = {side: _paths(root, value[side], f"{key}.{side}") for side in sides}
    counts = {side: len(paths) for side, paths in columns.items()}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{count} for {side}" for side, count in counts.items())
        raise UserError(
            f"the sides have different numbers of files: {told}",
            where=key,
            remedy="List the files of all sides in the same order.",
        )
    return [Group(split, "parallel", files, sides) for files in zip(*columns.values(), strict=True)]


def _root(data: Mapping[str, Any]) -> str:
    return data.get("root") or "."


def _check_folder(path: str) -> None:
    if os.path.isdir(path):
        return
    told = f"{path} is no folder" if os.path.exists(path) else f"no such folder: {path}"
    raise UserError(told, where="data.images", remedy=_listing(path))


def _paths(root: str, value: Any, key: str) -> list[str]:
    """The files that a path, a pattern or a list of these names."""
    items = list(value) if isinstance(value, list | tuple) else [value]
    if not items:
        raise UserError("the list of files is empty", where=key, remedy="Name at least one file.")
    return [path for item in items for path in _expand(root, str(item), key)]


def _expand(root: str, item: str, key: str) -> list[str]:
    path = os.path.join(root, os.path.expanduser(item))
    if os.path.exists(path):
        _check(path, key)
        return [path]
    if glob.has_magic(item):
        # The root is a folder's name, not a pattern, whatever signs are in it.
        pattern = os.path.join(glob.escape(root), os.path.expanduser(item))
        matches = sorted(p for p in glob.glob(pattern, recursive=True) if os.path.isfile(p))
        if not matches:
            raise UserError(f"no file matches {path}", where=key, remedy=_listing(path))
        for match in matches:
            _check(match, key)
        return matches
    raise UserError(f"no such file: {path}", where=key, remedy=_listing(path))


def _check(path: str, key: str) -> None:
    if os.path.isdir(path):
        raise UserError(
            f"{path} is a folder", where=key, remedy="Name its files, such as `folder/*.tsv`."
        )
    if not os.access(path, os.R_OK):
        raise UserError(
            f"{path} may not be read", where=key, remedy="Give yourself the right: `chmod u+r`."
        )


def _listing(path: str) -> str:
    """What the user may have meant: near names, or the folder that is not there."""
    folder, name = os.path.split(path)
    folder = folder or "."
    if not os.path.isdir(folder):
        while folder and not os.path.isdir(os.path.dirname(folder) or "."):
            folder = os.path.dirname(folder)
        return f"There is no folder {folder}: check `data.root`."
    names = sorted(os.listdir(folder))
    near = difflib.get_close_matches(name, names, 3, 0.6)
    if near:
        return f"Did you mean {' or '.join(near)}?"
    if not names:
        return f"The folder {folder} is empty."
    shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    return f"The folder {folder} has: {shown}."


def _format(path: str, key: str) -> str:
    stem, suffix = os.path.splitext(path.lower())
    if suffix == ".gz":
        suffix = os.path.splitext(stem)[1]
        if suffix == ".parquet":
            raise UserError(
                f"{path}: Parquet inside gzip cannot be read",
                where=key,
                remedy="Unpack it (Parquet is compressed inside): `gunzip`.",
            )
    if suffix not in SUFFIXES:
        raise UserError(
            f"the name {os.path.basename(path)} does not tell its format",
            where=key,
            remedy="Set `data.format` to tsv, jsonl or parquet, or give parallel files as a path "
            "for each side.",
        )
    return SUFFIXES[suffix]
