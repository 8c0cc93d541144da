"""From the ``data`` section to the files that are there, without reading them."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from components.corpus_gen import spans
from components.corpus_gen.paths import check_folder, expand, items_of, root_of
from components.corpus_gen.span_paths import fixed
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

    Attributes:
        split: the split that they are for.
        format: one of ``FORMATS``.
        files: the paths.
        sides: the names of the features that parallel files hold.
        span: the name of their span, or ``FIXED`` for files of every run; None where the corpus
            has no spans.
        test_share: the share of their rows that goes to ``test`` instead: of the newest span's.
        replay: of an older span of which only a sample is trained on, the share of ``train`` that
            all these samples make up; else 0.
    """

    split: str
    format: str
    files: tuple[str, ...]
    sides: tuple[str, ...] = ()
    span: str | None = None
    test_share: float = 0.0
    replay: float = 0.0


def features(data: Mapping[str, Any]) -> list[Feature]:
    """The features of a row, in the order of a table's columns."""
    return [Feature.from_json(content) for content in data["features"]]


def resolve(data: Mapping[str, Any]) -> dict[str, list[Group]]:
    """Finds the files of every split that is given, in an order that is always the same.

    Those of every run come first, then those of the spans, which are chosen here where ``data``
    is not ``spans.settled`` yet.

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
        check_folder(os.path.join(root_of(data), os.path.expanduser(data["images"])), "data.images")
    data = spans.settled(data)
    given = [split for split in SPLITS if data.get(split) is not None]
    find = _of_spans if "spans" in data else _groups
    return {split: find(data, split, data[split]) for split in given}


def _of_spans(data: Mapping[str, Any], split: str, value: Any) -> list[Group]:
    """The files of a split in a corpus that has spans."""
    bare = fixed(value)
    found = [replace(g, span=spans.FIXED) for g in _groups(data, split, bare)] if bare else []
    taken = data["spans"]["taken"]
    for one in taken:
        newest = split == "train" and one is taken[-1]
        share = data["spans"]["test_share"] if newest else 0.0
        replay = data["spans"]["replay"] if one.get("replayed") else 0.0
        try:
            groups = _groups(data, split, one["files"][split]) if split in one["files"] else []
        except UserError as error:
            told = f"span {one['name']}: {error.message}"
            raise UserError(told, error.where, error.remedy) from None
        marks = {"span": one["name"], "test_share": share, "replay": replay}
        found += [replace(group, **marks) for group in groups]
    _refuse_twice(found)
    return found


def _refuse_twice(groups: Sequence[Group]) -> None:
    """A pattern and a glob, or two patterns, may take the same files, by whatever path."""
    seen: set[tuple[str, ...]] = set()
    for group in groups:
        files = tuple(map(os.path.realpath, group.files))
        if files in seen:
            raise UserError(
                f"{group.files[0]} is named twice",
                where=f"data.{group.split}",
                remedy="Let only one of the paths name it.",
            )
        seen.add(files)


def _groups(data: Mapping[str, Any], split: str, value: Any) -> list[Group]:
    key = f"data.{split}"
    wanted = data.get("format")
    if wanted is not None and wanted not in FORMATS:
        raise UserError(
            f"unknown format {wanted!r}", "data.format", f"Choose one of {', '.join(FORMATS)}."
        )
    root = root_of(data)
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


def _paths(root: str, value: Any, key: str) -> list[str]:
    """The files that a path, a glob or a list of these names."""
    items = items_of(value)
    if not items:
        raise UserError("the list of files is empty", where=key, remedy="Name at least one file.")
    return [path for item in items for path in expand(root, item, key)]


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
