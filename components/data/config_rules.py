"""The rules of the section ``data`` that its types cannot express.

``regard validate`` and every command that reads a configuration report each broken rule with its
line. CorpusGen checks the same rules, because parameters of a run can change the section.
"""

import contextlib
import encodings
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from encodings.aliases import aliases

from regard.components.checks.language import known_languages
from regard.components.data import formats
from regard.components.data.file_kinds import conversion, kind_of_name
from regard.components.data.reserved_names import reserved_names
from regard.components.data.sources import SPAN_FEATURE, Corpus, path_list
from regard.components.data.span_rules import validate_spans
from regard.components.data.split_assignment import can_decide_split
from regard.components.settings.data import (
    SPLITS,
    DataConfig,
    Files,
    paths_in,
)
from regard.components.settings.tags import TagsConfig
from regard.core.errors import UserError
from regard.core.features import Feature
from regard.core.formatting import truncate
from regard.core.suggestions import did_you_mean, suggest
from regard.models.settings.base import KeyPath, Problem


def check_config(corpus: Corpus) -> None:
    """Raise a ``UserError`` for the first broken rule."""
    for problem in validate_data(corpus.config, corpus.features):
        raise UserError(problem.message, where=".".join(map(str, problem.path)))


def validate_data(data: DataConfig, features: Sequence[Feature]) -> Iterator[Problem]:
    """Yield every broken rule with the key that should change.

    Args:
        data: the section.
        features: the features of a row, those of ``data.extra`` included.
    """
    yield from _validate_splits(data, features)
    yield from _validate_features(data, features)
    if data.tags is not None:
        yield from _validate_tags(data, data.tags)
        features = [feature for feature in features if data.tags.column or not feature.tags]
    for split, files in data.files_by_split().items():
        yield from _validate_format(data, ("data", split), files, features)
    yield from _validate_keys(data)
    if data.encoding and (message := _encoding_error(data.encoding)):
        yield Problem(("data", "encoding"), message)
    yield from _validate_languages(data, features)
    yield from validate_spans(data)
    if data.columns is not None:
        yield from _validate_columns(data, data.columns, features)


def _encoding_error(name: str) -> str | None:
    known = {*aliases, *aliases.values()}
    with contextlib.suppress(LookupError, ValueError):  # of codecs that are not encodings of text
        if encodings.normalize_encoding(name).lower() in known and "a".encode(name):
            return None
    examples = "Examples: latin-1, cp1252, utf-16, gb18030"
    return f"unknown encoding {truncate(name)!r}. {did_you_mean(name, known)}{examples}"


def _validate_languages(data: DataConfig, features: Sequence[Feature]) -> Iterator[Problem]:
    check, path = data.checks.language, ("data", "checks", "language", "languages")
    texts = [feature.name for feature in features if feature.tokenized]
    for name, language in check.languages.items() if check else ():
        if name not in texts:
            sides = suggest(name, texts) if texts else "This task has no texts; remove the check"
            yield Problem((*path, name), f"unknown side. {sides}")
        elif not (known := known_languages()):
            yield Problem(path, "need the package py3langid; pip install 'regard[language]'")
            return
        elif language not in known:
            message = f"unknown language {language!r}; use one of {', '.join(known)}"
            yield Problem((*path, name), message)


def _validate_splits(data: DataConfig, features: Sequence[Feature]) -> Iterator[Problem]:
    path = ("data", "split")
    has_files = data.eval is not None or data.test is not None
    if has_files and (data.eval is None or data.test is None):
        present, missing = ("eval", "test") if data.test is None else ("test", "eval")
        message = f"data.{present} needs data.{missing} too; or leave both out and use data.split"
        yield Problem(("data", present), message)
    split = data.split
    if split is None:
        if not has_files:
            yield Problem(path, "null needs data.eval and data.test")
        return
    if has_files:
        message = "cannot be combined with data.eval and data.test; remove one or the other"
        yield Problem(path, message)
    total = split.eval + split.test + data.spans.test_share
    if total >= 1.0:
        names = "eval and test" if not data.spans.test_share else "eval, test and spans.test_share"
        message = f"{names} take {total:g} of the rows, which leaves none to train on"
        yield Problem(path, message)
    choices = [feature.name for feature in features if can_decide_split(feature)]
    if split.by is not None and split.by not in choices:
        message = f"the split cannot depend on {split.by}. {suggest(split.by, choices)}"
        yield Problem((*path, "by"), message)


def _validate_features(data: DataConfig, features: Sequence[Feature]) -> Iterator[Problem]:
    names = [feature.name for feature in features]
    for index, name in enumerate(data.extra):
        reserved = name in reserved_names() or (name == SPAN_FEATURE and data.has_spans)
        if names.count(name) > 1 or reserved or name.endswith("_file"):
            message = f"{name!r} is reserved; rename the column"
            yield Problem(("data", "extra", index), message)


