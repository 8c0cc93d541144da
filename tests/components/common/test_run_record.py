import json

import pytest

from regard.components.common.run_record import DONE, SUCCEEDED, Node, RunRecord
from regard.core.errors import Failure

# What Regard 0.1.0 wrote at the end of a run.
SUCCESSFUL = """
{
  "status": "succeeded", "started": 1795845418.8690095, "digest": "91f1210e700d286f",
  "runner": "local", "first": null, "last": null, "publish_anyway": true, "pid": 9780, "seed": 17,
  "regard": {"version": "0.1.0", "commit": "a1faf39d"},
  "stack": {"tensorflow": "2.21.0", "keras": "3.15.1"},
  "machine": {"system": "Linux x86_64", "python": "3.11.7", "cores": 2, "memory_bytes": 252760},
  "id": "20261128-055658", "name": "base",
  "command": "regard run /home/pipelines/base/runs/20261128-055658/config.yaml --publish-anyway",
  "config": "/text/base.yaml", "failure": null, "ended": 1795845778.6264167, "seconds": 359.198,
  "nodes": {
    "CorpusGen": {"state": "cached", "seconds": 1.076},
    "Trainer": {"state": "done", "seconds": 143.568, "peak_bytes": 1458814976}
  },
  "data_fingerprint": "82ed3732", "word_vectors": {}, "parent": null, "start": null,
  "ensemble": [], "augmentation": [], "plan": "ea12d9a0da3f13ae",
  "metadata": [294912, 1795845777498315518],
  "data": {"rows": {"train": 2272, "eval": 129, "test": 99}, "findings": ["overlap: 42 rows"]},
  "scores": [
    {"name": "bleu", "label": "BLEU", "value": 5.87, "signature": "nrefs:1", "scale": 100.0,
     "higher_is_better": true, "interval": {"low": 2.26, "high": 9.33, "samples": 100},
     "baselines": [{"label": "copy of the input", "value": 1.41}]},
    {"name": "aer", "label": "AER", "value": null}
  ],
  "blessed": false, "reason": "Failed: 2.02% of the outputs are repetitive.",
  "pushed_version": "1"
}
"""
FAILED = """
{
  "status": "failed", "started": 1795844978.046748, "id": "20261128-054938", "name": "base",
  "runner": "beam", "first": "Trainer", "last": "Evaluator",
  "failure": {"node": "ExampleValidator", "user": false, "error": "AttributeError: no attribute"},
  "nodes": {"CorpusGen": {"state": "done", "seconds": 3.2}, "Trainer": {"state": "waiting"}},
  "blessed": null, "reason": null, "pushed_version": null
}
"""


@pytest.mark.parametrize("text", [SUCCESSFUL, FAILED])
def test_old_records_are_read_and_written_unchanged(text):
    content = json.loads(text)
    assert RunRecord.from_dict(content).to_dict() == content


def test_fields_of_an_old_record():
    record = RunRecord.from_dict(json.loads(SUCCESSFUL))
    assert (record.id, record.name, record.status) == ("20261128-055658", "base", SUCCEEDED)
    trainer = Node(name="Trainer", state=DONE, seconds=143.568, peak_bytes=1458814976)
    assert record.nodes["Trainer"] == trainer
    assert record.metadata == [294912, 1795845777498315518]
    assert record.scores[1]["value"] is None
    failed = RunRecord.from_dict(json.loads(FAILED))
    assert (failed.first, failed.last, failed.pushed_version) == ("Trainer", "Evaluator", None)
    assert failed.failure == Failure(node="ExampleValidator", error="AttributeError: no attribute")
    assert failed.seed is None


def test_unknown_fields_are_kept_and_invalid_ones_left_out():
    content = {"id": "1", "new": {"a": 1}, "nodes": {"A": 3}, "seconds": "soon", "parent": 4}
    record = RunRecord.from_dict(content)
    assert record.to_dict() == {"id": "1", "new": {"a": 1}, "parent": "4"}
    assert (record.nodes, record.seconds) == (None, None)


def test_unknown_facts_of_a_failure_are_not_written():
    failure = Failure(node=None, error="e", where=None, user=True)
    assert failure.to_dict() == {"error": "e", "user": True}
    assert RunRecord(failure=failure).to_dict() == {"failure": {"error": "e", "user": True}}


def test_events_of_a_node_have_its_results():
    node = Node(name="A", state=DONE, seconds=2.0, outputs={"model": "/m"}, notes=["n"])
    event = {"node": "A", "state": "done", "seconds": 2.0, "outputs": {"model": "/m"}}
    assert node.to_event() == event
    other = Node(name="A", text="step 5", fraction=0.5)
    other.apply_event(event)
    assert other == node.model_copy(update={"notes": []})
