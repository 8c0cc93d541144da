from __future__ import annotations

import pytest

from components.corpus_gen.problems import Problems
from components.errors import UserError


def skipped(count, rows, file="a.tsv"):
    problems = Problems(rows=rows)
    for line in range(1, count + 1):
        problems.left_out += 1
        problems.add("row", "skip", file, line, f"wrong {line}")
    return problems


def test_the_limit_may_be_reached():
    skipped(10, 100).refuse(0.1)
    skipped(29, 100).refuse(0.29)  # as a product 0.29 is less than 29 of 100
    skipped(3, 3).refuse(1.0)
    Problems().refuse(0.0)


def test_the_limit_may_not_be_passed():
    with pytest.raises(UserError) as caught:
        skipped(11, 100).refuse(0.1)
    error = caught.value
    assert error.message == (
        "11 of 100 rows (11.00%) would be left out; the limit is 10.00%; the first: wrong 1"
    )
    assert error.where == "a.tsv:1"
    assert "`data.bad_rows_limit`" in error.remedy
    with pytest.raises(UserError, match=r"1 of 100 rows \(1.00%\)"):
        skipped(1, 100).refuse(0.0)


def test_the_limit_is_of_the_whole_run():
    whole = Problems()
    whole.merge(skipped(0, 80))
    whole.merge(skipped(10, 20, "b.tsv"))
    whole.refuse(0.1)
    with pytest.raises(UserError, match="10 of 100 rows") as caught:
        whole.refuse(0.09)
    assert caught.value.where == "b.tsv:1"


def test_the_first_row_is_named_whatever_was_noted_first():
    problems = Problems(rows=4, left_out=2)
    problems.add("encoding", "skip", "a.tsv", 3, "not UTF-8")
    problems.add("row", "skip", "a.tsv", 2, "1 column, not 2")
    with pytest.raises(UserError, match="the first: 1 column, not 2") as caught:
        problems.refuse(0.1)
    assert caught.value.where == "a.tsv:2"


def test_what_may_not_be_skipped_is_told_before_the_limit():
    problems = skipped(50, 100)
    problems.add("nul", "fail", "a.tsv", 60, "a NUL character")
    with pytest.raises(UserError, match="a NUL character"):
        problems.refuse(0.1)


def test_problems_survive_as_plain_data():
    problems = skipped(2, 5)
    assert Problems.from_json(problems.to_json()) == problems
    assert Problems.from_json(Problems().to_json()) == Problems()
