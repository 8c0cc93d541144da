"""Which runs pushed nothing between two versions, and what is told of them."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import pytest

from pipeline import attempts, runs
from pipeline.workspace import Workspace


@pytest.fixture
def paths(tmp_path):
    return Workspace(tmp_path).pipeline("tiny")


def at(minute):
    """A version's record with the time of its push."""
    created = datetime.fromtimestamp(60 * minute, timezone.utc).isoformat(timespec="seconds")
    return {"created": created}


def ended(paths, minute, status, **fields):
    run = runs.create(paths)
    run.update(started=60.0 * minute, status=status, **fields)
    return run.id


def test_only_those_between_the_versions_that_pushed_nothing(paths):
    before = ended(paths, 1, runs.NOT_BLESSED)
    ended(paths, 3, runs.SUCCEEDED, pushed_version="2")
    refused = ended(paths, 4, runs.NOT_BLESSED)
    failed = ended(paths, 5, runs.FAILED, failure={"error": "no"})
    ended(paths, 6, runs.SUCCEEDED)  # of some nodes only
    after = ended(paths, 9, runs.INTERRUPTED)

    def found(first, last):
        return [one["id"] for one in attempts.between(paths, first, last)]

    assert found(at(2), at(8)) == [refused, failed]
    assert found(None, at(2)) == [before]
    assert found({}, at(2)) == [before]  # a parent that is not there any more
    assert found(at(8), None) == [after]
    assert found(None, None) == [before, refused, failed, after]


def test_what_they_took_and_why_they_ended(paths):
    spans = [{"span": 9, "name": "9", "version": 2, "rows": {"train": 5}}]
    ended(paths, 1, runs.NOT_BLESSED, reason="Not blessed: worse.", data={"spans": spans})
    failure = {"node": "CorpusGen", "where": "a.tsv:3", "error": "not UTF-8"}
    ended(paths, 2, runs.FAILED, failure=failure)
    ended(paths, 3, runs.FAILED, failure={"error": "the disk is full"})
    refused, failed, other = attempts.between(paths, None, None)
    assert (refused["spans"], refused["reason"]) == (spans, "Not blessed: worse.")
    assert (failed["spans"], failed["reason"]) == ([], "CorpusGen: a.tsv:3: not UTF-8")
    assert other["reason"] == "the disk is full"


def test_a_killed_run_tells_where_it_was(paths):
    run = runs.create(paths)  # says that it goes on, and holds no lock
    events = [
        '{"kind": "plan", "nodes": ["CorpusGen", "Trainer", "Pusher"], "time": 1}',
        '{"kind": "node", "node": "CorpusGen", "state": "done", "time": 2}',
        '{"kind": "node", "node": "Trainer", "state": "running", "time": 3}',
    ]
    run.events.write_text("".join(f"{event}\n" for event in events))
    (killed,) = attempts.between(paths, None, None)
    assert (killed["status"], killed["reason"]) == (runs.KILLED, "in Trainer")


def test_a_run_of_an_older_release_has_no_reason(paths):
    ended(paths, 1, runs.NOT_BLESSED)
    (refused,) = attempts.between(paths, None, None)
    assert (refused["reason"], refused["spans"]) == ("", [])


def test_a_run_that_pushed_before_it_failed_is_none(paths):
    failure = {"node": "Reporter", "error": "the disk is full"}
    ended(paths, 1, runs.FAILED, failure=failure, pushed_version="1")
    named = ended(paths, 2, runs.FAILED, failure=failure, pushed_version=None)
    assert [one["id"] for one in attempts.between(paths, None, None)] == [named]
    assert attempts.between(paths, None, None, pushing={named}) == []


@pytest.mark.parametrize("pushed", [0, 1])
def test_a_run_that_was_killed_after_its_push_is_none(paths, pushed):
    run = runs.create(paths)
    event = {"kind": "node", "node": "Pusher", "state": "done", "time": 1}
    event["properties"] = {"pushed_model": {"pushed": pushed, "pushed_version": "1"}}
    run.events.write_text(f"{json.dumps(event)}\n")
    assert len(attempts.between(paths, None, None)) == 1 - pushed


def test_a_search_is_none(paths):
    ended(paths, 1, runs.FAILED, command="regard tune '/a b/config.yaml'")
    ended(paths, 2, runs.INTERRUPTED, command="regard tune /config.yaml")
    run = ended(paths, 3, runs.FAILED, command="regard run /tune.yaml")
    assert [one["id"] for one in attempts.between(paths, None, None)] == [run]
