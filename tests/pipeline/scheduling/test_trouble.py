"""What may go wrong around the loop: a broken file, missing data, a full disk, a wrong clock."""

from __future__ import annotations

import errno
import os

import pytest

from components.errors import UserError
from pipeline.scheduling import state
from tests.pipeline.scheduling.desk import HOUR, NIGHTLY, START, Desk, FastClock
from tests.pipeline.scheduling.growing import CONFIG


@pytest.fixture
def desk(tmp_path, monkeypatch):
    made = Desk(tmp_path, monkeypatch)
    made.configure(NIGHTLY)
    return made


def test_a_clock_that_was_ahead_stops_nothing(desk):
    desk.now += 1000 * HOUR
    desk.plan("failed", "pushed")
    desk.serve(24)
    desk.now = START
    lines = desk.serve(25)
    assert desk.statuses[-1] == "pushed"
    told = "the clock was set back: the last look was at "
    assert [line[: len(told)] for line in lines.said].count(told) == 1
    assert lines.of("no run:")  # at 3 o'clock


def test_a_broken_configuration_is_told_and_outlived(desk):
    good = (desk.folder / "tiny.yaml").read_text()
    lines = desk.serve(
        60,
        {
            1: lambda: desk.span(2),
            2: lambda: (desk.folder / "tiny.yaml").write_text(good + "\nnonsense: 1\n"),
            25.1: lambda: (desk.folder / "tiny.yaml").write_text(good),
        },
    )
    broken = lines.of("the configuration cannot be used: ")
    assert len(broken) == 1  # and not at 3 o'clock again
    assert "nonsense: unknown key" in broken[0]
    assert desk.statuses == ["pushed", "pushed"]
    # It was mended at 3:36, between two looks, and the time of 3 o'clock was not lost.
    assert desk.minutes[1] in (1506, 1507)
    assert lines.of("the configuration was changed, and is read anew")


def test_a_file_broken_when_another_try_is_due_is_tried_soon_after(desk):
    good = (desk.folder / "tiny.yaml").read_text()
    desk.plan("failed", "pushed")
    hours = {
        0.6: lambda: (desk.folder / "tiny.yaml").write_text(good + "\nnonsense: 1\n"),
        0.9: lambda: (desk.folder / "tiny.yaml").write_text(good),
    }
    desk.serve(3, hours)
    assert desk.statuses == ["failed", "pushed"]
    assert desk.minutes[1] <= 55


def test_data_that_cannot_be_read_is_told_and_outlived(desk):
    path = desk.folder / "data" / "eval.tsv"
    text = path.read_text()
    lines = desk.serve(30, {0: path.unlink, 1: lambda: path.write_text(text)})
    assert len(lines.of("the data cannot be used: data.eval: ")) == 1
    assert desk.statuses == ["pushed"]
    assert desk.minutes == [60]  # at 3 o'clock, and every 10 minutes since


def test_a_full_disk_is_told_and_outlived(desk, monkeypatch):
    write, full = state.write, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "state.json")

    def fail(*_):
        raise full

    hours = {
        0.4: lambda: monkeypatch.setattr(state, "write", fail),
        0.6: lambda: monkeypatch.setattr(state, "write", write),
    }
    lines = desk.serve(2, hours)
    assert len(lines.of("state.json: No space left on device; it is tried again")) == 1
    assert desk.statuses[-1] == "pushed"


def test_a_disk_that_is_full_while_a_run_goes_on_loses_nothing_of_it(desk, monkeypatch):
    desk.plan("broken", "pushed")
    write, refused = state.write, []

    def fail(folder, known):
        if "pid" in (known.open or {}):
            refused.append(known.open["pid"])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(folder, known)

    monkeypatch.setattr(state, "write", fail)
    lines = desk.serve(0.6)
    assert len(refused) == 1
    assert lines.of("the run: ") == [
        "the run: failed: data.train: there is no such file (status 2)"
    ]
    assert desk.statuses == ["failed"]  # and not killed, which would be tried again at once


def test_a_state_that_cannot_be_written_before_the_run_starts_none(desk, monkeypatch):
    write, refused = state.write, []

    def fail(folder, known):
        if known.open is not None and not refused:
            refused.append(known.open)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(folder, known)

    monkeypatch.setattr(state, "write", fail)
    desk.serve(0.6)
    assert len(refused) == 1
    assert desk.statuses == ["pushed"]


def test_a_disk_that_is_full_at_the_start_is_told(desk, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(state, "write", fail)
    with pytest.raises(UserError, match="cannot be kept: No space left on device") as caught:
        desk.serve(1)
    assert "Free some space" in caught.value.remedy


def test_what_cannot_be_taken_in_at_the_start_is_tried_again(desk, monkeypatch):
    with desk.scheduler(FastClock(START, 1))[0].held():
        pass
    tried = {"key": "k", "number": 1, "kills": 0, "started": START, "reason": "", "pid": 0}
    look = {"key": "k", "groups": [], "spans": {}}
    state.write(desk.paths.schedule, state.State(since=START, attempt={**tried, "look": look}))
    write, failing = state.write, [1]

    def fail(folder, known):
        if failing:
            failing.pop()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(folder, known)

    monkeypatch.setattr(state, "write", fail)
    lines = desk.serve(0.2)
    assert lines.of("the run: ") == ["the run: ended before it began"]
    assert lines.of("No space left on device; it is tried again")
    assert desk.statuses[0] == "killed"


def test_another_name_in_the_file_is_another_pipeline(desk):
    other = CONFIG.replace("name: tiny", "name: other")
    lines = desk.serve(2, {0.2: lambda: desk.configure(NIGHTLY, other)})
    told = lines.of("the configuration cannot be used: ")
    assert len(told) == 1
    assert told[0].endswith("tiny.yaml: name: the name is other now, and was tiny")
    assert desk.statuses == []
