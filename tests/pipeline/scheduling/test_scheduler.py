"""The loop with a clock of its own, over real files and real processes that stand for runs."""

from __future__ import annotations

import threading
import time

import pytest

from components.errors import UserError
from pipeline import lock, runs
from tests.pipeline.scheduling.desk import HOUR, NIGHTLY, START, Desk, FastClock
from tests.pipeline.scheduling.growing import CONFIG


@pytest.fixture
def desk(tmp_path, monkeypatch):
    made = Desk(tmp_path, monkeypatch)
    made.configure(NIGHTLY)
    return made


def test_it_runs_at_its_time_for_what_is_new_and_for_nothing_else(desk):
    lines = desk.serve(74, {30: lambda: desk.span(2)})
    first, second = desk.known.history
    assert lines.of("run:", "no run:") == [
        "run: new_span: nothing was trained on yet",
        f"no run: nothing has changed since run {first['run']}: pushed as tiny@1",
        "run: new_span: span 2 is new",
        f"no run: nothing has changed since run {second['run']}: pushed as tiny@2",
    ]
    assert lines.said[-1] == "stopped"


def test_each_run_is_told_in_one_line_with_its_exit_status(desk):
    desk.plan("not blessed", "pushed")
    lines = desk.serve(26, {2: lambda: desk.span(2)})
    first, second = desk.known.history
    assert [line for line in lines.of("run 2") if "has begun" not in line] == [
        f"run {first['run']}: not pushed: chrf is 3 less than that of tiny@1. (1.0 s, status 3)",
        f"run {second['run']}: pushed as tiny@2 (1.0 s, status 0)",
    ]


def test_without_conditions_a_time_is_a_run_if_something_is_new(desk):
    desk.configure("  cron: 0 3 * * *\n  timezone: Europe/Berlin\n")
    desk.serve(26)
    assert desk.statuses == ["pushed"]
    other = CONFIG.replace("schedule:", "training: {max_epochs: 2}\nschedule:")
    desk.configure("  cron: 0 3 * * *\n", other)
    desk.serve(24)
    assert desk.statuses == ["pushed", "pushed"]


def test_other_words_lead_to_a_run(desk):
    words = desk.folder / "words.txt"
    words.write_text("abc\n")
    text = CONFIG.replace("schedule:", f"tokenizer: {{type: word, words: {words}}}\nschedule:")
    desk.configure("  every: 1h\n", text)
    desk.command.append("--whole")
    desk.serve(3.5, {1.5: lambda: words.write_text("abcd\n")})
    assert desk.statuses == ["pushed", "pushed"]


def test_without_cron_it_looks_at_intervals(desk):
    desk.configure("  every: 2h\n  new_span: true\n")
    lines = desk.serve(7, {3: lambda: desk.span(2)})
    assert [line[:7] for line in lines.of("run:", "no run:")] == [
        "run: ne",
        "no run:",
        "run: ne",
        "no run:",
    ]


def test_times_missed_while_it_was_down_become_one_look(desk):
    desk.serve(1)
    desk.span(2)
    desk.now += 100 * HOUR
    lines = desk.serve(1)
    assert desk.statuses == ["pushed", "pushed"]
    (told,) = lines.of("4 times passed without a look since Mon 2026-11-23 03:00 CET")
    assert told.endswith("this look makes up for them")


def test_without_catchup_they_become_none(desk):
    desk.serve(1)
    desk.span(2)
    desk.now += 100 * HOUR
    lines = desk.serve(1, catchup=False)
    assert desk.statuses == ["pushed"]
    assert lines.of("4 times passed without a look")
    desk.serve(24, catchup=False)
    assert desk.statuses == ["pushed", "pushed"]


def test_what_is_refused_is_not_tried_again_until_something_changes(desk):
    desk.plan("pushed", "refused", "pushed")
    desk.serve(1)
    desk.span(2)
    lines = desk.serve(72)
    assert desk.statuses == ["pushed", "refused"]
    (told,) = lines.of("no run:")  # once, though it looked twice
    assert told.endswith(
        "refused: ExampleValidator: duplicates: 90% of the rows; it is not tried again with the "
        "same data and settings"
    )
    desk.span(2, count=90)  # it is mended; and it is still new, for nothing has learned from it
    desk.serve(24)
    assert desk.statuses == ["pushed", "refused", "pushed"]


def test_what_fails_is_tried_again_later_and_not_for_ever(desk):
    desk.plan(*["failed"] * 9)
    lines = desk.serve(50)
    assert desk.statuses == ["failed"] * 3
    assert desk.minutes == [30, 40, 60]  # 3 o'clock, 10 minutes later, 20 minutes later
    assert "attempt 2 of 3" in lines.of("run: attempt")[0]
    assert "that was attempt 3 of 3; it is not tried again" in lines.of("no run:")[0]


def test_a_full_disk_is_no_fault_of_the_data(desk):
    desk.plan("full", "broken", "pushed")
    desk.serve(5)
    assert desk.statuses == ["failed", "failed", "pushed"]
    assert desk.known.history[1]["text"] == "failed: data.train: there is no such file"


def test_what_is_killed_goes_on_and_waits_longer_each_time(desk):
    desk.plan("dies", "dies", "dies", "pushed")
    desk.serve(5)
    assert desk.statuses == ["killed", "killed", "killed", "pushed"]
    assert desk.minutes == [30, 30, 40, 60]


