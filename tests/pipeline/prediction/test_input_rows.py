import io
import os
import re

import pytest

from regard.core.errors import UserError
from regard.pipeline.prediction import input_rows
from regard.pipeline.prediction.input_rows import (
    InputParser,
    read_line_batches,
    split_batches,
    with_tag,
)
from tests import fake_models, fake_tasks

TEXT = fake_models.Reverser().contract()
TEXTS = fake_tasks.Matcher().contract()
POINTS = fake_tasks.Sorter().contract()
IMAGE = fake_tasks.Namer().contract()


def read(contract, *texts):
    return list(InputParser(contract).parse_arguments(texts))


def test_a_text_is_not_changed():
    (row,) = read(TEXT, "  a\tb ")
    assert row.typed == row.values == {"source": "  a\tb "}


@pytest.mark.parametrize(
    ("contract", "text"),
    [(TEXT, " "), (TEXT, "\u3000\u200b\ufeff"), (POINTS, ""), (POINTS, "\u200b")],
)
def test_an_empty_row_has_no_values(contract, text):
    (row,) = read(contract, text)
    assert (list(row.typed.values()), row.values) == ([text], None)


def test_as_many_arguments_as_inputs_make_a_row():
    one, other = read(TEXTS, "a", "b", "", "d")
    assert one.values == {"first": "a", "second": "b"}
    assert other.values == {"first": "", "second": "d"}


def test_an_incomplete_row_is_an_error():
    with pytest.raises(UserError, match="1 value, but the model has 2 inputs: first, second") as e:
        read(TEXTS, "a", "b", "c")
    assert e.value.where == "TEXT 3"
    assert e.value.remedy == "Give 2 arguments for each row."


def test_points_are_json():
    (row,) = read(POINTS, "[[0.1, 2], [3, -4]]")
    assert row.typed == row.values == {"points": [[0.1, 2.0], [3.0, -4.0]]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.1 0.2", "points '0.1 0.2' is not a JSON list"),
        ("[[0.1, NaN]]", "point 0 is NaN"),
        ("[[1, 2], [3]]", r"point 1 is '?\[3\]'?, not \[x, y\]"),
        ("[]", "1 point needed, got 0"),
    ],
)
def test_invalid_points(text, message):
    with pytest.raises(UserError, match=message) as caught:
        read(POINTS, "[[0, 0]]", text)
    assert caught.value.where == "TEXT 2"
    assert "for example [[0.1, 0.2], [0.5, 0.9]]" in caught.value.remedy


def test_an_image_is_its_path(tmp_path):
    path = tmp_path / "a b.png"
    path.write_bytes(fake_tasks.png(1, 2))
    (row,) = read(IMAGE, str(path))
    assert row.typed == {"image": str(path)}
    assert row.values == {"image": path.read_bytes()}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file"),
        (b"text", "is not an image (JPEG, PNG or BMP)"),
        (b"\x89PNG\r\n\x1a\n", "is truncated"),
    ],
)
def test_invalid_images(tmp_path, content, message):
    path = tmp_path / "a.png"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=re.escape(str(path)) + ".*" + re.escape(message)) as caught:
        read(IMAGE, str(path))
    assert caught.value.where == "TEXT 1"


def test_lines_come_in_batches_with_tabs_between_inputs():
    batches = list(InputParser(TEXTS).parse_lines([[b"a\tb", b""], [b"\tc"]]))
    assert [[row.values for row in batch] for batch in batches] == [
        [{"first": "a", "second": "b"}, None],
        [{"first": "", "second": "c"}],
    ]


def test_a_single_text_may_contain_tabs():
    ((row,),) = InputParser(TEXT).parse_lines([[b"a\tb"]])
    assert row.values == {"source": "a\tb"}


def test_rows_before_an_invalid_line_are_yielded():
    batches = InputParser(TEXTS).parse_lines([[b"a\tb", b"c\td"], [b"e\tf", b"alone", b"g\th"]])
    assert [len(next(batches)), len(next(batches))] == [2, 1]
    with pytest.raises(UserError, match="1 value") as caught:
        next(batches)
    assert caught.value.where == "standard input:4"
    assert "tabs" in caught.value.remedy


def test_lines_are_counted_before_more_are_read(monkeypatch):
    counts = []
    monkeypatch.setattr(input_rows, "read_line_batches", lambda file: [[b"a"], [b"b", b"c"]])
    parser = InputParser(TEXT, on_read=counts.append)
    for batch, expected in zip(parser.parse([]), ([0], [0, 1]), strict=True):
        assert (len(batch), counts) == (len(expected), expected)
    assert counts == [0, 1, 3]


def test_a_row_is_shortened_for_messages():
    (row,) = read(TEXTS, "a\nb", "x" * 80)
    assert row.description == f"a b {'x' * 55}…"


def read_lines(content: bytes) -> list[list[str]]:
    batches = InputParser(TEXT).parse_lines(read_line_batches(io.BytesIO(content)))
    return [[row.typed["source"] for row in batch] for batch in batches]


def test_fast_lines_come_in_full_batches():
    lines = [f"line {number}" for number in range(150)]
    result = read_lines("".join(f"{line}\n" for line in lines).encode())
    assert result == [lines[:64], lines[64:128], lines[128:]]


def test_only_the_line_feed_ends_a_line():
    content = "\ufeffone\r\n\ntwo\u2028still two\nlast".encode()
    assert read_lines(content) == [["one", "", "two\u2028still two"], ["last"]]
    assert read_lines(b"") == []


