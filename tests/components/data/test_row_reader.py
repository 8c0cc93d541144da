import gzip

import pytest

from regard.components.data.row_reader import join_references
from regard.components.data.sources import FileGroup
from regard.core.features import Feature
from regard.core.kinds import POINTS, TEXT
from tests.components.corpora import (
    CAPTIONED,
    SCORED,
    SUMMARISED,
    first_error,
    read_group,
    table,
    unreadable,
    write_files,
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


@pytest.mark.parametrize(
    ("names", "section"),
    [("de\tid\ten", {"columns": {"source": "en", "target": "de"}}), ("target\tid\tsource", {})],
)
def test_tsv_columns_by_header(single, names, section):
    group = single("tsv", f"\ufeff{names}\neins\t1\tone\n")
    assert read_group(group, header=True, **section)[0] == [(2, "one", "eins")]


def test_tsv_has_no_quoting(single):
    rows, _ = read_group(single("tsv", '"a\tb"\u2028c\n'))
    assert rows == [(1, '"a', 'b"\u2028c')]


def test_tsv_rows_with_missing_or_surplus_columns(single):
    group = single("tsv", "a\tb\nonly\nc\td\te\nf\tg\n")
    rows, problems = read_group(group)
    assert rows == [(1, "a", "b"), (4, "f", "g")]
    assert [p.line for p in problems.examples] == [2, 3]
    assert "1 column instead of 2 as the first row (line 1)" in first_error(problems).message


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"columns": {"source": 1, "target": 3}}, "has no column 3 for target"),
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
    rows, problems = read_group(
        single("tsv", table(("2.5", "a", "b"), ("x", "a", "b"))), features=SCORED
    )
    assert rows == [(1, 2.5, "a", "b")]
    error = first_error(problems)
    assert error.where.endswith("a.tsv:2")
    assert error.message == "score 'x' is not a number"
    assert error.remedy == "Fix the file, or set `data.bad_rows` to skip."


def test_optional_column(single):
    assert read_group(single("tsv", table("ab")), features=SUMMARISED)[0] == [(1, "a", ["b"], None)]
    rows, _ = read_group(single("tsv", table("abc", ("d", "e", ""))), features=SUMMARISED)
    assert rows == [(1, "a", ["b"], "c"), (2, "d", ["e"], None)]


@pytest.fixture
def sides(tmp_path):
    """Writes files of several sides, and returns their group."""

    def write(**contents: str) -> FileGroup:
        write_files(tmp_path, contents)
        files = tuple(str(tmp_path / name) for name in contents)
        return FileGroup("train", "parallel", files, tuple(contents))

    return write


def test_optional_side(sides):
    rows, _ = read_group(sides(text="1\nx\n", summary="2\ny\n"), features=SUMMARISED)
    assert rows == [(1, "1", ["2"], None), (2, "x", ["y"], None)]


def test_error_names_the_side(sides, tmp_path):
    group = sides(score="1\nx\n", one="a\nb\n", other="c\nd\n")
    assert first_error(read_group(group, features=SCORED)[1]).where == f"{tmp_path}/score:2"


def test_references_of_one_input_are_joined(single, sides):
    captions = table(("a.jpg", "a dog"), ("b.jpg", "a cat"), ("a.jpg", ""), ("", "x"))
    rows, problems = read_group(single("tsv", captions), features=CAPTIONED, bad_rows="skip")
    assert rows == [(1, "a.jpg", ["a dog", ""]), (2, "b.jpg", ["a cat"])]
    assert (problems.rows, problems.skipped_rows) == (4, 1)
    group = sides(image="a.jpg\nb.jpg\na.jpg\n", caption="a dog\na cat\n\n")
    assert read_group(group, features=CAPTIONED)[0] == rows


def test_join_references():
    by = Feature("by", TEXT, role="extra", optional=True)
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
    features = [Feature("text", TEXT), Feature("at", POINTS), CAPTIONED[1]]
    rows = [
        (1, [" caf\u00e9", [0.1, 0.0], ["one"]]),
        (2, ["cafe\u0301", [0.1, 0.0], ["two"]]),
        (3, ["caf\u00e9", [0.1, 0.5], ["three"]]),
    ]
    joined = [(line, values[2]) for line, values in join_references(rows, features)]
    assert joined == [(1, ["one", "two"]), (3, ["three"])]


def test_join_references_ignores_missing_values():
    features = [Feature("text", TEXT), Feature("more", TEXT, multiple=True, optional=True)]
    rows = [(1, ["a", None]), (2, ["a", ["x"]]), (3, ["a", None]), (4, ["b", None])]
    assert list(join_references(rows, features)) == [(1, ["a", ["x"]]), (4, ["b", None])]
