"""Files with one JSON object per line."""

import json
import os
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from regard.components.data.column_matching import find_name, match_columns
from regard.components.data.column_remedies import columns_remedy
from regard.components.data.columns import ambiguous_names
from regard.components.data.formats.base import Cells, DataFormat
from regard.components.data.read_problems import ReadProblems
from regard.components.data.sources import Corpus, FileGroup
from regard.components.data.text_files import InvalidLine, read_lines
from regard.components.data.typed_cells import MAX_DEPTH, decode_cells, named_layout
from regard.components.data.unreadable_file import UnreadableFile
from regard.core.formatting import truncate

# Rows in which the keys of the features are looked for.
_MAX_ATTEMPTS = 1000


class JsonLinesFormat(DataFormat):
    """Files with one JSON object per line."""

    name = "jsonl"
    text = "one JSON object per line"
    endings = (".jsonl", ".ndjson")
    keys = {"columns": "a key; translation.en is a field of translation", "encoding": ""}

    def read(self, group: FileGroup, corpus: Corpus, problems: ReadProblems) -> Iterator[Cells]:
        """Yield the rows of a file with one JSON object per line.

        The keys of the first row that has all features hold the features of all rows.
        """
        (path,), config = group.files, corpus.config
        names: list[str | None] | None = None
        selection: list[str | None] = [feature.name for feature in corpus.features]
        attempts = 0
        is_first = True
        for line, text in enumerate(read_lines(path, problems, encoding=config.encoding), 1):
            if isinstance(text, InvalidLine):
                yield line, None
                continue
            if not text.strip():  # a blank line is not a row
                continue
            content, problem = _parse_json(text)
            if problem and is_first:
                _check_is_lines(text, path, line)
            is_first = False
            remedy = None
            if problem:
                problem = f"{problem}: {truncate(text)!r}"
            else:
                if names is None and attempts < _MAX_ATTEMPTS:
                    selection = _choose_keys(content, corpus, path, line)
                    attempts += 1
                if missing := _missing_keys(selection, content, corpus):
                    problem = f"there is no key {missing[0]!r}"
                    remedy = (
                        None if problems.examples else _keys_remedy(corpus, content, missing[0])
                    )
                elif names is None:
                    names = selection  # of all rows
                    problems.layouts.append(named_layout(path, corpus, names, _keys(content)))
            if problem:
                problems.add(path, line, problem, remedy)
                yield line, None
            else:
                cells = [content.get(name) for name in selection]
                yield line, decode_cells(cells, corpus, path, line, problems)


def _choose_keys(
    content: Mapping[str, Any], corpus: Corpus, path: str, line: int
) -> list[str | None]:
    """Return the key of each feature; keys that show nothing are those of the features.

    Raises:
        UnreadableFile: the keys can be read in several ways.
    """
    keys, columns = _keys(content), corpus.config.columns
    if columns is not None:
        selection = [columns.get(feature.name) for feature in corpus.features]
        return [None if name is None else _find_key(str(name), keys) for name in selection]
    matches = match_columns(corpus, keys)
    if len(matches) > 1:
        raise ambiguous_names(corpus, path, keys, matches, line)
    match = matches[0] if matches else [None] * len(corpus.features)
    return [
        feature.name if index is None else keys[index]
        for feature, index in zip(corpus.features, match, strict=True)
    ]


def _find_key(name: str, keys: Sequence[str]) -> str:
    index = find_name(name, keys)
    return name if index is None else keys[index]


def _keys(content: Mapping[str, Any]) -> list[str]:
    return [key for key, value in content.items() if not isinstance(value, dict)]


def _missing_keys(
    names: Sequence[str | None], content: Mapping[str, Any], corpus: Corpus
) -> list[str]:
    pairs = zip(names, corpus.features, strict=True)
    return [str(name) for name, feature in pairs if not feature.optional and name not in content]


def _keys_remedy(corpus: Corpus, content: Mapping[str, Any], missing: str) -> str:
    return columns_remedy(corpus, _keys(content), missing)


def _check_is_lines(text: str, path: str, line: int) -> None:
    """Refuse a file that is an array, or whose objects are spread over lines.

    Args:
        text: the first line that is not blank, which is not a JSON object.
        path: the file.
        line: the number of the line.
    """
    try:
        content = json.loads(text)
    except (RecursionError, ValueError):
        content = None
    name, output = map(shlex.quote, (path, f"{os.path.splitext(path)[0]}.rows.jsonl"))
    if text.lstrip().startswith("[") and (content is None or _holds_objects(content)):
        message, program = "the file is a JSON array, not one JSON object a line", "jq -c '.[]'"
    elif text.strip() == "{":
        message, program = "a JSON object takes several lines, not one", "jq -c ."
    else:
        return
    remedy = f"Convert it: `{program} {name} > {output}`, and name that file."
    raise UnreadableFile(path, message, remedy, line)


def _holds_objects(content: Any) -> bool:
    return isinstance(content, list) and any(isinstance(item, dict) for item in content)


class _RepeatedKeyError(Exception):
    """A JSON object has a key twice, so that a value would be lost."""


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of keys and values."""
    content = dict(pairs)
    if len(content) < len(pairs):
        raise _RepeatedKeyError(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return content


def _parse_json(text: str) -> tuple[dict[Any, Any], str | None]:
    """Return a JSON object, also with keys such as ``translation.en``, or what is wrong with it."""
    try:
        content = json.loads(text, object_pairs_hook=_unique_keys)
    except RecursionError:
        return {}, "not JSON: nested too deeply"
    except _RepeatedKeyError as error:
        return {}, f"the key {truncate(str(error))!r} occurs twice in an object"
    except ValueError as error:
        return {}, f"not JSON: {getattr(error, 'msg', error)}"
    if not isinstance(content, dict):
        return {}, "not a JSON object"
    return dict(_inner_items(content)) | content, None


def _inner_items(content: Mapping[str, Any], depth: int = 1) -> Iterator[tuple[str, Any]]:
    """Yield what the objects in an object contain, with keys such as ``data.translation.en``."""
    for key, value in content.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{name}", inner) for name, inner in value.items())
            if depth < MAX_DEPTH:
                deeper = _inner_items(value, depth + 1)
                yield from ((f"{key}.{name}", inner) for name, inner in deeper)


FORMAT = JsonLinesFormat()
