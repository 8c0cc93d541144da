"""Messages about rows that cannot be split."""

import pytest

from regard.components.data.corpus_plan import CorpusPlan, survey_corpus
from regard.core.errors import UserError
from tests.components.corpora import CAPTIONED, picture, resolved, table, write_files


def error_of(folder, rows, *arguments, **section) -> UserError:
    write_files(folder, {"a.tsv": table(*rows)})
    section = {"split": {"eval": 0.05, "test": 0.05}, **section}
    with pytest.raises(UserError) as caught:
        survey_corpus(CorpusPlan(resolved(folder, *arguments, train="a.tsv", **section)))
    assert caught.value.where == "data.split"
    return caught.value


def test_a_constant_source(tmp_path):
    rows = [("eng", "fra", f"one {i}", f"un {i}") for i in range(200)]
    error = error_of(tmp_path, rows, columns={"source": 1, "target": 2})
    assert "only one value of source" in error.message
    assert "source 'eng', target 'fra'" in error.message
    assert "data.columns" in error.remedy
    assert "seed" not in error.remedy
    assert "data.split.by" not in error.remedy  # the target is constant too


def test_equal_rows(tmp_path):
    error = error_of(tmp_path, [("Good morning", "Bonjour")] * 200)
    assert "only one value of source" in error.message
    assert "other rows" in error.remedy


def test_another_feature_could_decide(tmp_path):
    error = error_of(tmp_path, [("same", f"text {i}") for i in range(200)])
    assert "`data.split.by: target`" in error.remedy
    error = error_of(tmp_path, [(f"text {i}", "x") for i in range(200)], split={"by": "target"})
    assert "only one value of target" in error.message
    assert "`data.split.by: source`" in error.remedy


def test_few_values(tmp_path):
    error = error_of(tmp_path, [(f"s{i % 3}", f"t{i % 2}") for i in range(600)])
    assert "only 3 different values of source" in error.message


def test_too_few_rows(tmp_path):
    error = error_of(tmp_path, [("a", "b"), ("c", "d")])
    assert "different" not in error.message
    assert "Add rows" in error.remedy


def test_one_image(tmp_path):
    write_files(tmp_path, {"a.png": picture()})
    rows = [("a.png", f"caption {i}") for i in range(50)]
    error = error_of(tmp_path, rows, CAPTIONED)
    assert "1 row cannot be split" in error.message  # the captions of an image are one row


def test_rows_that_checks_drop_do_not_count(tmp_path):
    rows = [*[("same", f"text {i}") for i in range(200)], *[(f"a {i}", " ") for i in range(20)]]
    checks = {"empty_side": {"action": "drop"}, "length_ratio": None}
    error = error_of(tmp_path, rows, checks=checks, bad_rows_limit=0.5)
    assert "only one value of source" in error.message
