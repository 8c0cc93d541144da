"""``regard schedule``: output and exit status."""

import json
import sys
import time

import pytest
from typer.testing import CliRunner

from regard.core.errors import UserError
from regard.pipeline.cli.app import app
from regard.pipeline.config import load
from regard.pipeline.scheduling import attempt
from regard.pipeline.scheduling.snapshot import take_snapshot
from regard.pipeline.scheduling.state import Attempt, ScheduleState, write_state
from regard.pipeline.workspace import Workspace, lock_pipeline
from tests.pipeline.scheduling.growing_corpus import GrowingCorpus
from tests.pipeline.scheduling.simulation import NIGHTLY

ATTEMPT = Attempt(
    key="k",
    started=1795312800.0,
    ended=1795312900.0,
    reason="new_span: span 2 is new",
    status="pushed",
    text="pushed as tiny@2; BLEU 33.13",
    run="20261122-020000",
    version="2",
    seconds=61.0,
    exit_status=0,
)


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))
    corpus = GrowingCorpus(tmp_path)
    corpus.write_span(1)
    corpus.configure(NIGHTLY)
    return corpus


@pytest.fixture
def paths(tmp_path):
    return Workspace(tmp_path / "home").pipeline("tiny")


@pytest.fixture
def folder(paths):
    """The schedule's folder."""
    paths.schedule.mkdir(parents=True)
    return paths.schedule


def regard(corpus, *options: str, status: int = 0) -> str:
    """Run the command, check its exit status and return its output."""
    arguments = ["schedule", str(corpus.folder / "tiny.yaml"), *options]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == status
    return result.stdout


def simulate_run(corpus, monkeypatch, outcome: str) -> None:
    """Replace the runs, which are always due, by processes that leave the record of one."""
    corpus.configure("  every: 1h\n")
    (corpus.folder / "plan").write_text(f"{outcome}\n")

    def command(path, verbose=False):
        return [sys.executable, "-m", "tests.pipeline.scheduling.fake_run", str(path)]

    monkeypatch.setattr("regard.pipeline.scheduling.daemon.attempts.run_command", command)


def dry_run(corpus) -> dict:
    return json.loads(regard(corpus, "--dry-run", "--json"))


def test_dry_run_prints_times_conditions_and_verdict(corpus, paths):
    lines = regard(corpus, "--dry-run").splitlines()
    assert lines[0] == "tiny checks at '0 3 * * *' (Europe/Berlin); runs for a new span"
    assert lines[1] == "  last check never"
    times = [line for line in lines if " 03:00 CE" in line]
    assert len(times) == 5
    assert times[-1].endswith((", in 4 days", ", in 5 days"))
    assert lines[-2] == "  yes        new_span: nothing was trained yet"
    assert lines[-1] == "  verdict    would run now"
    assert not paths.root.exists()


def test_a_quiet_schedule_prints_errors_only(corpus, monkeypatch):
    assert regard(corpus, "--dry-run", "-q") == ""
    for outcome, status in (("not blessed", 3), ("broken", 1)):
        simulate_run(corpus, monkeypatch, outcome)
        arguments = ["schedule", str(corpus.folder / "tiny.yaml"), "--once", "-q"]
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert (result.exit_code, result.stdout) == (status, "")
        corpus.write_span(2)
    assert result.stderr.count("\n") == 1
    assert "failed: data.train: there is no such file" in result.stderr


def test_a_verbose_schedule_prints_the_output_of_its_runs(corpus, monkeypatch):
    assert attempt.run_command(corpus.folder / "tiny.yaml", verbose=True)[-1] == "--verbose"
    simulate_run(corpus, monkeypatch, "broken")
    output = regard(corpus, "--once", "-v", status=1)
    assert "error: data.train: there is no such file" in output.splitlines()


def test_dry_run_as_json(corpus, folder):
    plan = dry_run(corpus)
    assert (plan["should_run"], plan["checked"], len(plan["next"])) == (True, None, 5)
    assert plan["conditions"][0]["condition"] == "new_span"
    write_state(folder, ScheduleState(created=1, checked=2, attempt=ATTEMPT, history=[ATTEMPT]))
    with lock_pipeline(folder / "lock") as guard:
        guard.describe("schedule")
        plan = dry_run(corpus)
    assert plan["process"] is not None
    assert plan["attempts"][0]["version"] == "2"
    assert plan["next"][0] < time.time()  # missed
    out = regard(corpus, "--dry-run")
    assert (
        "  attempt    Sun 2026-11-22 03:00 CET, new_span: span 2 is new; run 20261122-020000: "
        "pushed as tiny@2; BLEU 33.13 (1:01, status 0)\n"
    ) in out


def test_dry_run_writes_nothing(corpus, folder):
    for name in ("profile.json", "rows.json"):
        (folder / name).write_text('{"key": "of a run in progress"}')
    before = {path.name: path.read_text() for path in folder.iterdir()}
    corpus.configure("  new_span: true\n  new_rows: 10\n  drift: true\n  require: all\n")
    plan = dry_run(corpus)
    assert len(plan["conditions"]) == 3
    assert plan["description"].endswith("; runs for a new span and 10 new rows and drift")
    assert {path.name: path.read_text() for path in folder.iterdir()} == before


def test_dry_run_with_an_interval_and_a_retry(corpus, folder):
    now = time.time()
    write_state(folder, ScheduleState(created=1, checked=now - 59 * 60, retry_at=now + 7200))
    corpus.configure("  new_span: true\n  every: 1h\n")
    plan = dry_run(corpus)
    assert [round((at - now) / 60) for at in plan["next"]] == [1, 61, 121, 181, 241]
    assert plan["retry_at"] == now + 7200
    assert plan["description"] == "checks every 1h; runs for a new span"
    assert "\n  retry      " in regard(corpus, "--dry-run")


def test_dry_run_during_a_run(corpus, paths, folder):
    snapshot = take_snapshot(load(corpus.folder / "tiny.yaml"), paths)
    attempt = Attempt(key=snapshot.key, started=1.0, reason="new", data=snapshot.trained_by())
    write_state(folder, ScheduleState(attempt=attempt))
    out = regard(corpus, "--dry-run")
    assert "new; in progress, or its end was not recorded\n" in out
    assert out.splitlines()[-1] == (
        "  verdict    would not run now: a run with these data and settings is in progress"
    )


@pytest.mark.parametrize(
    ("options", "where", "message"),
    [
        (("--once", "--dry-run"), "--dry-run, --once", "exclude each other"),
    ],
)
def test_invalid_options(corpus, options, where, message):
    with pytest.raises(UserError) as caught:
        regard(corpus, *options)
    assert caught.value.where == where
    assert message in caught.value.message


def test_a_pipeline_without_a_schedule(corpus):
    corpus.configure("")
    """Every change starts a run, and the data are checked at the default interval."""
    lines = regard(corpus, "--dry-run").splitlines()
    assert lines[0] == "tiny checks every 15m; runs for any change of data or settings"
    assert lines[-1].startswith("  verdict    would run now: ")


def test_once_leaves_the_schedule_to_a_running_process(corpus, folder):
    with lock_pipeline(folder / "lock") as guard:
        guard.describe("schedule")
        assert "keeps the schedule" in regard(corpus, "--once")


def test_once_reports_unusable_data(corpus):
    (corpus.folder / "data" / "eval.tsv").unlink()
    corpus.configure("  every: 1h\n")
    out = regard(corpus, "--once", status=2)
    assert "the data cannot be used: " in out
    assert "tiny.yaml:6: data.eval: " in out