def test_a_failure_is_forgotten_when_the_data_is_another(desk):
    desk.plan("pushed", "failed", "pushed")
    desk.command.append("--whole")
    desk.serve(1)
    desk.span(2)
    desk.serve(23.6)  # to a moment after 3 o'clock
    assert desk.statuses == ["pushed", "failed"]
    (desk.folder / "data" / "train-002.tsv").unlink()
    lines = desk.serve(30)
    assert desk.statuses == ["pushed", "failed"]
    assert len(lines.of("no run: the same was tried in run")) == 1


def test_a_stop_interrupts_the_run_which_goes_on_at_the_next_start(desk):
    desk.plan("waits", "pushed")
    clock = FastClock(desk.now, 2)
    made, lines = desk.scheduler(clock)

    def stop():
        while not runs.runs_of(desk.paths) or not lock.holder(desk.paths.lock):
            time.sleep(0.05)
        clock.stops = 1

    threading.Thread(target=stop, daemon=True).start()
    with made.held():
        made.serve()
    assert lines.said[-3:] == [
        "stopping the run …",
        f"run {desk.known.history[0]['run']}: interrupted (1.0 s, status 130)",
        "stopped",
    ]
    desk.now = clock.time
    desk.serve(0.1)
    assert desk.statuses == ["interrupted", "pushed"]


def test_a_run_by_hand_is_waited_for_and_counts(desk):
    """While it goes on, its lock is held; then the same has been tried."""
    from tests.pipeline.scheduling import fake_run

    held = lock.acquire(desk.paths.lock)

    def free():
        held.release()
        assert fake_run.main(desk.folder / "tiny.yaml") == 0

    lines = desk.serve(30, {1: free})
    assert lines.of("waiting for a run, which goes on")
    assert desk.statuses == []
    (run,) = runs.runs_of(desk.paths)
    told = f"no run: the same was tried in run {run.id}, which was pushed as tiny@1"
    assert lines.of("no run:") == [told]
    desk.span(2)
    desk.serve(24)
    assert desk.statuses == ["pushed"]
    assert desk.known.history[0]["reason"] == "new_span: span 2 is new"


def test_its_own_older_run_is_none_by_hand(desk):
    desk.configure("  every: 1h\n  new_rows: 100\n")
    desk.command.append("--whole")
    second = desk.folder / "data" / "train-002.tsv"
    hours = {
        1.5: lambda: desk.span(2),
        2.5: second.unlink,
        3.5: lambda: (desk.span(2), desk.span(3, count=10)),
    }
    lines = desk.serve(5, hours)
    assert desk.statuses == ["pushed", "pushed"]
    assert lines.of("no run: new_rows") == ["no run: new_rows: 10 new rows, and 100 are needed"]


def test_after_a_run_by_hand_drift_is_measured_from_its_data(desk):
    from tests.pipeline.scheduling import fake_run

    desk.configure("  every: 1h\n  drift: {words: 0.9, oov: 0.9, lengths: 0.9}\n")
    desk.span(2)
    (desk.folder / "data" / "train-002.tsv").rename(desk.folder / "later.tsv")
    desk.serve(0.5)

    def by_hand():
        desk.plan("not blessed")
        (desk.folder / "later.tsv").rename(desk.folder / "data" / "train-002.tsv")
        fake_run.main(desk.folder / "tiny.yaml")

    lines = desk.serve(4, {0.2: by_hand, 2: lambda: desk.span(3)})
    assert desk.statuses == ["pushed"]
    assert lines.of("no run: the same was tried in run")
    assert lines.of("no run: drift: since the last training, words of source")


def test_there_is_one_scheduler_of_a_pipeline(desk):
    made, _ = desk.scheduler(FastClock(START, 1))
    other, _ = desk.scheduler(FastClock(START, 1))
    refused = pytest.raises(UserError, match="the schedule of tiny is kept by process")
    with made.held(), refused, other.held():
        pass


def test_another_time_in_the_file_counts_at_once(desk):
    lines = desk.serve(12, {2: lambda: desk.configure(NIGHTLY.replace("0 3", "0 6"))})
    assert lines.of("the configuration was changed, and is read anew")
    assert lines.of("next look Sun 2026-11-22 06:00 CET")
    assert len(lines.of("no run:")) == 1


class TestOnce:
    def once(self, desk, hours=0.0):
        desk.now += hours * HOUR
        clock = FastClock(desk.now, 1000)
        made, lines = desk.scheduler(clock)
        with made.held():
            understood = made.once()
        return understood, lines

    def test_it_waits_for_its_time(self, desk):
        understood, lines = self.once(desk)
        assert (understood, desk.statuses) == (True, [])
        assert lines.said == ["it is not time yet", "next look Sun 2026-11-22 03:00 CET"]
        self.once(desk, hours=5)
        assert desk.statuses == ["pushed"]
        self.once(desk, hours=1)
        assert desk.statuses == ["pushed"]

    def test_without_cron_it_is_always_time(self, desk):
        desk.configure("  new_span: true\n")
        self.once(desk)
        self.once(desk)
        desk.span(2)
        self.once(desk)
        assert desk.statuses == ["pushed", "pushed"]

    def test_what_cannot_be_used_is_told(self, desk):
        desk.configure("  new_span: true\n")
        (desk.folder / "data" / "eval.tsv").unlink()
        understood, _ = self.once(desk)
        assert not understood
