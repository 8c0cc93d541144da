from __future__ import annotations

import pytest
import yaml

from pipeline import runs
from pipeline.difference import difference, flattened
from pipeline.workspace import Workspace


def score(name, value, low, high, **more):
    interval = {"low": low, "high": high, "samples": 1000}
    return {"name": name, "value": value, "signature": "s", "interval": interval, **more}


@pytest.fixture
def pair(tmp_path):
    """Makes two runs of given configurations and records."""

    def make(configs, records):
        found = []
        for config, record in zip(configs, records, strict=True):
            run = runs.create(Workspace(tmp_path).pipeline("tiny"))
            run.update(**record)
            run.config.write_text(yaml.safe_dump(config, sort_keys=False))
            found.append(run)
        return found

    return make


def test_a_configuration_becomes_one_level():
    nested = {"a": {"b": 1, "none": {}}, "files": ["x", "y"], "sections": [{"k": 1}, {"k": 2}]}
    assert flattened(nested) == {
        "a.b": 1,
        "a.none": {},
        "files": ["x", "y"],
        "sections.0.k": 1,
        "sections.1.k": 2,
    }


def test_a_run_whose_process_is_gone_was_killed(pair):
    found = difference(*pair(({}, {}), ({}, {"status": runs.FAILED})))
    assert (found["a"]["status"], found["b"]["status"]) == (runs.KILLED, runs.FAILED)


def test_only_keys_that_differ_are_told_with_the_sides_that_have_them(pair):
    configs = (
        {"name": "tiny", "model": {"units": 128, "attention": {"score": "dot"}}},
        {"name": "tiny", "model": {"units": 256, "attention": None}},
    )
    assert difference(*pair(configs, ({}, {})))["config"] == [
        {"key": "model.units", "a": 128, "b": 256},
        {"key": "model.attention.score", "a": "dot"},
        {"key": "model.attention", "b": None},
    ]


def test_data_that_differ(pair):
    spans = [{"name": "7", "rows": {"train": 5}}]
    first = {"rows": {"train": 5}, "findings": ["both", "one"], "spans": spans}
    records = (
        {"data_fingerprint": "f1", "data": first},
        {"data_fingerprint": "f2", "data": {"rows": {"train": 6}, "findings": ["both"]}},
    )
    data = difference(*pair(({}, {}), records))["data"]
    assert data == {
        "a": {"fingerprint": "f1", "rows": {"train": 5}, "spans": spans, "findings": ["one"]},
        "b": {"fingerprint": "f2", "rows": {"train": 6}, "spans": [], "findings": []},
        "same": False,
    }


def test_data_of_a_run_that_did_not_tell_it_are_neither_same_nor_other(pair):
    assert difference(*pair(({}, {}), ({"data_fingerprint": "f1"}, {})))["data"]["same"] is None


def test_scores_are_compared_with_their_intervals(pair):
    a = [
        score("bleu", 30.0, 29.0, 31.0),
        score("aer", 0.3, 0.28, 0.32, higher_is_better=False),
        score("chrf", 50.0, 49.0, 51.0),
        score("gone", 1.0, 0.9, 1.1),
    ]
    b = [
        score("bleu", 30.5, 29.5, 31.5),
        score("aer", 0.4, 0.38, 0.42, higher_is_better=False),
        {**score("chrf", 60.0, 59.0, 61.0), "signature": "other"},
    ]
    bleu, aer, chrf, gone = difference(*pair(({}, {}), ({"scores": a}, {"scores": b})))["scores"]
    assert (bleu["difference"], bleu["better"], bleu["intervals_overlap"]) == (0.5, "b", True)
    assert (aer["better"], aer["intervals_overlap"]) == ("a", False)
    assert chrf["comparable"] is False
    assert "difference" not in chrf
    assert "b" not in gone
    assert "comparable" not in gone


def test_a_score_that_is_undefined_has_no_difference(pair):
    undefined = {**score("spearman", None, 0.0, 0.0)}
    records = ({"scores": [undefined]}, {"scores": [score("spearman", 0.5, 0.4, 0.6)]})
    (told,) = difference(*pair(({}, {}), records))["scores"]
    assert told["comparable"] is True
    assert "difference" not in told


def test_a_cached_node_tells_no_seconds(pair):
    trained = {"state": "done", "seconds": 20.0, "peak_bytes": 7}
    records = (
        {"nodes": {"Trainer": trained, "Pusher": {"state": "done", "seconds": 1.0}}},
        {"nodes": {"Trainer": {"state": "cached", "seconds": 0.1}}},
    )
    assert difference(*pair(({}, {}), records))["nodes"] == [
        {"name": "Trainer", "a": trained, "b": {"state": "cached"}},
        {"name": "Pusher", "a": {"state": "done", "seconds": 1.0}},
    ]


def test_code_and_libraries_that_differ(pair):
    records = (
        {"regard": {"version": "1", "commit": "c1"}, "stack": {"keras": "3.1", "numpy": "2"}},
        {"regard": {"version": "1"}, "stack": {"keras": "3.2", "numpy": "2"}},
    )
    found = difference(*pair(({}, {}), records))
    assert found["regard"] == [{"key": "commit", "a": "c1"}]
    assert found["stack"] == [{"key": "keras", "a": "3.1", "b": "3.2"}]
    assert found["machine"] == []
