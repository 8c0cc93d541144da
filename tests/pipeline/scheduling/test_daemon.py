"""The scheduler in simulated time."""

import signal
import threading
import time
from types import SimpleNamespace

import pytest

from regard.core import locks
from regard.core.errors import UserError
from regard.pipeline.runs import store
from regard.pipeline.workspace import lock_pipeline
from tests.pipeline.scheduling import fake_run
from tests.pipeline.scheduling.growing_corpus import CONFIG
from tests.pipeline.scheduling.simulation import HOUR, NIGHTLY, FakeDaemon


def test_a_run_at_the_scheduled_time_for_new_data_only(simulation):
    daemon = simulation.serve(74, {30: lambda: simulation.write_span(2)})
    first, second = simulation.state.history
    assert daemon.starting_with("run:", "no run:") == [
        "run: new_span: nothing was trained yet",
        f"no run: nothing has changed since run {first.run}: pushed as tiny@1",
        "run: new_span: span 2 is new",
        f"no run: nothing has changed since run {second.run}: pushed as tiny@2",
    ]
    assert daemon.lines[0] == "next check Sun 2026-11-22 03:00 CET"
    assert daemon.lines[-1] == "stopped"


def test_each_run_is_reported_in_one_line_with_its_exit_status(simulation):
    simulation.has_processes = True
    simulation.plan("not blessed", "pushed")
    daemon = simulation.serve(26, {2: lambda: simulation.write_span(2)})
    first, second = simulation.state.history
    assert [line for line in daemon.starting_with("run 2") if "started" not in line] == [
        f"run {first.run}: not pushed: chrf is 3 less than that of tiny@1 (1.0 s, status 3)",
        f"run {second.run}: pushed as tiny@2 (1.0 s, status 0)",
    ]


def test_without_conditions_any_change_starts_a_run(simulation):
    simulation.configure("  cron: 0 3 * * *\n  timezone: Europe/Berlin\n")
    simulation.serve(26)
    assert simulation.statuses == ["pushed"]
    changed = CONFIG.replace("schedule:", "training: {max_epochs: 2}\nschedule:")
    simulation.configure("  cron: 0 3 * * *\n", changed)
    simulation.serve(24)
    assert simulation.statuses == ["pushed", "pushed"]


def test_a_changed_word_list_starts_a_run(simulation):
    words = simulation.folder / "words.txt"
    words.write_text("abc\n")
    tokenizer = f"tokenizer: {{type: word, word_list: {words}}}\nschedule:"
    simulation.configure("  every: 1h\n", CONFIG.replace("schedule:", tokenizer))
    simulation.command.append("--whole")
    simulation.serve(3.5, {1.5: lambda: words.write_text("abcd\n")})
    assert simulation.statuses == ["pushed", "pushed"]


def test_without_cron_the_data_is_checked_at_intervals(simulation):
    simulation.configure("  every: 2h\n  new_span: true\n")
    daemon = simulation.serve(7, {3: lambda: simulation.write_span(2)})
    actions = [line.partition(":")[0] for line in daemon.starting_with("run:", "no run:")]
    assert actions == ["run", "no run", "run", "no run"]


def test_missed_times_lead_to_one_check(simulation):
    simulation.serve(1)
    simulation.write_span(2)
    simulation.now += 100 * HOUR
    daemon = simulation.serve(1)
    assert simulation.statuses == ["pushed", "pushed"]
    assert daemon.lines[0] == "missed the check of Mon 2026-11-23 03:00 CET; checking now"
    assert len(daemon.starting_with("run:", "no run:")) == 1


def test_without_catchup_missed_times_are_ignored(simulation):
    simulation.serve(1)
    simulation.write_span(2)
    simulation.now += 100 * HOUR
    simulation.configure(NIGHTLY + "  catchup: false\n")
    simulation.serve(1)
    assert simulation.statuses == ["pushed"]
    simulation.serve(24)
    assert simulation.statuses == ["pushed", "pushed"]


def test_a_refused_run_is_not_repeated_until_something_changes(simulation):
    simulation.plan("pushed", "refused", "pushed")
    simulation.serve(1)
    simulation.write_span(2)
    daemon = simulation.serve(72)
    assert simulation.statuses == ["pushed", "refused"]
    (line,) = daemon.starting_with("no run:")  # once in two checks
    assert "ExampleValidator: duplicates: 90% of the rows; not retried with the same" in line
    simulation.write_span(2, count=90)  # still new, because no run has trained on it
    simulation.serve(24)
    assert simulation.statuses == ["pushed", "refused", "pushed"]


def test_a_failed_run_is_retried_with_backoff(simulation):
    simulation.plan(*["failed"] * 9)
    daemon = simulation.serve(50)
    assert simulation.statuses == ["failed"] * 3
    assert simulation.minutes == [30, 40, 60]  # 3 o'clock, 10 minutes later, 20 minutes later
    assert "attempt 2 of 3" in daemon.starting_with("run: attempt")[0]
    assert "(attempt 3 of 3); not retried" in daemon.starting_with("no run:")[0]


def test_failures_of_the_machine_are_retried(simulation):
    simulation.plan("full", "broken", "pushed")
    simulation.serve(5)
    assert simulation.statuses == ["failed", "failed", "pushed"]
    assert simulation.state.history[1].text == "failed: data.train: there is no such file"


def test_a_killed_run_resumes_after_increasing_waits(simulation):
    simulation.plan("dies", "dies", "dies", "pushed")
    simulation.serve(5)
    assert simulation.statuses == ["killed", "killed", "killed", "pushed"]
    assert simulation.minutes == [30, 30, 40, 60]


