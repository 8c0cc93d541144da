from __future__ import annotations

import gzip

import pytest

from components.corpus_gen.formats import Options, read
from components.corpus_gen.images import Images
from components.corpus_gen.problems import Problems
from components.corpus_gen.sources import Group
from tests.components.corpus_gen.corpora import (
    CAPTIONED,
    POINTED,
    SCORED,
    SUMMARISED,
    lines,
    picture,
    refusal,
    rows_of,
)


@pytest.fixture
def parallel(tmp_path):
    def make(source: bytes, target: bytes) -> Group:
        (tmp_path / "a.en").write_bytes(source)
        (tmp_path / "a.de.gz").write_bytes(gzip.compress(target))
        files = str(tmp_path / "a.en"), str(tmp_path / "a.de.gz")
        return Group("train", "parallel", files, ("source", "target"))

    return make


@pytest.fixture
def single(tmp_path):
    def make(kind: str, content: str | bytes) -> Group:
        path = tmp_path / f"a.{kind}"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return Group("train", kind, (str(path),))

    return make


def test_parallel_lines_become_rows(parallel):
    rows, _ = rows_of(parallel(b"one\n\nthree\n", b"eins\nzwei\ndrei"))
    assert rows == [(1, "one", "eins"), (2, "", "zwei"), (3, "three", "drei")]


@pytest.mark.parametrize(
    ("source", "target", "counts"), [(3, 50_000, (3, 50_000)), (50_001, 50_000, (50_001, 50_000))]
)
def test_uneven_files_are_refused_with_both_counts(parallel, source, target, counts):
    broken = refusal(parallel(b"word\n" * source, b"Wort\n" * target))
    for count in counts:
        assert f"has {count:,} lines" in str(broken)


def test_a_skipped_line_takes_its_partner_along(parallel):
    group = parallel(b"one\nt\xffo\nthree\nfour\n", b"eins\nzwei\ndrei\nv\0er\n")
    rows, problems = rows_of(group, encoding_errors="skip")
    assert rows == [(1, "one", "eins"), (3, "three", "drei")]
    assert problems.counts == {"encoding/skip": 1, "nul/skip": 1}


def test_one_empty_side_is_told_as_empty(parallel):
    broken = refusal(parallel(b"one\n", b""))
    assert "empty" in str(broken)
    assert broken.problem.file.endswith("a.de.gz")


def test_tsv_takes_the_columns_by_number(single):
    group = single("tsv", "7\tone\teins\r\n8\ttwo\t\n")
    rows, _ = rows_of(group, columns={"source": 2, "target": 3})
    assert rows == [(1, "one", "eins"), (2, "two", "")]


def test_tsv_takes_the_columns_by_the_header(single):
    group = single("tsv", "\ufeffde\tid\ten\neins\t1\tone\n")
    rows, _ = rows_of(group, columns={"source": "en", "target": "de"}, header=True)
    assert rows == [(2, "one", "eins")]


def test_tsv_keeps_quotes_and_other_line_signs(single):
    rows, _ = rows_of(single("tsv", '"a\tb"\u2028c\n'))
    assert rows == [(1, '"a', 'b"\u2028c')]


def test_tsv_rows_with_too_few_or_too_many_columns(single):
    group = single("tsv", "a\tb\nonly\nc\td\te\nf\tg\n")
    rows, problems = rows_of(group, bad_rows="skip")
    assert rows == [(1, "a", "b"), (4, "f", "g")]
    assert [p.line for p in problems.examples["row/skip"]] == [2, 3]
    _, problems = rows_of(group)
    error = problems.error()
    assert error.where.endswith("a.tsv:2")
    assert "1 column, not 2 as the first row (line 1) has" in error.message
    assert "data.bad_rows" in error.remedy


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ({"columns": {"source": 1, "target": 3}}, "column 3 for target is not there"),
        ({"columns": {"source": "en", "target": "de"}}, "read without a header"),
        ({"columns": {"source": "en", "target": "dee"}, "header": True}, "'dee'"),
        ({"columns": {"source": 1}}, "does not say where target is"),
    ],
)
def test_tsv_columns_that_are_not_there(single, section, told):
    broken = refusal(single("tsv", "en\tde\na\tb\n"), **section)
    assert told in str(broken)
    assert broken.problem.remedy


