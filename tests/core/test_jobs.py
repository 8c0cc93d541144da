"""Jobs run in their order, some at a time; failures and signals reach who started them."""

import signal
import sys

import pytest

from regard.core.jobs import Job, run_jobs
from regard.core.processes import ChildProcess


class Command(Job[int]):
    """Runs a line of Python, whose result is the exit status."""

    def __init__(self, name, folder, code, known=None):
        super().__init__(name, folder / f"{name}.txt")
        self._code, self._known = code, known
        self.watched = 0

    def finished_result(self):
        return self._known

    def start(self):
        return ChildProcess([sys.executable, "-c", self._code], log=self.log)

    def watch(self):
        self.watched += 1

    def result(self, status):
        return status


def test_jobs_run_in_order_and_may_fail(tmp_path):
    started, ends = [], []
    jobs = [
        Command("fails", tmp_path, "print('one'); raise SystemExit('the reason')"),
        Command("known", tmp_path, "raise SystemExit(9)", known=3),
        Command("silent", tmp_path, "raise SystemExit(5)"),
    ]
    stopped = run_jobs(jobs, on_start=lambda job: started.append(job.name), on_end=ends.append)
    assert not stopped
    assert started == ["fails", "silent"]
    assert [(end.job.name, end.result) for end in ends] == [
        ("fails", 1),
        ("known", 3),
        ("silent", 5),
    ]
    assert ends[0].failure() == "the reason"
    assert ends[2].failure() == "its process exited with status 5"
    assert jobs[0].watched > 0
    assert jobs[1].watched == 0


def test_several_jobs_run_at_a_time(tmp_path):
    wait = (
        "import pathlib, time\nwhile len(list(pathlib.Path({!r}).iterdir())) < 3: time.sleep(0.05)"
    )
    jobs = [Command(name, tmp_path, wait.format(str(tmp_path))) for name in "abc"]
    ends = []
    run_jobs(jobs, 3, on_end=ends.append)
    assert [end.status for end in ends] == [0, 0, 0]


def test_a_signal_stops_the_running_jobs_and_starts_no_more(tmp_path):
    signals, started, ends = [], [], []
    jobs = [Command(name, tmp_path, "import time; time.sleep(60)") for name in "ab"]

    def on_start(job):
        started.append(job.name)
        signals.append(signal.SIGTERM)

    assert run_jobs(jobs, on_start=on_start, on_end=ends.append, signals=signals)
    assert started == ["a"]
    assert [end.status for end in ends] == [-signal.SIGTERM]


def test_an_error_kills_the_running_jobs(tmp_path):
    job = Command("a", tmp_path, "import time; time.sleep(60)")
    process = job.start()
    job.start = lambda: process
    job.watch = lambda: 1 / 0
    with pytest.raises(ZeroDivisionError):
        run_jobs([job])
    assert process.poll() == -signal.SIGKILL
