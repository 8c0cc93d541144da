"""Files in the format of SQuAD: questions, and what is wrong with them."""

import gzip
import json

import pytest

from regard.components.data.read_problems import ReadProblems
from regard.components.data.row_reader import read_rows
from regard.components.data.sources import Corpus, FileGroup
from regard.components.data.unreadable_file import UnreadableFile
from regard.components.settings.data import DataConfig
from regard.core.features import Feature
from regard.core.kinds import TEXT
from regard.models.tasks import describe

PASSAGE = "東京 (Tōkyō) is a cafe\u0301 \U0001f600. It is Tōkyō."
FEATURES = describe("span").features


def answer(text, start):
    return {"text": text, "answer_start": start}


def question(answers, number=1, **more):
    return {"id": f"q{number}", "question": f"Question {number}?", "answers": answers, **more}


def content(*questions, passage=PASSAGE):
    return {
        "version": "1.1",
        "data": [{"title": "T", "paragraphs": [{"context": passage, "qas": list(questions)}]}],
    }


def read(path, value, columns=None, extra=()):
    text = value if isinstance(value, str) else json.dumps(value)
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    features = (*FEATURES, *(Feature(name, TEXT, "extra") for name in extra))
    config = DataConfig(train=str(path), columns=columns, extra=extra)
    assert config.format_of(str(path)) == "squad"
    problems = ReadProblems()
    group = FileGroup("train", "squad", (str(path),))
    rows = list(read_rows(group, Corpus(config, features), problems))
    return rows, [(problem.line, problem.text) for problem in problems.examples]


@pytest.mark.parametrize("name", ["train.json", "train.json.gz"])
def test_questions_and_their_answers(name, tmp_path):
    first = question([answer("Tōkyō", 4), answer("It", 25)])
    second = question([answer("cafe\u0301 \U0001f600", 16)], 2, is_impossible=False)
    rows, problems = read(tmp_path / name, content(first, second))
    assert problems == []
    assert rows == [
        (1, [PASSAGE, "Question 1?", ["Tōkyō", "It"], [4, 25], None]),
        (2, [PASSAGE, "Question 2?", ["cafe\u0301 \U0001f600"], [16], None]),
    ]


def test_without_a_start_an_answer_is_its_first_occurrence(tmp_path):
    rows, problems = read(tmp_path / "a.json", content(question([{"text": "Tōkyō"}])))
    assert problems == []
    assert rows[0][1][3] == [4]


def test_further_columns(tmp_path):
    value = content(question([answer("is", 11)]))
    columns = {name: name for name in ("passage", "question", "answer", "answer_start")}
    rows, _ = read(tmp_path / "a.json", value, {**columns, "article": "title"}, ("article",))
    assert rows[0][1][-1] == "T"


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (question([answer("Tōkyō", 5)]), "answer: answer_start 5 is not where 'Tōkyō' begins"),
        (question([answer("Tōkyō", -4)]), "answer_start -4 is not where 'Tōkyō' begins"),
        (question([answer("Kyōto", 4)]), "answer: 'Kyōto' does not occur in passage"),
        (question([answer("", 4)]), "answer: the text is empty"),
        (question([answer(7, 4)]), "item 1 of 'answer' is not a string"),
        (question([answer("is", "4")]), "answer_start: '4' is not a whole number"),
        (question([]), "question q1: the value of 'answers' is not a list of answers"),
        (question("Tōkyō"), "question q1: the value of 'answers' is not a list of answers"),
        (
            question([], is_impossible=True),
            "question q1: it is unanswerable, which is not supported",
        ),
        ({"id": "x", "answers": [answer("is", 11)]}, "no value for 'question'"),
    ],
)
def test_a_wrong_question_names_its_number(wrong, text, tmp_path):
    right = question([answer("is", 11)], 2)
    rows, problems = read(tmp_path / "a.json", content(wrong, right))
    assert [line for line, _ in rows] == [2]
    ((line, problem),) = problems
    assert line == 1
    assert text in problem


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("[\n{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ([1], "the whole of the file is not an object"),
        ({"rows": []}, "data is missing"),
        ({"data": {}}, "data is not a list"),
        ({"data": ["a"]}, "data[0] is not an object"),
        ({"data": [{"title": "T", "context": "a"}]}, "data[0].paragraphs is missing"),
        (
            {"data": [{"paragraphs": []}, {"paragraphs": [{"qas": [{}]}]}]},
            "data[1].paragraphs[0].context is missing",
        ),
        (
            {"data": [{"paragraphs": [{"context": 3, "qas": []}]}]},
            "data[0].paragraphs[0].context is not a text",
        ),
        (
            {"data": [{"paragraphs": [{"context": "a", "qas": [{"answers": 1}, 3]}]}]},
            "data[0].paragraphs[0].qas[1] is not an object",
        ),
    ],
)
def test_another_file_is_refused(value, text, tmp_path):
    with pytest.raises(UnreadableFile) as caught:
        read(tmp_path / "a.json", value)
    problem, is_json = caught.value.problem, text != "not JSON"
    expected = f"not in the format of SQuAD: {text}" if is_json else "the file is not JSON"
    assert problem.text == expected
    assert problem.line == (None if is_json or value[1] == "[" else 2)
    assert problem.file == str(tmp_path / "a.json")
    assert '"paragraphs": [{"context"' in problem.remedy


def test_a_file_without_questions_is_refused(tmp_path):
    with pytest.raises(UnreadableFile, match="the file has no questions"):
        read(tmp_path / "a.json", {"data": []})
