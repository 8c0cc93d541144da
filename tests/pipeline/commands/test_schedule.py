"""``regard schedule`` on this machine: what it prints, and with which status."""

from __future__ import annotations

import io
import json
import time

import pytest
from rich.console import Console
from typer.testing import CliRunner

from components.errors import UserError
from pipeline import lock
from pipeline.cli import app
from pipeline.commands import schedule as command
from pipeline.commands import schedule_views
from pipeline.scheduling import state
from pipeline.scheduling.decision import remembered
from pipeline.scheduling.look import look
from pipeline.scheduling.settings import Settings
from pipeline.workspace import Workspace
from tests.pipeline.scheduling.growing import Corpus

TRIED = {
    "key": "k",
    "number": 1,
    "kills": 0,
    "started": 1795312800.0,
    "ended": 1795312900.0,
    "reason": "new_span: span 2 is new",
    "status": "pushed",
    "text": "pushed as tiny@2; BLEU 33.13",
    "run": "20261122-020000",
    "version": "2",
    "seconds": 61.0,
    "exit_status": 0,
}


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))
    made = Corpus(tmp_path)
    made.span(1)
    made.configure("  cron: 0 3 * * *\n  timezone: Europe/Berlin\n  new_span: true\n")
    return made


@pytest.fixture
def paths(tmp_path):
    return Workspace(tmp_path / "home").pipeline("tiny")


def regard(corpus, *options: str) -> tuple[int, str]:
    done = CliRunner().invoke(
        app, ["schedule", str(corpus.folder / "tiny.yaml"), *options], catch_exceptions=False
    )
    return done.exit_code, done.stdout


def told(corpus, *options: str) -> dict:
    status, out = regard(corpus, "--dry-run", "--json", *options)
    assert status == 0
    return json.loads(out)


def test_a_dry_run_tells_times_findings_and_what_would_follow(corpus, paths):
    status, out = regard(corpus, "--dry-run")
    lines = out.splitlines()
    assert status == 0
    assert lines[0] == ("tiny looks at '0 3 * * *', Europe/Berlin; runs for a new span")
    assert lines[1] == "  last look never"
    assert len([line for line in lines if " 03:00 CE" in line]) == 5
    assert lines[-2:] == [
        "  yes       new_span: nothing was trained on yet",
        "  verdict   a look now would run it",
    ]
    assert not paths.root.exists()


def test_a_dry_run_as_json(corpus, paths):
    found = told(corpus)
    assert (found["run"], found["looked"], len(found["next"])) == (True, None, 5)
    assert found["findings"][0]["condition"] == "new_span"
    paths.schedule.mkdir(parents=True)
    state.write(paths.schedule, state.State(since=1.0, looked=2.0, attempt=dict(TRIED)))
    with lock.acquire(paths.schedule / "lock") as held:
        held.describe("schedule")
        found = told(corpus)
    assert found["kept_by"] is not None
    assert found["last"]["version"] == "2"
    assert "passed without a look" in found["passed"]


def test_a_dry_run_keeps_nothing(corpus, paths):
    paths.schedule.mkdir(parents=True)
    for name in ("profile.json", "rows.json"):
        (paths.schedule / name).write_text('{"key": "of a run that goes on"}')
    before = {path.name: path.read_text() for path in paths.schedule.iterdir()}
    assert len(told(corpus, "--new-rows", "10", "--drift")["findings"]) == 3
    assert {path.name: path.read_text() for path in paths.schedule.iterdir()} == before


def test_a_dry_run_counts_from_the_last_look_and_tells_of_another_try(corpus, paths):
    paths.schedule.mkdir(parents=True)
    now = time.time()
    state.write(paths.schedule, state.State(since=1.0, looked=now - 59 * 60, retry_at=now + 7200))
    found = told(corpus, "--every", "1h")
    assert [round((at - now) / 60) for at in found["next"]] == [1, 61, 121, 181, 241]
    assert found["retry_at"] == now + 7200
    lines = regard(corpus, "--dry-run")[1].splitlines()
    (again,) = [line for line in lines if line.startswith("  again at  ")]
    assert again.endswith(("in 2 hours", "in 120 minutes", "in 119 minutes"))