def _validate_format(
    data: DataConfig, path: tuple[str, str], files: Files, features: Sequence[Feature]
) -> Iterator[Problem]:
    needed = ", ".join(f"{feature.name}: path" for feature in features if not feature.optional)
    kind = data.format_of(files)
    other = next(filter(None, map(_other_kind, paths_in(files))), None)
    if kind is None and other:
        yield Problem(path, other)
    elif kind is None:
        message = "the file names do not show one format; set data.format, for example to csv"
        yield Problem(path, f"{message}, or give one path for each side: {{{needed}}}")
    elif isinstance(files, dict):
        if not formats.get_format(kind).is_parallel:
            message = f"{kind} files hold all sides; give a path, a glob or a list"
            yield Problem(path, message)
        yield from _validate_names(path, files, features)
    elif formats.get_format(kind).is_parallel:
        yield Problem(path, f"{kind} files need one path for each side: {{{needed}}}")
    elif not formats.get_format(kind).is_compressible and any(map(_is_gzip, path_list(files))):
        yield Problem(path, f"{kind} in gzip is not supported; unpack the file with `gunzip`")
    else:
        yield from formats.get_format(kind).problems(path, features, data.columns)


def _is_gzip(path: str) -> bool:
    return path.lower().endswith(".gz")


def _validate_keys(data: DataConfig) -> Iterator[Problem]:
    """Yield keys about the content of files that have no effect on any of them.

    The formats of all files must be known; a file of an unknown format is another problem.
    """
    names: set[str] = set()
    used = {"encoding"} if data.monolingual else set()
    for files in (data.train, data.eval, data.test):
        if files is None:
            continue
        name = data.format_of(files)
        if name is None:
            return  # which is another problem
        keys = set(formats.get_format(name).keys)
        if isinstance(files, dict):  # columns stand for the endings of files, which are given here
            keys -= {"columns"}
            name += " with a path for each side"
        names.add(name)
        used |= keys
    for key in formats.FILE_KEYS:
        default = type(data).model_fields[key].default
        if key not in used and getattr(data, key) != default:
            others = ", ".join(formats.formats_with(key))
            message = f"{key} has no effect on the format {' and '.join(sorted(names))}; "
            yield Problem(("data", key), f"{message}remove the key. Formats that use it: {others}")


def _other_kind(path: str) -> str | None:
    """Return why a file cannot be read, and the fix, if its name shows it."""
    kind = kind_of_name(path)
    return kind and f"{os.path.basename(path)} is {kind.name}. {conversion(kind, path)}"


def _validate_names(
    path: KeyPath, keys: Iterable[str], features: Sequence[Feature]
) -> Iterator[Problem]:
    """Each side of parallel files or column must be a feature, and no feature may be missing."""
    names = [feature.name for feature in features]
    for name in keys:
        if name not in names:
            yield Problem((*path, name), f"unknown side. {suggest(name, names)}")
    for feature in features:
        if feature.name not in keys and not feature.optional:
            yield Problem(path, f"the side {feature.name} is missing")


def _validate_columns(
    data: DataConfig, columns: Mapping[str, int | str], features: Sequence[Feature]
) -> Iterator[Problem]:
    path = ("data", "columns")
    yield from _validate_names(path, columns, features)
    names = {data.format_of(files) for files in data.files_by_split().values()}
    used = [formats.get_format(name) for name in sorted(filter(None, names))]
    numbering = [data_format for data_format in used if data_format.numbers_columns]
    naming = [
        data_format
        for data_format in used
        if not (data_format.numbers_columns or data_format.is_parallel)
    ]
    for side, column in columns.items():
        if isinstance(column, str):
            if numbering and data.header is False:
                message = "without data.header a column is a number from 1"
                yield Problem((*path, side), f"{message}; got {column!r}")
        elif column < 1:
            yield Problem((*path, side), f"column numbers start at 1; got {column}")
        elif naming:
            message = f"{naming[0].name} needs the name of a column, key or language; got {column}"
            yield Problem((*path, side), message)
    if len(set(columns.values())) < len(columns):
        yield Problem(path, "two sides are read from the same column")


def _validate_tags(data: DataConfig, tags: TagsConfig) -> Iterator[Problem]:
    """Tags come from a column with known names, or there is one for each path."""
    path = ("data", "tags")
    if tags.column and tags.column not in data.extra:
        message = f"is not a column of data.extra. {suggest(tags.column, data.extra)}"
        yield Problem((*path, "column"), message)
    if not tags.known:
        yield Problem((*path, "names"), "must list the tags of the column (data.tags.column)")
    if data.has_spans and not tags.column:
        yield Problem(path, "in a growing corpus, tags must come from a column: set column")
    files = data.files_by_split()
    for split in SPLITS:
        path_tags, sides = getattr(tags, split), files.get(split, ())
        paths = path_list(next(iter(sides.values())) if isinstance(sides, dict) else sides)
        needed = 0 if tags.column else len(paths)
        if len(path_tags) != needed:
            rule = f"one for each path of data.{split}, none with data.tags.column"
            yield Problem((*path, split), f"has {len(path_tags)} tags, but needs {needed}: {rule}")
        for tag in sorted(set(path_tags).difference(tags.known)):
            message = f"{tag!r} is no tag of the model. {suggest(tag, tags.known)}"
            yield Problem((*path, split), message)
