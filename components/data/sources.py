"""The corpus of a run, and the files of its splits."""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator, TypeAdapter
from typing_extensions import Self

from regard.components.data.span_patterns import is_pattern, suggest_placeholder
from regard.components.settings.data import SPLITS, DataConfig, Files, Format
from regard.components.settings.tags import TAG_FEATURE
from regard.core.errors import EnvironmentFault, NotFoundError, UserError
from regard.core.features import Feature
from regard.core.files import check_no_special_file, read_json_object
from regard.core.kinds import TEXT, feature_from_json
from regard.core.suggestions import did_you_mean

# The name of the feature that holds a row's span, and its value for files without a placeholder.
SPAN_FEATURE, FIXED = "span", "fixed"


@dataclass(frozen=True)
class Span:
    """A span of a growing corpus that a run uses.

    Attributes:
        number: its number; of a date the days since 1970-01-01.
        name: its number or date.
        version: the version of its files; None if the paths have none.
        files: its files by split, in the form of ``data.train``.
        replayed: whether only a sample of its rows is used, for training.
    """

    number: int
    name: str
    version: int | None
    files: Mapping[str, Files]
    replayed: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return plain data; ``replayed`` is there only if it is true."""
        content = asdict(self)
        content = {"span": content.pop("number"), **content}
        return content if self.replayed else {k: v for k, v in content.items() if k != "replayed"}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Restore a span from ``to_json``; other keys are ignored."""
        replayed = content.get("replayed", False)
        return cls(content["span"], content["name"], content["version"], content["files"], replayed)


_FeatureValue = Annotated[
    Feature,
    PlainValidator(lambda value: value if isinstance(value, Feature) else feature_from_json(value)),
    PlainSerializer(Feature.to_json),
]


