import pickle

import pytest

from regard.components.data.read_problems import ReadProblems
from regard.components.data.unreadable_file import UnreadableFile
from regard.components.settings.data import DataConfig
from regard.core.errors import UserError
from tests.components.corpora import first_error


def skipped(count, rows, file="a.tsv"):
    problems = ReadProblems(rows=rows)
    for line in range(1, count + 1):
        problems.skipped_rows += 1
        problems.add(file, line, f"wrong {line}")
    return problems


def check(problems, limit):
    section = {"train": "a", "bad_rows": "skip", "bad_rows_limit": limit}
    problems.raise_if_unusable(DataConfig.model_validate(section))


@pytest.mark.parametrize("line", [None, 7])
def test_an_unreadable_file_can_be_pickled(line):
    """As Beam's workers and the Augmenter do."""
    error = UnreadableFile("a.tsv", "the file is empty", "Remove it.", line)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.problem) == (str(error), error.problem)
    assert copy.where == ("a.tsv:7" if line else "a.tsv")


def test_limit_may_be_reached():
    check(skipped(10, 100), 0.1)
    check(skipped(29, 100), 0.29)  # as a product 0.29 is less than 29 of 100
    check(skipped(3, 3), 1.0)
    check(ReadProblems(), 0.0)


def test_limit_may_not_be_exceeded():
    error = first_error(skipped(11, 100), bad_rows="skip", bad_rows_limit=0.1)
    assert error.message == (
        "11 of 100 rows (11.00%) would be skipped; the limit is 10.00% (invalid 11). "
        "First problem: wrong 1"
    )
    assert error.where == "a.tsv:1"
    assert "`data.bad_rows_limit`" in error.remedy


def test_limit_applies_to_all_files():
    total = ReadProblems()
    total.merge(skipped(0, 80))
    total.merge(skipped(10, 20, "b.tsv"))
    check(total, 0.1)
    with pytest.raises(UserError, match="10 of 100 rows") as caught:
        check(total, 0.09)
    assert caught.value.where == "b.tsv:1"


def test_error_names_the_first_line():
    problems = ReadProblems(rows=4, skipped_rows=2)
    problems.add("a.tsv", 3, "not UTF-8")
    problems.add("a.tsv", 2, "1 column instead of 2")
    error = first_error(problems)
    assert error.where == "a.tsv:2"
    assert error.message == "1 column instead of 2 (2 invalid rows in total)"
