"""Answers in passages: given by offset or text, in tables and JSON lines."""

import json

import pytest

from regard.components.data.cell_values import CellParser
from regard.components.data.read_problems import ReadProblems
from regard.components.data.row_reader import read_rows
from regard.components.data.sources import Corpus, FileGroup
from regard.components.settings.data import DataConfig
from regard.core.features import CellError
from regard.models.tasks import describe

FEATURES = describe("span").features
PASSAGE = "Zoë \U0001f600 met Zoë. 東京"


def parse(**cells):
    row = {"passage": PASSAGE, "question": "Who?", "answer": "Zoë", **cells}
    return list(CellParser(FEATURES)([row.get(feature.name) for feature in FEATURES]))[2:]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({}, [["Zoë"], [0], None]),
        ({"answer_start": 10}, [["Zoë"], [10], None]),
        ({"answer": ["東京", "met"], "answer_start": [15, 6]}, [["東京", "met"], [15, 6], None]),
        ({"answer": ["東京", "met"]}, [["東京", "met"], [15, 6], None]),
        ({"supporting": [0, 14, 15, 17]}, [["Zoë"], [0], [0, 14, 15, 17]]),
    ],
)
def test_where_answers_are(cells, expected):
    assert parse(**cells) == expected


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        ({"answer": "Bob"}, r"answer: 'Bob' does not occur in passage"),
        ({"answer": " "}, r"answer: the text is empty; rows without one are not supported"),
        ({"passage": ""}, r"answer: 'Zoë' does not occur in passage"),
        ({"answer_start": 9}, r"answer: answer_start 9 is not where 'Zoë' .*: passage has ' Zo' "),
        ({"answer_start": -17}, r"answer_start -17 is not where"),
        ({"answer_start": 10**12}, r"answer_start 1000000000000 is not where"),
        ({"answer_start": [0, 1]}, r"answer_start has 2 values for 1 texts"),
        ({"answer_start": 1.5}, r"answer_start 1.5 is not a list of whole numbers"),
        ({"answer_start": True}, r"answer_start: True is not a whole number"),
        ({"answer": None}, r"no value for 'answer'"),
        ({"supporting": [3]}, r"supporting: a part has a begin, but no end"),
        ({"supporting": [3, 3]}, r"supporting: 3 to 3 is no part of the 17 characters of passage"),
        ({"supporting": [3, 18]}, r"supporting: 3 to 18 is no part"),
        ({"supporting": [-1, 2]}, r"-1"),
    ],
)
def test_what_is_wrong(cells, text):
    with pytest.raises(CellError, match=text):
        parse(**cells)


@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl"])
def test_files(suffix, tmp_path):
    path = tmp_path / f"a.{suffix}"
    names = ["passage", "question", "answer", "answer_start"]
    rows = [[PASSAGE, "Who?", "Zoë", 10], [PASSAGE, "Who is?", "met", 1], ["", "Who?", "Bob", 0]]
    if suffix == "jsonl":
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
    else:
        separator = {"tsv": "\t", "csv": ","}[suffix]
        lines = [separator.join(map(str, row)) for row in [names, *rows]]
    path.write_text("".join(f"{line}\n" for line in lines))
    problems, group = ReadProblems(), FileGroup("train", suffix, (str(path),))
    corpus = Corpus(DataConfig(train=str(path)), FEATURES)
    offset = suffix != "jsonl"
    assert list(read_rows(group, corpus, problems)) == [
        (1 + offset, [PASSAGE, "Who?", ["Zoë"], [10], None])
    ]
    first, second = problems.examples
    assert (first.file, first.line) == (str(path), 2 + offset)
    assert "answer: answer_start 1 is not where 'met' begins" in first.text
    assert "answer: 'Bob' does not occur in passage" in second.text