@dataclass(frozen=True)
class Corpus:
    """What a run reads.

    Attributes:
        config: the section ``data``, with an absolute ``root``.
        features: the features of a row, in the order of a table's columns.
        spans: the spans that the run uses, oldest first; None until ``resolve_spans`` chose them.
    """

    config: DataConfig
    features: tuple[_FeatureValue, ...]
    spans: tuple[Span, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain data, of the checks only those that change rows."""
        content: dict[str, Any] = TypeAdapter(Corpus).dump_python(self, mode="json")
        content["config"] |= {"checks": self.config.checks.row_changes(), "schema": None}
        return content

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> Corpus:
        """Restore a corpus from ``to_json``."""
        return TypeAdapter(Corpus).validate_json(json.dumps(content))


@dataclass(frozen=True)
class FileGroup:
    """Files that are read together: one for each side of ``parallel``, otherwise a single one.

    Attributes:
        split: the split that they are for.
        format: their format.
        files: the paths.
        sides: the names of the features that parallel files hold.
        tag: the tag of all their rows; None if rows have no tags, or a column has them.
        span: the name of their span, ``FIXED`` for files without a placeholder; None for a corpus
            without spans.
        test_share: the additional share of their rows for ``test``; only of the newest span.
        replay: the share of ``train`` that all replayed rows make up; 0 unless the span is
            replayed.
    """

    split: str
    format: Format
    files: tuple[str, ...]
    sides: tuple[str, ...] = ()
    tag: str | None = None
    span: str | None = None
    test_share: float = 0.0
    replay: float = 0.0

    @property
    def name(self) -> str:
        """The base name of the first file, with the tag: several groups may share the file."""
        name = os.path.basename(self.files[0])
        return f"{name} <{self.tag}>" if self.tag else name


def extra_features(data: DataConfig, links: str | None = None) -> tuple[Feature, ...]:
    """Return the features after those of the task: ``data.extra``, and the tag of files.

    Args:
        data: the section ``data``.
        links: the column with word alignments, if there is one.
    """
    has_tag = data.tags is None or data.tags.column is not None
    names = data.extra if has_tag else (*data.extra, TAG_FEATURE)
    tags = {data.tag_feature: data.tag_names}
    return tuple(Feature(x, TEXT, "extra", links=x == links, tags=tags.get(x, ())) for x in names)


def find_files(corpus: Corpus) -> dict[str, list[FileGroup]]:
    """Return the files of each split in a reproducible order: those without a span come first.

    Args:
        corpus: the corpus with its spans resolved.

    Raises:
        UserError: a file or the folder of the images is missing, sides have different numbers of
            files, or a file is named twice.
    """
    if corpus.spans is None:
        raise ValueError("resolve_spans must choose the spans first")
    config = corpus.config
    if config.images:
        check_root(config.root, config.images)
        _check_folder(os.path.join(config.root, os.path.expanduser(config.images)), "data.images")
    return {
        split: _groups_of_split(corpus, split, files)
        for split, files in config.files_by_split().items()
    }


def _groups_of_split(corpus: Corpus, split: str, files: Files) -> list[FileGroup]:
    if not corpus.spans:
        return _groups(corpus, split, files)
    rules = corpus.config.spans
    fixed = without_patterns(files)
    groups = [replace(g, span=FIXED) for g in _groups(corpus, split, fixed)] if fixed else []
    for span in corpus.spans:
        is_newest = split == "train" and span is corpus.spans[-1]
        try:
            in_span = _groups(corpus, split, span.files[split]) if split in span.files else []
        except UserError as error:
            message = f"Span {span.name}: {error.message}"
            raise error.with_texts(message, error.where, error.remedy) from None
        test_share = rules.test_share if is_newest else 0.0
        replay = rules.replay if span.replayed else 0.0
        groups += [
            replace(group, span=span.name, test_share=test_share, replay=replay)
            for group in in_span
        ]
    _check_unique(groups)
    return groups


def without_patterns(files: Files) -> Files | None:
    """Return the files without a placeholder, in the same form; None if there are none."""
    if isinstance(files, dict):
        sides = {side: without_patterns(paths) for side, paths in files.items()}
        present = {side: paths for side, paths in sides.items() if paths}
        return present or None  # type: ignore[return-value]
    return [path for path in path_list(files) if not is_pattern(path)] or None


def path_list(paths: str | Sequence[str]) -> list[str]:
    """Return a path or several paths as a list."""
    return [paths] if isinstance(paths, str) else list(paths)


def _check_unique(groups: Sequence[FileGroup]) -> None:
    """Refuse files that several patterns match, whatever path they are named by."""
    known: set[tuple[str, ...]] = set()
    for group in groups:
        files = tuple(map(os.path.realpath, group.files))
        if files in known:
            message = f"{group.files[0]} is named twice"
            remedy = "Let only one of the paths match it."
            raise UserError(message, where=f"data.{group.split}", remedy=remedy)
        known.add(files)


def _groups(corpus: Corpus, split: str, files: Files) -> list[FileGroup]:
    config, key = corpus.config, f"data.{split}"
    kind = config.format_of(files)
    if kind is None:
        raise UserError("The file names do not show one format", key, "Set `data.format`.")
    if isinstance(files, dict):
        sides = tuple(feature.name for feature in corpus.features if files.get(feature.name))
        paths = [expand_all(config.root, files[side], f"{key}.{side}") for side in sides]
        _check_counts(dict(zip(sides, map(len, paths), strict=True)), key)
        rows, first = list(zip(*paths, strict=True)), path_list(files[sides[0]])
    else:
        sides, first = (), path_list(files)
        rows = [(path,) for path in expand_all(config.root, files, key)]
    pairs = zip(first, getattr(config.tags, split, ()) or [None] * len(first), strict=True)
    tags = [tag for path, tag in pairs for _ in _expand(config.root, path, key)]
    return [FileGroup(split, kind, row, sides, tag) for row, tag in zip(rows, tags, strict=True)]


def _check_counts(counts: Mapping[str, int], key: str) -> None:
    if len(set(counts.values())) > 1:
        numbers = ", ".join(f"{side} {count}" for side, count in counts.items())
        message = f"The sides have different numbers of files: {numbers}"
        raise UserError(message, where=key, remedy="List the files of all sides in the same order.")


def expand_all(root: str, paths: str | Sequence[str], key: str) -> list[str]:
    """Return the files of paths and globs below a folder, those of each sorted.

    Args:
        root: the folder.
        paths: relative to the folder, or absolute.
        key: the key of the configuration, for errors.

    Raises:
        UserError: there is no file, or one cannot be read.
    """
    return [path for item in path_list(paths) for path in _expand(root, item, key)]


def _expand(root: str, item: str, key: str) -> list[str]:
    """Return the files that a path or a glob matches, sorted.

    Raises:
        UserError: no file matches, or one of them is a folder or cannot be read.
    """
    path = os.path.join(root, os.path.expanduser(item))
    matches = _saved_files(path) if os.path.isdir(path) else [path]
    if not os.path.exists(path):
        check_root(root, item)
        _check_link(path, key)
        if not glob.has_magic(item):
            remedy = suggest_placeholder(item) or suggest_path(path)
            raise NotFoundError(f"No such file: {path}", where=key, remedy=remedy)
        # Glob characters in the root have no meaning.
        pattern = os.path.join(glob.escape(root), os.path.expanduser(item))
        matches = sorted(p for p in glob.glob(pattern, recursive=True) if not os.path.isdir(p))
        if not matches:
            raise NotFoundError(
                f"No file matches {path}", where=key, remedy=_suggest_pattern(root, item)
            )
    for match in matches:
        _check_readable(match, key)
    return matches


def _suggest_pattern(root: str, item: str) -> str:
    """Return a hint about a pattern that matches no file."""
    path = os.path.join(root, item)
    folder, name = os.path.split(item)
    if glob.has_magic(folder) and os.path.isdir(os.path.dirname(path)):
        escaped = os.path.join(glob.escape(folder), name)
        return f"The characters *, ? and [ of a folder stand in brackets: `{escaped}`."
    return suggest_path(path)


def _saved_files(folder: str) -> list[str]:
    """Return the files of a folder that Hugging Face Datasets saved; of another one the folder."""
    files = read_json_object(os.path.join(folder, "state.json")).get("_data_files")
    entries = files if isinstance(files, list) else []
    names = [
        os.path.basename(str(entry.get("filename"))) for entry in entries if isinstance(entry, dict)
    ]
    return [os.path.join(folder, name) for name in names] or [folder]


def _check_readable(path: str, key: str) -> None:
    """Refuse a path that is not a file that can be read."""
    _check_link(path, key)
    if os.path.isdir(path):
        remedy = "Name its files, for example `folder/*.tsv`, or a split in it."
        raise UserError(f"{path} is a folder", where=key, remedy=remedy)
    try:
        check_no_special_file(path)
    except OSError as error:
        remedy = "Copy its content to a file, and name that."
        raise UserError(f"{path} cannot be used: {error.strerror}", key, remedy) from None
    if not os.access(path, os.R_OK):
        message = f"Permission to read {path} is denied"
        raise EnvironmentFault(message, key, "Change its permissions with `chmod u+r`.")


def _check_link(path: str, key: str) -> None:
    """Refuse a symbolic link that leads to nothing."""
    if os.path.islink(path) and not os.path.exists(path):
        message = f"{path} is a symbolic link to {os.readlink(path)}, which does not exist"
        raise NotFoundError(message, key, "Copy the file to that place, or correct the link.")


def check_root(root: str, path: str) -> None:
    """Check the folder that a path is relative to.

    Raises:
        UserError: There is no such folder.
    """
    if not os.path.isabs(os.path.expanduser(path)):
        _check_folder(root, "data.root")


def _check_folder(path: str, key: str) -> None:
    if os.path.isdir(path):
        return
    _check_link(path, key)
    message = f"{path} is not a folder" if os.path.exists(path) else f"no such folder: {path}"
    raise NotFoundError(message, where=key, remedy=suggest_path(path))


def suggest_path(path: str) -> str:
    """Return a hint about a missing path: a variable, similar names, or the missing folder."""
    folder, name = os.path.split(path)
    folder = folder or "."
    missing = path
    while missing and not os.path.isdir(os.path.dirname(missing) or "."):
        missing = os.path.dirname(missing)
    # A folder that exists may have a dollar sign in its name.
    if variable := re.search(r"\$([A-Za-z_]\w*)", path[len(os.path.dirname(missing)) :]):
        return f"Write ${{{variable[1]}}} for the environment variable {variable[1]}."
    if not os.path.isdir(folder):
        return f"The folder {missing} does not exist. Check `data.root`."
    names = sorted(os.listdir(folder))
    if hint := did_you_mean(name, names, 3):
        return hint.rstrip()
    if not names:
        return f"The folder {folder} is empty."
    listed = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    return f"The folder {folder} contains {listed}."


def in_split_order(rows: Mapping[str, int]) -> dict[str, int]:
    """Return numbers of rows in the order train, eval, test."""
    return {split: rows[split] for split in SPLITS if split in rows}