def test_a_failure_is_forgotten_if_the_data_changes_back(simulation):
    simulation.plan("pushed", "failed", "pushed")
    simulation.command.append("--whole")
    simulation.serve(1)
    simulation.write_span(2)
    simulation.serve(23.6)  # until just after 3 o'clock
    assert simulation.statuses == ["pushed", "failed"]
    (simulation.folder / "data" / "train-002.tsv").unlink()
    daemon = simulation.serve(30)
    assert simulation.statuses == ["pushed", "failed"]
    assert len(daemon.starting_with("no run: these data and settings were already used")) == 1


def test_a_clock_set_back_during_a_run_loses_no_result(simulation, monkeypatch):
    """The daemon's clock is an hour ahead of the clock that the run reads."""
    simulation.serve(hours=1)
    simulation.write_span(2)
    ahead = SimpleNamespace(
        time=lambda: time.time() + 3600, monotonic=time.monotonic, sleep=time.sleep
    )
    monkeypatch.setattr("regard.pipeline.scheduling.daemon.time", ahead)
    simulation.serve(hours=24)
    assert simulation.statuses == ["pushed", "pushed"]
    runs = store.runs_of(simulation.paths)
    assert [attempt.run for attempt in simulation.state.history] == [run.id for run in runs]
    assert [attempt.earlier_runs for attempt in simulation.state.history] == [None, None]


def test_a_stop_interrupts_the_run_which_resumes_at_the_next_start(simulation):
    simulation.plan("waits", "pushed")
    daemon = FakeDaemon(simulation, 2)

    def stop():
        while not locks.read_holder(simulation.paths.lock).get("run"):
            time.sleep(0.05)
        daemon.stop_signals.append(signal.SIGTERM)

    threading.Thread(target=stop, daemon=True).start()
    with daemon.open():
        daemon.serve()
    assert daemon.lines[-3:] == [
        "stopping the run …",
        f"run {simulation.state.history[0].run}: interrupted (1.0 s, status 130)",
        "stopped",
    ]
    simulation.now = daemon.time
    simulation.serve(0.1)
    assert simulation.statuses == ["interrupted", "pushed"]


def test_a_manual_run_is_waited_for_and_counts(simulation):
    guard = lock_pipeline(simulation.paths.lock)

    def finish():
        guard.release()
        assert fake_run.main(simulation.folder / "tiny.yaml") == 0

    daemon = simulation.serve(30, {1: finish})
    assert daemon.starting_with("waiting for a run")
    assert simulation.statuses == []
    (run,) = store.runs_of(simulation.paths)
    (line,) = daemon.starting_with("no run:")
    assert f"these data and settings were already used by run {run.id}, which was pushed" in line
    simulation.write_span(2)
    simulation.serve(24)
    assert simulation.statuses == ["pushed"]
    assert simulation.state.history[0].reason == "new_span: span 2 is new"


def test_an_older_run_of_the_schedule_is_no_manual_run(simulation):
    simulation.configure("  every: 1h\n  new_rows: 100\n")
    simulation.command.append("--whole")
    second = simulation.folder / "data" / "train-002.tsv"
    events = {
        1.5: lambda: simulation.write_span(2),
        2.5: second.unlink,
        3.5: lambda: (simulation.write_span(2), simulation.write_span(3, count=10)),
    }
    daemon = simulation.serve(5, events)
    assert simulation.statuses == ["pushed", "pushed"]
    (line,) = daemon.starting_with("no run: new_rows")
    assert line.endswith("10 new rows of 100 required")


def test_one_daemon_per_pipeline(simulation):
    daemon, other = FakeDaemon(simulation, 1), FakeDaemon(simulation, 1)
    refused = pytest.raises(UserError, match=r"schedule of tiny is in use \(run of regard sched")
    with daemon.open(), refused, other.open():
        pass


def test_a_changed_schedule_applies_from_the_next_check(simulation):
    later = NIGHTLY.replace("0 3", "0 6")
    daemon = simulation.serve(28, {0.2: lambda: simulation.configure(later)})
    assert daemon.starting_with("next check") == [
        "next check Sun 2026-11-22 03:00 CET",
        "next check Sun 2026-11-22 06:00 CET",
        "next check Mon 2026-11-23 06:00 CET",
    ]


class TestOnce:
    def run_once(self, simulation, hours=0.0):
        simulation.now += hours * HOUR
        daemon = FakeDaemon(simulation, 1000)
        with daemon.open():
            return daemon.run_once(), daemon.lines

    def test_with_cron_only_if_due(self, simulation):
        status, lines = self.run_once(simulation)
        assert (status, simulation.statuses) == (0, [])
        assert lines == ["not due yet", "next check Sun 2026-11-22 03:00 CET"]
        self.run_once(simulation, hours=5)
        assert simulation.statuses == ["pushed"]
        self.run_once(simulation, hours=1)
        assert simulation.statuses == ["pushed"]

    def test_without_cron_always(self, simulation):
        simulation.configure("  new_span: true\n")
        self.run_once(simulation)
        self.run_once(simulation)
        simulation.write_span(2)
        self.run_once(simulation)
        assert simulation.statuses == ["pushed", "pushed"]

    @pytest.mark.parametrize(
        ("outcome", "expected"), [("pushed", 0), ("not blessed", 3), ("refused", 2), ("failed", 1)]
    )
    def test_the_exit_status_is_that_of_the_run(self, simulation, outcome, expected):
        simulation.configure("  every: 1h\n")
        simulation.plan(outcome)
        assert self.run_once(simulation)[0] == expected
