import pytest
import yaml

from regard.pipeline import run_store
from regard.pipeline.run_diff import diff_runs, flatten
from regard.pipeline.workspace import Workspace


def score(name, value, low, high, **more):
    interval = {"low": low, "high": high, "samples": 1000}
    return {"name": name, "value": value, "signature": "s", "interval": interval, **more}


@pytest.fixture
def pair(tmp_path):
    """Creates two runs with the given configurations and records."""

    def make(configs, records):
        runs = []
        for config, record in zip(configs, records, strict=True):
            run = run_store.create(Workspace(tmp_path).pipeline("tiny"))
            run.update(**record)
            run.config.write_text(yaml.safe_dump(config, sort_keys=False))
            runs.append(run)
        return runs

    return make


def test_flatten():
    nested = {"a": {"b": 1, "none": {}}, "files": ["x", "y"], "sections": [{"k": 1}, {"k": 2}]}
    assert flatten(nested) == {
        "a.b": 1,
        "a.none": {},
        "files": ["x", "y"],
        "sections.0.k": 1,
        "sections.1.k": 2,
    }


def test_run_without_a_process_was_killed(pair):
    diff = diff_runs(*pair(({}, {}), ({}, {"status": run_store.FAILED})))
    assert (diff["a"]["status"], diff["b"]["status"]) == (run_store.KILLED, run_store.FAILED)


def test_config_has_only_keys_that_differ(pair):
    configs = (
        {"name": "tiny", "model": {"units": 128, "attention": {"score": "dot"}}},
        {"name": "tiny", "model": {"units": 256, "attention": None}},
    )
    assert diff_runs(*pair(configs, ({}, {})))["config"] == [
        {"key": "model.units", "a": 128, "b": 256},
        {"key": "model.attention.score", "a": "dot"},
        {"key": "model.attention", "b": None},
    ]


def test_different_data(pair):
    spans = [{"name": "7", "rows": {"train": 5}}]
    first = {"rows": {"train": 5}, "findings": ["both", "one"], "spans": spans}
    records = (
        {"data_fingerprint": "f1", "data": first},
        {"data_fingerprint": "f2", "data": {"rows": {"train": 6}, "findings": ["both"]}},
    )
    data = diff_runs(*pair(({}, {}), records))["data"]
    assert data == {
        "a": {"fingerprint": "f1", "rows": {"train": 5}, "spans": spans, "findings": ["one"]},
        "b": {"fingerprint": "f2", "rows": {"train": 6}, "spans": [], "findings": []},
        "same": False,
    }


def test_data_without_a_fingerprint_are_neither_same_nor_different(pair):
    assert diff_runs(*pair(({}, {}), ({"data_fingerprint": "f1"}, {})))["data"]["same"] is None


def test_scores_with_intervals(pair):
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
    bleu, aer, chrf, removed = diff_runs(*pair(({}, {}), ({"scores": a}, {"scores": b})))["scores"]
    assert (bleu["difference"], bleu["better"], bleu["intervals_overlap"]) == (0.5, "b", True)
    assert (aer["better"], aer["intervals_overlap"]) == ("a", False)
    assert chrf["comparable"] is False
    assert "difference" not in chrf
    assert "b" not in removed
    assert "comparable" not in removed


def test_undefined_score_has_no_difference(pair):
    undefined = {**score("spearman", None, 0.0, 0.0)}
    records = ({"scores": [undefined]}, {"scores": [score("spearman", 0.5, 0.4, 0.6)]})
    (score_diff,) = diff_runs(*pair(({}, {}), records))["scores"]
    assert score_diff["comparable"] is True
    assert "difference" not in score_diff


def test_cached_node_has_no_seconds(pair):
    trained = {"state": "done", "seconds": 20.0, "peak_bytes": 7}
    records = (
        {"nodes": {"Trainer": trained, "Pusher": {"state": "done", "seconds": 1.0}}},
        {"nodes": {"Trainer": {"state": "cached", "seconds": 0.1}}},
    )
    assert diff_runs(*pair(({}, {}), records))["nodes"] == [
        {"name": "Trainer", "a": trained, "b": {"state": "cached"}},
        {"name": "Pusher", "a": {"state": "done", "seconds": 1.0}},
    ]


def test_different_code_and_libraries(pair):
    records = (
        {"regard": {"version": "1", "commit": "c1"}, "stack": {"keras": "3.1", "numpy": "2"}},
        {"regard": {"version": "1"}, "stack": {"keras": "3.2", "numpy": "2"}},
    )
    diff = diff_runs(*pair(({}, {}), records))
    assert diff["regard"] == [{"key": "commit", "a": "c1"}]
    assert diff["stack"] == [{"key": "keras", "a": "3.1", "b": "3.2"}]
    assert diff["machine"] == []
