from __future__ import annotations

import gzip

import pytest

from regard.components.data.images import Images
from regard.components.data.read_problems import ReadProblems
from regard.components.data.row_reader import join_references, read_rows
from regard.components.data.sources import FileGroup
from regard.models.tasks.description import Feature
from tests.components.corpora import (
    CAPTIONED,
    SCORED,
    SUMMARISED,
    corpus_of,
    first_error,
    picture,
    read_group,
    table,
    unreadable,
)


@pytest.fixture
def parallel(tmp_path):
    def make(source: bytes, target: bytes) -> FileGroup:
        (tmp_path / "a.en").write_bytes(source)
        (tmp_path / "a.de.gz").write_bytes(gzip.compress(target))
        files = str(tmp_path / "a.en"), str(tmp_path / "a.de.gz")
        return FileGroup("train", "parallel", files, ("source", "target"))

    return make


def test_parallel_files(parallel):
    rows, _ = read_group(parallel(b"one\n\nthree\n", b"eins\nzwei\ndrei"))
    assert rows == [(1, "one", "eins"), (2, "", "zwei"), (3, "three", "drei")]


@pytest.mark.parametrize(
    ("source", "target", "counts"), [(3, 50_000, (3, 50_000)), (50_001, 50_000, (50_001, 50_000))]
)
def test_parallel_files_of_different_length(parallel, source, target, counts):
    error = unreadable(parallel(b"word\n" * source, b"Wort\n" * target))
    for count in counts:
        assert f"has {count:,} lines" in str(error)


def test_skipped_line_skips_the_row(parallel):
    group = parallel(b"one\nt\xffo\nthree\nfour\n", b"eins\nzwei\ndrei\nv\0er\n")
    rows, problems = read_group(group, bad_rows="skip")
    assert rows == [(1, "one", "eins"), (3, "three", "drei")]
    assert [problem.line for problem in problems.examples] == [2, 4]


def test_tsv_columns_by_number(single):
    group = single("tsv", "7\tone\teins\r\n8\ttwo\t\n")
    rows, _ = read_group(group, columns={"source": 2, "target": 3})
    assert rows == [(1, "one", "eins"), (2, "two", "")]


def test_tsv_columns_by_header(single):
    group = single("tsv", "\ufeffde\tid\ten\neins\t1\tone\n")
    rows, _ = read_group(group, columns={"source": "en", "target": "de"}, header=True)
    assert rows == [(2, "one", "eins")]


def test_tsv_has_no_quoting(single):
    rows, _ = read_group(single("tsv", '"a\tb"\u2028c\n'))
    assert rows == [(1, '"a', 'b"\u2028c')]


def test_tsv_rows_with_missing_or_surplus_columns(single):
    group = single("tsv", "a\tb\nonly\nc\td\te\nf\tg\n")
    rows, problems = read_group(group, bad_rows="skip")
    assert rows == [(1, "a", "b"), (4, "f", "g")]
    assert [p.line for p in problems.examples] == [2, 3]
    _, problems = read_group(group)
    error = first_error(problems)
    assert error.where.endswith("a.tsv:2")
    assert "1 column instead of 2 as the first row (line 1)" in error.message
    assert "data.bad_rows" in error.remedy


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"columns": {"source": 1, "target": 3}}, "column 3 for target is missing"),
        ({"columns": {"source": "en", "target": "dee"}, "header": True}, "'dee'"),
    ],
)
def test_tsv_missing_columns(single, section, message):
    error = unreadable(single("tsv", "en\tde\na\tb\n"), **section)
    assert message in str(error)
    assert error.problem.remedy


def test_read_and_skipped_rows_are_counted(parallel, single):
    group = parallel(b"one\nt\xffo\nthree\n", b"eins\nz\xffei\ndrei\n")
    _, problems = read_group(group, bad_rows="skip")
    assert (problems.rows, problems.skipped_rows) == (3, 1)  # both sides of one row
    content = b"a\tb\nonly\nc\t\xff\n"
    _, problems = read_group(single("tsv", content), bad_rows="skip")
    assert (problems.rows, problems.skipped_rows) == (3, 2)
    _, problems = read_group(single("tsv", "source\ttarget\na\tb\n"), header=True)
    assert (problems.rows, problems.skipped_rows) == (1, 0)


