"""Runs between two versions that pushed nothing."""

import json
from datetime import datetime, timezone

import pytest

from regard.components.common import run_record
from regard.components.common.run_record import RunRecord
from regard.pipeline.lineage.failed_runs import failed_runs_between
from regard.pipeline.runs import store
from regard.pipeline.workspace import Workspace


@pytest.fixture
def paths(tmp_path):
    return Workspace(tmp_path).pipeline("tiny")


def at(minute):
    """The creation time of a version."""
    return datetime.fromtimestamp(60 * minute, timezone.utc).isoformat(timespec="seconds")


def add_run(paths, minute, status, **fields):
    run = store.create(paths)
    run.update(RunRecord(started=60.0 * minute, status=status, **fields))
    return run.id


def add_killed_run(paths, *events):
    """Adds a run that is in progress by its record, but without a lock."""
    run = store.create(paths)
    run.events.write_text("".join(f"{json.dumps({**event, 'time': 1})}\n" for event in events))


def node(name, state, **facts):
    return {"kind": "node", "node": name, "state": state, **facts}


def test_only_runs_between_the_versions_that_pushed_nothing(paths):
    before = add_run(paths, 1, run_record.NOT_BLESSED)
    add_run(paths, 3, run_record.SUCCEEDED, pushed_version="2")
    refused = add_run(paths, 4, run_record.NOT_BLESSED)
    failed = add_run(paths, 5, run_record.FAILED, failure={"error": "no"})
    add_run(paths, 6, run_record.SUCCEEDED)  # of some nodes only
    after = add_run(paths, 9, run_record.INTERRUPTED)

    def ids(first, last):
        return [run["id"] for run in failed_runs_between(paths, first, last)]

    assert ids(at(2), at(8)) == [refused, failed]
    assert ids(None, at(2)) == [before]
    assert ids("", at(2)) == [before]  # a parent that was removed
    assert ids(at(8), None) == [after]
    assert ids(None, None) == [before, refused, failed, after]


def test_spans_and_reasons(paths):
    spans = [{"span": 9, "name": "9", "version": 2, "rows": {"train": 5}}]
    add_run(paths, 1, run_record.NOT_BLESSED, reason="Not blessed: worse.", data={"spans": spans})
    add_run(paths, 1, run_record.NOT_BLESSED)
    failure = {"node": "CorpusGen", "where": "a.tsv:3", "error": "not UTF-8"}
    add_run(paths, 2, run_record.FAILED, failure=failure)
    add_run(paths, 3, run_record.FAILED, failure={"error": "the disk is full"})
    refused, unexplained, failed, other = failed_runs_between(paths, None, None)
    assert (refused["spans"], refused["reason"]) == (spans, "Not blessed: worse.")
    assert (unexplained["reason"], unexplained["spans"]) == ("", [])
    assert (failed["spans"], failed["reason"]) == ([], "CorpusGen: a.tsv:3: not UTF-8")
    assert other["reason"] == "the disk is full"


def test_a_killed_run_names_its_node(paths):
    plan = {"kind": "plan", "nodes": ["CorpusGen", "Trainer", "Pusher"]}
    add_killed_run(paths, plan, node("CorpusGen", "done"), node("Trainer", "running"))
    (killed,) = failed_runs_between(paths, None, None)
    assert (killed["status"], killed["reason"]) == (run_record.KILLED, "in Trainer")


def test_runs_that_failed_after_their_push_are_left_out(paths):
    failure = {"node": "Reporter", "error": "the disk is full"}
    add_run(paths, 1, run_record.FAILED, failure=failure, pushed_version="1")
    by_label = add_run(paths, 2, run_record.FAILED, failure=failure, pushed_version=None)
    assert [run["id"] for run in failed_runs_between(paths, None, None)] == [by_label]
    assert failed_runs_between(paths, None, None, pushing={by_label}) == []


@pytest.mark.parametrize("pushed", [0, 1])
def test_runs_that_were_killed_after_their_push_are_left_out(paths, pushed):
    properties = {"pushed_model": {"pushed": pushed, "pushed_version": "1"}}
    add_killed_run(paths, node("Pusher", "done", properties=properties))
    assert len(failed_runs_between(paths, None, None)) == 1 - pushed


def test_runs_of_a_search_are_left_out(paths):
    add_run(paths, 1, run_record.FAILED, command="regard tune '/a b/config.yaml'")
    add_run(paths, 2, run_record.INTERRUPTED, command="regard tune /config.yaml")
    last = add_run(paths, 3, run_record.FAILED, command="regard run /tune.yaml")
    assert [run["id"] for run in failed_runs_between(paths, None, None)] == [last]