def test_a_line_that_is_not_utf8():
    batches = InputParser(TEXT).parse_lines(read_line_batches(io.BytesIO(b"good\nb\xe4d\n")))
    assert [row.typed["source"] for row in next(batches)] == ["good"]
    with pytest.raises(UserError) as raised:
        next(batches)
    assert raised.value.where == "standard input:2"


def test_slow_lines_are_not_delayed():
    reading, writing = os.pipe()
    with open(reading, "rb") as file:
        batches = read_line_batches(file)
        os.write(writing, b"first\nsec")
        assert next(batches) == [b"first"]  # the pipe is still open
        os.write(writing, b"ond\n")
        os.close(writing)
        assert list(batches) == [[b"second"]]


def test_split_batches():
    assert list(split_batches("abcde", 2)) == [["a", "b"], ["c", "d"], ["e"]]
    assert list(split_batches([])) == []


TAGGED = {**TEXT, "tags": ["de", "fr"]}


@pytest.mark.parametrize(
    ("contract", "text", "tag", "expected"),
    [
        (TEXT, "a dog", None, "a dog"),
        (TEXT, "<de> a dog", None, "<de> a dog"),
        (TAGGED, "a dog", "fr", "<fr> a dog"),
        (TAGGED, " <fr>a dog", None, "<fr> a dog"),
        (TAGGED, " ", None, " "),
        (TAGGED, "", "de", ""),
        (TAGGED, "a <es> b", "de", "<de> a <es> b"),
    ],
)
def test_a_tag_begins_the_text(contract, text, tag, expected):
    values = {"source": text, "prefix": "x"}
    assert with_tag(values, contract, tag) == {"source": expected, "prefix": "x"}


@pytest.mark.parametrize(
    ("contract", "text", "tag", "message"),
    [
        (TEXT, "a dog", "de", r"^--tag: The model has no tag 'de': it has no tags\."),
        (POINTS, [[0.1, 0.2]], "de", r"The model has no tag 'de': it has no tags\."),
        (TAGGED, "a dog", "es", r"The model has no tag 'es': its tags are de, fr\."),
        (
            TAGGED,
            "a dog",
            None,
            r"no tag: its tags are de, fr\.(.|\n)*Give --tag, .* <de>",
        ),
        (TAGGED, "<es> a dog", None, "The text has no tag"),
        (TAGGED, "<de> a dog", "de", "The text contains a tag, which may only be its beginning"),
        (TAGGED, "<de> a <fr> dog", None, "The text contains a tag, which may only be its beg"),
    ],
)
def test_a_tag_that_the_model_cannot_use(contract, text, tag, message):
    name = contract["inputs"][0]["name"]
    with pytest.raises(UserError, match=message):
        with_tag({name: text}, contract, tag)


SCORED = {**TEXT, "inputs": [{"name": name, "kind": "text"} for name in ("source", "target")]}


def read_stdin(contract, *lines):
    notes = []
    parser = InputParser(contract, notes.append)
    rows = [
        row for batch in parser.parse_lines([list(lines[:2]), list(lines[2:])]) for row in batch
    ]
    return [dict(row.values or {}) for row in rows], notes


@pytest.mark.parametrize(
    ("contract", "lines", "expected"),
    [
        (SCORED, [b"tgt\tsrc", b"B\ta"], [{"source": "a", "target": "B"}]),
        (SCORED, [b"\xef\xbb\xbfid\tSummary\tText", b"1\tB\ta"], [{"source": "a", "target": "B"}]),
        (TEXTS, [b"label\tsentence2\tsentence1", b"1\tb\ta"], [{"first": "a", "second": "b"}]),
        (TEXT, [b"target\tsource", b"B\ta", b"", b"D\tc"], [{"source": "a"}, {}, {"source": "c"}]),
    ],
)
def test_a_first_line_with_names_is_no_row(contract, lines, expected):
    rows, notes = read_stdin(contract, *lines)
    assert rows == expected
    assert len(notes) == 1


@pytest.mark.parametrize(
    ("contract", "lines", "expected"),
    [
        (SCORED, [b"No\tNe", b"a\tB"], [("No", "Ne"), ("a", "B")]),
        (TEXT, [b"source", b"question"], [("source",), ("question",)]),
        (TEXT, [b"a", b"b\tc"], [("a",), ("b\tc",)]),
    ],
)
def test_a_first_line_without_names_is_a_row(contract, lines, expected):
    rows, notes = read_stdin(contract, *lines)
    assert [tuple(row.values()) for row in rows] == expected
    assert not notes


@pytest.mark.parametrize(
    ("contract", "lines", "where"),
    [
        (SCORED, [b"en\tfr", b"a\tB"], 1),
        (SCORED, [b"source\tid", b"a\tB"], 1),
        (SCORED, [b"src\ttgt", b"a\tB", b"a\tB\tC"], 3),
        (SCORED, [b"src\ttgt\tid", b"a\tB"], 2),
    ],
)
def test_columns_that_do_not_show_the_inputs(contract, lines, where):
    with pytest.raises(UserError) as caught:
        read_stdin(contract, *lines)
    assert caught.value.where == f"standard input:{where}"
    assert caught.value.remedy


def test_a_text_with_columns_is_announced():
    rows, notes = read_stdin(TEXT, b"a\tB", b"c\tD")
    assert rows == [{"source": "a\tB"}, {"source": "c\tD"}]
    assert len(notes) == 1
