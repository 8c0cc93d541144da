"""The questions of files in the JSON format of SQuAD."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from regard.components.data.formats.base import Cells, DataFormat
from regard.components.data.read_problems import ReadProblems
from regard.components.data.sources import Corpus, FileGroup
from regard.components.data.text_files import read_blocks
from regard.components.data.typed_cells import decode_cells
from regard.components.data.unreadable_file import UnreadableFile
from regard.core.features import Feature
from regard.core.formatting import truncate
from regard.models.settings.base import KeyPath, Problem

_REMEDY = (
    'Write the file as {"data": [{"paragraphs": [{"context": "…", "qas": [{"question": "…", '
    '"answers": [{"text": "…", "answer_start": 0}]}]}]}]}, or set data.format for another format.'
)
_KINDS: dict[type, str] = {dict: "an object", list: "a list", str: "a text"}
_UNANSWERABLE = "it is unanswerable, which is not supported; remove it, or use SQuAD 1.1"


class SquadFormat(DataFormat):
    """Files in the format of SQuAD 1.1 (Rajpurkar et al. 2016)."""

    name = "squad"
    text = "the JSON of SQuAD"
    endings = (".json",)
    keys = {"columns": "a key of a question, or title"}

    def problems(
        self, path: KeyPath, features: Sequence[Feature], columns: Mapping[str, int | str] | None
    ) -> Iterator[Problem]:
        if not any(feature.part_of for feature in features):
            message = (
                "json files hold passages and questions, for the task span only; set data.format: "
                "jsonl if each line is a JSON object, or convert a JSON array: "
                "`jq -c '.[]' FILE.json > FILE.jsonl`"
            )
            yield Problem(path, message)

    def read(self, group: FileGroup, corpus: Corpus, problems: ReadProblems) -> Iterator[Cells]:
        """Yield the questions of a file; the line of a row is the number of its question.

        Questions of SQuAD 2.0 without an answer are problems. A column may also name ``id`` or
        ``title``.
        """
        (path,), columns = group.files, corpus.config.columns or {}
        names = [str(columns.get(feature.name, feature.name)) for feature in corpus.features]
        number = 0
        for number, entry in enumerate(_questions(path), 1):
            row, problem = _to_row(entry)
            if problem:
                problems.add(path, number, f"question {truncate(str(entry.get('id')))}: {problem}")
                yield number, None
            else:
                yield number, decode_cells([*map(row.get, names)], corpus, path, number, problems)
        if not number:
            raise UnreadableFile(path, "the file has no questions", _REMEDY)


def _questions(path: str) -> Iterator[Mapping[str, Any]]:
    """Yield each question with its ``context`` and ``title``."""
    try:
        content = json.loads(b"".join(read_blocks(path)))
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise UnreadableFile(path, "the file is not JSON", _REMEDY, line) from None
    root = _check(path, content, dict, "the whole of the file")
    for article, where in _objects(path, root, "data"):
        for paragraph, place in _objects(path, article, f"{where}.paragraphs"):
            context = _check(path, paragraph.get("context"), str, f"{place}.context")
            for entry, _ in _objects(path, paragraph, f"{place}.qas"):
                yield {"title": article.get("title"), **entry, "context": context}


def _objects(path: str, owner: Mapping[str, Any], where: str) -> Iterator[tuple[dict, str]]:
    """Yield the objects of a list in a JSON object, and their JSON paths, ``data[0]``."""
    items = _check(path, owner.get(where.rpartition(".")[2]), list, where)
    for index, value in enumerate(items):
        place = f"{where}[{index}]"
        yield _check(path, value, dict, place), place


def _check(path: str, value: Any, kind: type, where: str) -> Any:
    if isinstance(value, kind):
        return value
    problem = "is missing" if value is None else f"is not {_KINDS[kind]}"
    raise UnreadableFile(path, f"not in the format of SQuAD: {where} {problem}", _REMEDY)


def _to_row(entry: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the values of a question by column, and what is wrong with it."""
    if entry.get("is_impossible"):
        return {}, _UNANSWERABLE
    answers = entry.get("answers")
    if not (isinstance(answers, list) and answers and all(isinstance(a, dict) for a in answers)):
        return {}, "the value of 'answers' is not a list of answers"
    starts = [answer.get("answer_start") for answer in answers]
    row = {name: entry.get(name) for name in ("id", "title", "question")}
    row |= {"passage": entry["context"], "answer": [answer.get("text") for answer in answers]}
    return row | {"answer_start": None if None in starts else starts}, ""


FORMAT = SquadFormat()