def test_numbers_of_a_table(single):
    group = single("tsv", table(("2.5", "a", "b"), ("x", "a", "b"), ("", "", ""), (6, "a", "b")))
    rows, problems = read_group(group, features=SCORED, bad_rows="skip")
    assert rows == [(1, 2.5, "a", "b")]
    assert [(p.line, p.text) for p in problems.examples] == [
        (2, "score 'x' is not a number"),
        (3, "no value for 'score'"),
        (4, "score 6 is not from 0 to 5"),
    ]
    assert (problems.rows, problems.skipped_rows) == (4, 3)
    error = first_error(read_group(group, features=SCORED)[1])
    assert error.where.endswith("a.tsv:2")
    assert error.remedy == "Fix the file, or set `data.bad_rows` to skip."


def test_optional_column(single):
    assert read_group(single("tsv", table("ab")), features=SUMMARISED)[0] == [(1, "a", ["b"], None)]
    rows, _ = read_group(single("tsv", table("abc", ("d", "e", ""))), features=SUMMARISED)
    assert rows == [(1, "a", ["b"], "c"), (2, "d", ["e"], None)]


def test_optional_side(tmp_path):
    for name in ("text", "summary", "score"):
        (tmp_path / name).write_text("1\nx\n")
    files = tuple(str(tmp_path / name) for name in ("text", "summary"))
    group = FileGroup("train", "parallel", files, ("text", "summary"))
    assert read_group(group, features=SUMMARISED)[0] == [
        (1, "1", ["1"], None),
        (2, "x", ["x"], None),
    ]
    files = tuple(str(tmp_path / name) for name in ("text", "summary", "score"))
    group = FileGroup("train", "parallel", files, ("one", "other", "score"))
    _, problems = read_group(group, features=SCORED)
    assert first_error(problems).where == f"{tmp_path}/score:2"


def test_references_of_one_input_are_joined(single, tmp_path):
    captions = table(("a.jpg", "a dog"), ("b.jpg", "a cat"), ("a.jpg", ""), ("", "x"))
    rows, problems = read_group(single("tsv", captions), features=CAPTIONED, bad_rows="skip")
    assert rows == [(1, "a.jpg", ["a dog", ""]), (2, "b.jpg", ["a cat"])]
    assert (problems.rows, problems.skipped_rows) == (4, 1)
    for name, column in (("image", 0), ("caption", 1)):
        texts = [line.split("\t")[column] for line in captions.splitlines()[:3]]
        (tmp_path / name).write_text("".join(f"{text}\n" for text in texts))
    files = str(tmp_path / "image"), str(tmp_path / "caption")
    group = FileGroup("train", "parallel", files, ("image", "caption"))
    assert read_group(group, features=CAPTIONED)[0] == rows


def test_images_are_checked_on_request(single, tmp_path):
    (tmp_path / "a.png").write_bytes(picture())
    group = single("tsv", table(("a.png", "x"), ("b.png", "y")))
    corpus = corpus_of(tmp_path, CAPTIONED, train="a.tsv", bad_rows="skip")
    problems = ReadProblems()
    images = Images.of(corpus.config)
    assert [line for line, _ in read_rows(group, corpus, problems, images)] == [1]
    assert problems.examples[0].text == "b.png: no such file"
    assert len(list(read_rows(group, corpus, ReadProblems()))) == 2


def test_join_references():
    by = Feature("by", "text", role="extra", optional=True)
    rows = [
        (1, ["a.jpg", ["a dog"], "x"]),
        (2, ["b.jpg", ["a cat"], None]),
        (4, ["a.jpg", ["a dog", "one dog"], "y"]),
    ]
    assert list(join_references(rows, (*CAPTIONED, by))) == [
        (1, ["a.jpg", ["a dog", "a dog", "one dog"], "x"]),
        (2, ["b.jpg", ["a cat"], None]),
    ]


def test_join_references_by_all_inputs():
    features = [Feature("text", "text"), Feature("at", "points"), CAPTIONED[1]]
    rows = [
        (1, [" caf\u00e9", [0.1, 0.0], ["one"]]),
        (2, ["cafe\u0301", [0.1, 0.0], ["two"]]),
        (3, ["caf\u00e9", [0.1, 0.5], ["three"]]),
    ]
    joined = [(line, values[2]) for line, values in join_references(rows, features)]
    assert joined == [(1, ["one", "two"]), (3, ["three"])]


def test_header_names_features(single):
    group = single("tsv", "target\tid\tsource\neins\t1\tone\n")
    assert read_group(group, header=True)[0] == [(2, "one", "eins")]


def test_join_references_ignores_missing_values():
    features = [Feature("text", "text"), Feature("more", "text", multiple=True, optional=True)]
    rows = [(1, ["a", None]), (2, ["a", ["x"]]), (3, ["a", None]), (4, ["b", None])]
    assert list(join_references(rows, features)) == [(1, ["a", ["x"]]), (4, ["b", None])]