def test_a_dry_run_beside_a_run_that_goes_on(corpus, paths):
    paths.schedule.mkdir(parents=True)
    seen = look(Settings(corpus.folder / "tiny.yaml", {}).read().config, paths)
    known = remembered(seen)
    tried = {"key": seen.key, "number": 1, "kills": 0, "started": 1.0, "reason": "", "look": known}
    state.write(paths.schedule, state.State(attempt=tried))
    status, out = regard(corpus, "--dry-run")
    assert status == 0
    assert "  last run  nobody has seen it end yet\n" in out
    assert out.splitlines()[-1].strip() == "these very data and settings are being tried"


def test_once_leaves_it_to_the_process_that_keeps_the_schedule(corpus, paths):
    paths.schedule.mkdir(parents=True)
    with lock.acquire(paths.schedule / "lock") as held:
        held.describe("schedule")
        status, out = regard(corpus, "--once")
    assert status == 0
    assert "looks after it" in out


def test_options_go_before_the_file(corpus):
    found = told(corpus, "--every", "2h", "--no-new-span")
    assert found["sentence"] == "looks every 2 hours; runs when data or settings are new"
    found = told(corpus, "--new-rows", "10", "--drift", "--require", "all")
    assert [finding["condition"] for finding in found["findings"]] == [
        "new_span",
        "new_rows",
        "drift",
    ]
    assert found["sentence"].endswith("runs for a new span and 10 new rows and drift")


@pytest.mark.parametrize(
    ("options", "where", "message"),
    [
        (("--cron", "0 25 * * *"), "--cron", "no hour"),
        (("--time-zone", "Mars"), "--time-zone", "'Mars' is no time zone"),
        (("--every", "soon"), "--every", "'soon' is not possible"),
        (("--cron", "@daily", "--every", "1h"), "--every", "together with schedule.cron"),
        (("--once", "--dry-run"), "--dry-run, --once", "do not go together"),
        (("--json",), "--json", "--dry-run and --history"),
        (("--to", "kubeflow"), "--cron", "is missing"),
        (("--to", "kubeflow", "--once"), "--once", "of this machine"),
        (("--to", "kubeflow", "--cron", "@daily", "--drift"), "--drift", "of this machine"),
    ],
)
def test_what_cannot_be(corpus, options, where, message):
    with pytest.raises(UserError) as caught:
        regard(corpus, *options)
    assert caught.value.where == where
    assert message in caught.value.message


CLUSTER, LOCAL = "is for schedules on a cluster", "is for schedules of this machine"
KUBEFLOW = ("--to", "kubeflow", "--cron", "@daily")


@pytest.mark.parametrize(
    ("options", "where", "message", "remedy"),
    [
        (("--param", "max_epochs=3"), "--param", CLUSTER, "YAML file"),
        (("--name", "nightly"), "--name", CLUSTER, "--to kubeflow"),
        (("--max-concurrency", "2"), "--max-concurrency", CLUSTER, "--to kubeflow"),
        # What is given is said, also where it is the default.
        (("--max-concurrency", "1"), "--max-concurrency", CLUSTER, "--to kubeflow"),
        (("--host", "http://localhost:8888"), "--host", CLUSTER, "--to kubeflow"),
        (("--experiment", "nights"), "--experiment", CLUSTER, "--to kubeflow"),
        (("--experiment", "regard"), "--experiment", CLUSTER, "--to kubeflow"),
        (("--namespace", "nlp"), "--namespace", CLUSTER, "--to kubeflow"),
        (("--dry-run", "--param", "max_epochs=3"), "--param", CLUSTER, "YAML file"),
        (("--systemd", "--output", "-", "--host", "http://a"), "--host", CLUSTER, "--to kubeflow"),
        (("--output", "-"), "--output", "goes with --systemd", "--systemd"),
        (("--force",), "--force", "goes with --systemd", "--systemd"),
        (("--once", "--output", "unit"), "--output", "goes with --systemd", "--systemd"),
        ((*KUBEFLOW, "--output", "-"), "--output", LOCAL, "Leave it out."),
        ((*KUBEFLOW, "--force"), "--force", LOCAL, "Leave it out."),
        (("--history", "--time-zone", "UTC"), "--time-zone", "--history", "schedule.timezone"),
        (("--history", "--cron", "@daily"), "--cron", "--history", "Leave it out."),
        (("--history", "--every", "1h"), "--every", "--history", "Leave it out."),
        (("--history", "--no-new-span"), "--new-span", "--history", "Leave it out."),
        (("--history", "--new-rows", "1"), "--new-rows", "--history", "Leave it out."),
        (("--history", "--no-catchup"), "--no-catchup", "--history", "Leave it out."),
    ],
)
def test_what_would_be_ignored_is_refused(corpus, paths, options, where, message, remedy):
    with pytest.raises(UserError) as caught:
        regard(corpus, *options)
    assert caught.value.where == where
    assert message in caught.value.message
    assert remedy in caught.value.remedy
    assert not paths.root.exists()