def test_every_row_is_counted_and_so_is_what_is_left_out(parallel, single):
    group = parallel(b"one\nt\xffo\nthree\n", b"eins\nz\xffei\ndrei\n")
    _, problems = rows_of(group, encoding_errors="skip")
    assert problems.counts == {"encoding/skip": 2}
    assert (problems.rows, problems.left_out) == (3, 1)  # both sides of one row
    content = b"a\tb\nonly\nc\t\xff\n"
    _, problems = rows_of(single("tsv", content), bad_rows="skip", encoding_errors="skip")
    assert (problems.rows, problems.left_out) == (3, 2)
    _, problems = rows_of(single("tsv", "source\ttarget\na\tb\n"), header=True)
    assert (problems.rows, problems.left_out) == (1, 0)


def test_cells_of_other_kinds(single):
    group = single("tsv", lines(("2.5", "a", "b"), ("x", "a", "b"), ("", "", ""), (6, "a", "b")))
    rows, problems = rows_of(group, features=SCORED, bad_rows="skip")
    assert rows == [(1, 2.5, "a", "b")]
    assert [(p.line, p.text) for p in problems.examples["row/skip"]] == [
        (2, "score 'x' is not a number"),
        (3, "no score"),
        (4, "score 6 is not from 0 to 5"),
    ]
    assert (problems.rows, problems.left_out) == (4, 3)
    error = rows_of(group, features=SCORED)[1].error()
    assert error.where.endswith("a.tsv:2")
    assert error.remedy == "Mend the file, or set `data.bad_rows` to skip."


def test_points_and_positions_of_a_table(single):
    square = "[[0, 0], [0, 1], [1, 1], [1, 0]]"
    group = single("tsv", lines((square, "2 0"), (square, "[1]"), (square, 4)))
    rows, problems = rows_of(group, features=POINTED, bad_rows="skip")
    assert [row[2] for row in rows] == [[2, 0], [1]]
    assert rows[0][1] == [0, 0, 0, 1, 1, 1, 1, 0]
    assert problems.examples["row/skip"][0].text == "position 4 of 4 points"


def test_with_a_header_columns_are_called_like_the_features(single):
    group = single("tsv", "target\tid\tsource\neins\t1\tone\n")
    assert rows_of(group, header=True)[0] == [(2, "one", "eins")]


def test_a_column_that_is_optional_need_not_be_there(single):
    assert rows_of(single("tsv", lines("ab")), features=SUMMARISED)[0] == [(1, "a", ["b"], None)]
    rows, _ = rows_of(single("tsv", lines("abc", ("d", "e", ""))), features=SUMMARISED)
    assert rows == [(1, "a", ["b"], "c"), (2, "d", ["e"], None)]


def test_a_side_that_is_optional_need_not_be_there(tmp_path):
    for name in ("text", "summary", "score"):
        (tmp_path / name).write_text("1\nx\n")
    files = tuple(str(tmp_path / name) for name in ("text", "summary"))
    group = Group("train", "parallel", files, ("text", "summary"))
    assert rows_of(group, features=SUMMARISED)[0] == [
        (1, "1", ["1"], None),
        (2, "x", ["x"], None),
    ]
    files = tuple(str(tmp_path / name) for name in ("text", "summary", "score"))
    group = Group("train", "parallel", files, ("one", "other", "score"))
    _, problems = rows_of(group, features=SCORED)
    assert problems.error().where == f"{tmp_path}/score:2"  # the file that is wrong


def test_references_of_one_input_become_one_row(single, tmp_path):
    captions = lines(("a.jpg", "a dog"), ("b.jpg", "a cat"), ("a.jpg", ""), ("", "x"))
    rows, problems = rows_of(single("tsv", captions), features=CAPTIONED, bad_rows="skip")
    assert rows == [(1, "a.jpg", ["a dog", ""]), (2, "b.jpg", ["a cat"])]
    assert (problems.rows, problems.left_out) == (4, 1)
    for name, column in (("image", 0), ("caption", 1)):
        texts = [line.split("\t")[column] for line in captions.splitlines()[:3]]
        (tmp_path / name).write_text("".join(f"{text}\n" for text in texts))
    files = str(tmp_path / "image"), str(tmp_path / "caption")
    group = Group("train", "parallel", files, ("image", "caption"))
    assert rows_of(group, features=CAPTIONED)[0] == rows


def test_images_are_looked_at_where_they_are_asked_for(single, tmp_path):
    (tmp_path / "a.png").write_bytes(picture())
    group = single("tsv", lines(("a.png", "x"), ("b.png", "y")))
    options = Options.of({"features": CAPTIONED, "bad_rows": "skip"})
    problems = Problems()
    images = Images({"root": str(tmp_path)})
    assert [line for line, _ in read(group, options, problems, images)] == [1]
    assert problems.examples["row/skip"][0].text == "b.png: no such file"
    assert len(list(read(group, options, Problems()))) == 2
