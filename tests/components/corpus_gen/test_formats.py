from __future__ import annotations

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from components.corpus_gen.formats import Options, read
from components.corpus_gen.problems import Broken, Problems
from components.corpus_gen.sources import Group


def rows_of(group, **section):
    problems = Problems()
    rows = [(line, *values) for line, values in read(group, Options.of(section), problems)]
    return rows, problems


def refusal(group, **section) -> Broken:
    with pytest.raises(Broken) as caught:
        rows_of(group, **section)
    return caught.value


@pytest.fixture
def parallel(tmp_path):
    def make(source: bytes, target: bytes) -> Group:
        (tmp_path / "a.en").write_bytes(source)
        (tmp_path / "a.de.gz").write_bytes(gzip.compress(target))
        return Group("train", "parallel", (str(tmp_path / "a.en"), str(tmp_path / "a.de.gz")))

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


def test_jsonl_takes_keys(single):
    group = single("jsonl", '{"en": "one\\u2028", "de": "eins", "x": 1}\n')
    rows, _ = rows_of(group, columns={"source": "en", "target": "de"})
    assert rows == [(1, "one\u2028", "eins")]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"source": "a", "target": ', "not JSON"),
        ('{"source": "a"}', "no key 'target'"),
        ('{"source": "a", "target": 3}', "the value of 'target' is not a string"),
        ('["a", "b"]', "not a JSON object"),
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_jsonl_bad_rows(single, line, told):
    good = json.dumps({"source": "a", "target": "b"})
    group = single("jsonl", f"{good}\n{line}\n{good}\n")
    rows, problems = rows_of(group, bad_rows="skip")
    assert [row[0] for row in rows] == [1, 3]
    assert told in problems.examples["row/skip"][0].text
    _, problems = rows_of(group)
    assert problems.error().where.endswith("a.jsonl:2")


def test_jsonl_escapes_that_are_no_text(single):
    group = single("jsonl", '{"source": "\\ud800", "target": "b\\u0000"}\n')
    rows, problems = rows_of(group, encoding_errors="skip")
    assert rows == []
    assert problems.counts == {"encoding/skip": 1, "nul/skip": 1}
    rows, _ = rows_of(group, encoding_errors="replace")
    assert rows[0][2] == "b\ufffd"
    rows[0][1].encode("utf-8")


def parquet(tmp_path, **columns) -> Group:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=2)
    return Group("train", "parquet", (str(path),))


def test_parquet_takes_columns(tmp_path):
    group = parquet(
        tmp_path,
        id=[1, 2, 3],
        target=pa.array(["eins", None, "drei"]).dictionary_encode(),
        source=["one", "two", "three"],
    )
    rows, problems = rows_of(group, bad_rows="skip")
    assert rows == [(1, "one", "eins"), (3, "three", "drei")]
    assert problems.examples["row/skip"][0].text == "no value for 'target'"


def test_parquet_bytes_that_are_not_utf8(tmp_path):
    group = parquet(tmp_path, source=[b"one", b"\xff"], target=["eins", "zwei"])
    rows, problems = rows_of(group, encoding_errors="skip")
    assert rows == [(1, "one", "eins")]
    assert problems.examples["encoding/skip"][0].line == 2


def test_parquet_without_the_column(tmp_path):
    broken = refusal(parquet(tmp_path, source=["a"], targets=["b"]))
    assert "no column is called 'target'" in str(broken)
    assert "Did you mean 'targets'?" in broken.problem.remedy


def test_parquet_with_numbers(tmp_path):
    assert "holds int64, not strings" in str(refusal(parquet(tmp_path, source=[1], target=["b"])))


def test_parquet_that_is_none(single):
    assert "not a readable Parquet file" in str(refusal(single("parquet", "PAR1 no more")))