def test_what_goes_to_a_cluster_where_nothing_is_said(corpus, monkeypatch):
    said = []
    monkeypatch.setattr(
        command, "_on_kubeflow", lambda *given, **named: said.append((given, named))
    )
    regard(corpus, *KUBEFLOW)
    regard(corpus, *KUBEFLOW, "--experiment", "nights", "--max-concurrency", "2", "--no-catchup")
    assert [given[5] for given, _ in said] == ["regard", "nights"]
    assert [(named["max_concurrency"], named["catchup"]) for _, named in said] == [
        (1, True),
        (2, False),
    ]


def test_nothing_says_when(corpus):
    corpus.configure("")
    with pytest.raises(UserError, match="nothing says when to run") as caught:
        regard(corpus)
    assert "--cron" in caught.value.remedy


def test_once_before_its_time(corpus, paths):
    status, out = regard(corpus, "--once")
    assert status == 0
    assert "  it is not time yet\n" in out
    assert state.read(paths.schedule).since is not None


def test_once_tells_what_cannot_be_used(corpus):
    (corpus.folder / "data" / "eval.tsv").unlink()
    status, out = regard(corpus, "--once", "--every", "1h")
    assert status == 2
    assert "the data cannot be used: data.eval: " in out


def test_the_history_is_the_newest_first(corpus, paths):
    assert regard(corpus, "--history")[1] == "The schedule of tiny has not run anything yet.\n"
    paths.schedule.mkdir(parents=True)
    newer = {**TRIED, "status": "refused", "version": None, "started": 1795399200.0}
    state.write(paths.schedule, state.State(history=[TRIED, newer]))
    lines = regard(corpus, "--history")[1].splitlines()
    assert [line.split()[5] for line in lines[1:]] == ["refused", "pushed"]
    assert lines[2].split("  ")[0] == "Sun 2026-11-22 03:00 CET"
    assert lines[2].endswith("pushed as tiny@2; BLEU 33.13  new_span: span 2 is new")
    assert json.loads(regard(corpus, "--history", "--json")[1]) == [newer, TRIED]


def test_a_unit_is_written_and_the_commands_are_told(corpus, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    _, out = regard(corpus, "--systemd", "--cron", "@daily", "--no-catchup")
    path = tmp_path / "systemd/user/regard-tiny.service"
    assert f"{path} is written" in out
    assert "systemctl --user enable --now regard-tiny.service" in out
    assert "tiny.yaml --cron @daily --no-catchup\n" in path.read_text()
    printed = regard(corpus, "--systemd", "--output", "-", "--cron", "@daily", "--no-catchup")[1]
    assert printed == path.read_text()


def test_what_a_state_that_cannot_be_read_leads_to(corpus, paths):
    paths.schedule.mkdir(parents=True)
    (paths.schedule / state.FILE).write_text("[")
    with pytest.raises(UserError, match="cannot be read") as caught:
        regard(corpus, "--once")
    assert "Remove the file" in caught.value.remedy


def test_a_terminal_shows_what_goes_on_and_a_log_does_not(corpus):
    settings = Settings(corpus.folder / "tiny.yaml", {}).read()
    shown = []
    for terminal in (True, False):
        file = io.StringIO()
        console = Console(file=file, force_terminal=terminal, width=60)
        view = schedule_views.LineView(console, settings)
        view.show("run 1  Trainer: [epoch 1]")
        view.say("a line that is longer than the terminal is wide, in one piece")
        view.show("")
        shown.append(file.getvalue())
    assert "Trainer: [epoch 1]" in shown[0]
    assert shown[1].endswith("a line that is longer than the terminal is wide, in one piece\n")
    assert "Trainer" not in shown[1]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "1 second"),
        (45, "45 seconds"),
        (119, "119 seconds"),
        (120, "2 minutes"),
        (7200, "2 hours"),
    ],
)
def test_times_to_wait_in_words(seconds, words):
    assert schedule_views.in_words(seconds) == words
