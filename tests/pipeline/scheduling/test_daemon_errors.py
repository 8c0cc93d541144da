"""The scheduler with a broken file, missing data, a full disk, a wrong clock."""

import errno
import os

import pytest

from regard.core.errors import UserError
from regard.pipeline.scheduling import state
from tests.pipeline.scheduling.growing_corpus import CONFIG
from tests.pipeline.scheduling.simulation import HOUR, NIGHTLY, START, FakeDaemon

DISK_FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "state.json")


@pytest.fixture
def failing_write(monkeypatch):
    """Makes writing the state fail while a condition holds; returns the states refused."""
    write, refused = state.write_state, []

    def fail_if(condition):
        def attempt(folder, content):
            if condition(content):
                refused.append(content)
                raise DISK_FULL
            write(folder, content)

        monkeypatch.setattr(state, "write_state", attempt)
        return refused

    return fail_if


def test_a_clock_that_was_set_back(simulation):
    simulation.now += 1000 * HOUR
    simulation.serve(24)
    simulation.write_span(2)
    simulation.now = START
    simulation.serve(25)
    assert simulation.statuses == ["pushed", "pushed"]
    assert simulation.minutes[-1] == 30  # at 3 o'clock


def test_a_broken_configuration_is_reported_once_and_retried(simulation):
    events = {
        1: lambda: simulation.write_span(2),
        2: lambda: simulation.configure(NIGHTLY + "nonsense: 1\n"),
        25.1: lambda: simulation.configure(NIGHTLY),
    }
    daemon = simulation.serve(60, events)
    (line,) = daemon.starting_with("the configuration cannot be used: ")
    assert "nonsense: unknown key" in line
    assert simulation.statuses == ["pushed", "pushed"]
    assert simulation.minutes[1] == 1510  # ten minutes after the last try, not the next night


def test_unreadable_data_is_reported_once_and_retried(simulation):
    path = simulation.folder / "data" / "eval.tsv"
    text = path.read_text()
    daemon = simulation.serve(30, {0: path.unlink, 1: lambda: path.write_text(text)})
    assert len(daemon.starting_with("the data cannot be used: ")) == 1
    assert simulation.minutes == [60]  # at 3 o'clock and every 10 minutes from then on


def test_a_full_disk_is_reported_once_and_retried(simulation, failing_write):
    is_full = []
    failing_write(lambda _: is_full)
    daemon = simulation.serve(2, {0.4: lambda: is_full.append(1), 0.6: is_full.clear})
    assert len(daemon.starting_with("state.json: No space left on device; retrying")) == 1
    assert simulation.statuses[-1] == "pushed"


def test_a_disk_that_is_full_during_a_run(simulation, failing_write):
    simulation.plan("broken", "pushed")

    def has_process(content):
        return content.open_attempt is not None and content.open_attempt.pid is not None

    refused = failing_write(has_process)
    daemon = simulation.serve(0.6)
    assert len(refused) == 1
    expected = "the run: failed: data.train: there is no such file (status 2)"
    assert daemon.starting_with("the run: ") == [expected]
    assert simulation.statuses == ["failed"]


def test_no_run_starts_before_it_is_recorded(simulation, failing_write):
    refused = failing_write(lambda content: content.open_attempt and not refused)
    simulation.serve(0.6)
    assert len(refused) == 1
    assert simulation.statuses == ["pushed"]


def test_a_full_disk_at_the_start_is_an_error(simulation, failing_write):
    failing_write(lambda _: True)
    with pytest.raises(UserError, match="cannot be kept: No space left on device") as caught:
        simulation.serve(1)
    assert "Free disk space" in caught.value.remedy


def test_a_full_disk_when_an_open_attempt_is_finished(simulation, failing_write):
    with FakeDaemon(simulation, 1).open():
        pass
    data = state.TrainedData(key="k", groups=[], spans={})
    attempt = state.Attempt(key="k", started=START, reason="", pid=0, data=data)
    content = state.ScheduleState(created=START, attempt=attempt)
    state.write_state(simulation.paths.schedule, content)
    refused = failing_write(lambda _: not refused)
    daemon = simulation.serve(0.2)
    assert daemon.starting_with("the run: ") == ["the run: ended before it started"]
    assert daemon.starting_with("state.json: No space left on device; retrying")
    assert simulation.statuses[0] == "killed"


def test_a_changed_name_is_refused(simulation):
    other = CONFIG.replace("name: tiny", "name: other")
    daemon = simulation.serve(2, {0.2: lambda: simulation.configure(NIGHTLY, other)})
    (line,) = daemon.starting_with("the configuration cannot be used: ")
    assert line.endswith("tiny.yaml: name: the name changed from tiny to other")
    assert simulation.statuses == []
