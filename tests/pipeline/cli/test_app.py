import errno
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from regard.core.errors import UserError
from regard.pipeline.cli.app import app, main
from regard.pipeline.cli.commands import COMMANDS, load
from regard.pipeline.runs import supervise
from tests.processes import wait_for

ROOT = Path(__file__).resolve().parents[3]
FAKE = str(Path(__file__).parents[1] / "runs" / "fake_worker.py")
# The command with another worker than the one that needs TFX.
WITH_FAKE = f"""
import sys
from regard.core.errors import UserError
from regard.pipeline.runs import supervise
how = sys.argv.pop(1)
supervise.worker_command = lambda *_: [sys.executable, {FAKE!r}, how]
from regard.pipeline.cli.app import main
main()
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A workspace with a configuration and its data."""
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "w"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.chdir(tmp_path)
    Path("train.tsv").write_text("".join(f"a {i}\tb\n" for i in range(200)))
    Path("tiny.yaml").write_text(f"name: tiny\ndata:\n  root: {tmp_path}\n  train: train.tsv\n")
    return tmp_path


@pytest.fixture
def regard(home, monkeypatch, capfd):
    """Run a command in this process; return its exit status, output and errors."""

    def call(*arguments: str, fake: str | None = None) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["regard", *arguments])
        if fake:
            monkeypatch.setattr(
                supervise, "worker_command", lambda *_: [sys.executable, FAKE, fake]
            )
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *capfd.readouterr()

    return call


def _start(*arguments: str) -> subprocess.Popen:
    """Start a command with a fake worker in a process."""
    return subprocess.Popen(
        [sys.executable, "-c", WITH_FAKE, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_every_command_has_help():
    paths = [
        path
        for name in COMMANDS
        for path in ([(name, child) for child in getattr(load(name), "commands", ())] or [(name,)])
    ]
    assert {("deploy", "render"), ("run",)} <= set(paths)
    for path in paths:
        result = CliRunner().invoke(app, [*path, "--help"])
        assert result.exit_code == 0, (path, result.exception)
        assert "Usage: " in result.stdout
        assert "<bool>" not in result.stdout, path
    assert "<bool>" not in CliRunner().invoke(app, ["--help"]).stdout


def _imports(*arguments: str) -> tuple[str, str]:
    """Return the output of a command, and which large libraries it imports."""
    code = (
        f"import sys; sys.argv = ['regard', *{arguments!r}]\n"
        "from regard.pipeline.cli.app import main\n"
        "try:\n    main()\nexcept SystemExit as ended: assert not ended.code\n"
        "heavy = {'tensorflow', 'tfx', 'keras', 'numpy', 'pyarrow', 'apache_beam', 'matplotlib'}\n"
        "print(*sorted((heavy | {'pydantic', 'yaml'}) & set(sys.modules)))"
    )
    out = subprocess.check_output([sys.executable, "-c", code], text=True)
    text, _, modules = out.removesuffix("\n").rpartition("\n")
    return text, modules


def test_help_does_not_import_large_libraries(home):
    text, modules = _imports("--help")
    assert modules == ""
    commands = "run compare validate runs predict lineage registry rollback data config doctor"
    for command in commands.split():
        assert re.search(rf"│ {command} ", text)


def test_validate_does_not_import_training_libraries(home):
    assert _imports("validate", "tiny.yaml")[1] == "numpy pydantic"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("rnu", "Did you mean run?"),
        ("predict", "MODEL"),
        ("run tiny.yam", "No such file"),
        ("run tiny.yaml --from Trianer", "Did you mean Trainer?"),
        ("run tiny.yaml --from Pusher --to Trainer", "runs after"),
        ("run tiny.yaml --runner spark", "'spark' is not one of"),
        ("runs quickstrat", "Unknown pipeline"),
        ("report a", "Unknown run 'a'"),
        ("data generate quickstar", "quickstart"),
        ("predict quickstrat x", "There is no model"),
    ],
)
def test_user_errors_exit_with_status_2_and_without_traceback(home, regard, arguments, text):
    code, out, err = regard(*arguments.split())
    assert (code, out) == (2, "")
    assert text in err
    assert "Traceback" not in err
    assert not (home / "w").exists()


def test_validate(home, regard):
    code, out, _ = regard("validate", "tiny.yaml")
    assert code == 0
    head, *notes = out.splitlines()
    assert re.search(r"pipeline tiny, 1\d\d train, \d+ eval, \d+ test from 1 file\.$", head)
    assert "source (column 1)" in notes[0]
    content = json.loads(regard("validate", "tiny.yaml", "--json")[1])
    assert content["files"] == {"train": [str(home / "train.tsv")]}
    assert sum(content["rows"].values()) == 200


def test_validate_reports_unreadable_data(home, regard):
    with open("train.tsv", "ab") as file:
        file.write(b"a\xff\tb\n")
    code, out, err = regard("validate", "tiny.yaml")
    assert (code, out) == (2, "")
    assert f"{home / 'train.tsv'}:201: not UTF-8" in err
    assert "data.bad_rows" in err


def test_validate_carries_out_the_checks_that_fail_a_run(home, regard):
    with open("train.tsv", "a") as file:
        file.write("a\t\n" * 9)
    code, out, err = regard("validate", "tiny.yaml")
    assert (code, out) == (2, "")
    assert "empty_side: 9 of 209 rows (4.31%) have an empty side" in err
    Path("tiny.yaml").write_text(
        Path("tiny.yaml").read_text() + "  checks: {empty_side: {action: warn}}\n"
    )
    code, _, err = regard("validate", "tiny.yaml")
    assert code == 0
    assert "Only a run checks vocab_size" in err


def test_validate_lists_spans_and_files(home, regard):
    text = Path("tiny.yaml").read_text().replace("train.tsv", "'{SPAN}/v{VERSION}.tsv'")
    Path("tiny.yaml").write_text(text + "  spans: {window: 2, test_share: 0.1}\n")
    for name in ("1/v1", "3/v1", "3/v2", "4/v1"):
        (home / name).parent.mkdir(exist_ok=True)
        (home / f"{name}.tsv").write_text("".join(f"{name} {i}\tb\n" for i in range(100)))
    head, third, *lines = regard("validate", "tiny.yaml")[1].splitlines()
    assert head.endswith("from 2 files.")
    assert re.fullmatch(r"  span 3, version 2: \d+ train, \d+ eval, \d+ test", third)
    assert (lines[0], lines[2]) == ("    3/v2.tsv", "    4/v1.tsv")
    spans = json.loads(regard("validate", "tiny.yaml", "--json")[1])["spans"]
    assert [(span["span"], span["version"]) for span in spans] == [(3, 2), (4, 1)]
    assert sum(spans[1]["rows"].values()) == 100
    (home / "6").mkdir()
    (home / "6" / "v1.tsv").write_text("a\tb\n")
    assert "of span 6" in regard("validate", "tiny.yaml")[1].splitlines()[-1]


def test_comparison_can_be_validated_but_not_run(home, regard):
    text = "name: m\nbase: tiny.yaml\nmodels: {a: {}, b: {model.dropout: 0.5}}\n"
    Path("m.yaml").write_text(text)
    code, out, err = regard("validate", "m.yaml")
    assert code == 0
    assert re.search(r"comparison m of 2 models, 1\d\d train, ", out)
    code, _, err = regard("run", "m.yaml")
    assert (code, "describes a comparison of several models" in err) == (2, True)
    assert "regard compare m.yaml" in err
    Path("m.yaml").write_text(text.replace("dropout", "dropuot"))
    code, _, err = regard("validate", "m.yaml")
    assert (code, "m.yaml:3: " in err, "Did you mean dropout?" in err) == (2, True, True)


def test_successful_run_is_recorded_and_listed(home, regard):
    code, out, err = regard("run", "tiny.yaml", fake="ok")
    assert (code, err) == (0, "")
    assert "⟲ CorpusGen cached" in out
    assert "✓ Trainer 2.0 s" in out
    assert "published  version 3: /r/tiny/3" in out
    (directory,) = (home / "w" / "pipelines" / "tiny" / "runs").iterdir()
    record = json.loads((directory / "run.json").read_text())
    assert (record["status"], record["pushed_version"]) == ("succeeded", "3")
    assert record["nodes"]["CorpusGen"] == {"state": "cached", "seconds": 0.1}
    assert record["nodes"]["Trainer"] == {"state": "done", "seconds": 2.0, "peak_bytes": 7 << 30}
    assert (record["data_fingerprint"], record["parent"], record["seed"]) == ("f00d", "2", 17)
    assert record["command"] == f"regard run {directory}/config.yaml"
    assert record["machine"]["cores"] >= 1
    assert record["machine"]["memory_bytes"] > 0
    assert {"tensorflow", "keras"} <= set(record["stack"])
    assert "name: tiny" in (directory / "config.yaml").read_text()
    assert directory.name in regard("runs")[1]


def test_runs_are_limited(regard):
    code, out, _ = regard("run", "tiny.yaml", "--json", fake="ok")
    summary = json.loads(out)  # and nothing else
    assert (code, summary["status"], summary["pushed"]["version"]) == (0, "succeeded", "3")
    assert regard("run", "tiny.yaml", fake="not-blessed")[0] == 3
    newest, oldest = json.loads(regard("runs", "tiny", "--json")[1])
    code, out, _ = regard("runs", "--limit", "1", "--json")
    assert (code, [record["id"] for record in json.loads(out)]) == (0, [newest["id"]])
    assert (newest["status"], oldest["status"]) == ("not blessed", "succeeded")


def test_failed_node_is_explained(regard):
    code, out, _ = regard("run", "tiny.yaml", fake="user")
    assert code == 2
    for part in (
        *("Trainer failed: the batch is too large", "training.batch_tokens", "Make it smaller."),
        *("log.txt", "regard run tiny.yaml"),
    ):
        assert part in out


def test_quiet_and_verbose_runs(home, regard):
    assert regard("run", "tiny.yaml", "-q", fake="ok") == (0, "", "")
    assert regard("run", "tiny.yaml", "-q", fake="not-blessed") == (3, "", "")
    code, out, err = regard("run", "tiny.yaml", "-q", fake="user")
    assert (code, out, "Trainer failed: the batch is too large" in err) == (2, "", True)
    code, out, err = regard("run", "tiny.yaml", "-v", fake="ok")
    assert (code, err) == (0, "")
    assert re.search(r"^worker \d+ is busy: ok$", out, re.MULTILINE)
    code, out, err = regard("run", "tiny.yaml", "-v", "--json", fake="ok")
    assert (json.loads(out)["status"], "is busy: ok" in err) == ("succeeded", True)


def test_a_failed_run_as_json_has_the_error_of_its_node(regard):
    code, out, _ = regard("run", "tiny.yaml", "--json", fake="user")
    summary = json.loads(out)
    assert (code, summary["status"]) == (2, "failed")
    assert summary["errors"] == [
        {
            "code": "configuration",
            "file": None,
            "line": None,
            "key": "training.batch_tokens",
            "message": "Trainer failed: the batch is too large",
            "remedy": "Make it smaller.",
        }
    ]
    code, out, _ = regard("run", "tiny.yaml", "--json", fake="crash")
    assert (code, json.loads(out)["errors"][0]["code"]) == (1, "step_failed")


def test_a_run_goes_on_without_a_reader(home):
    process = _start("ok", "run", "tiny.yaml")
    process.stdout.close()
    assert (process.wait(30), process.stderr.read()) == (0, "")
    (record,) = home.glob("w/pipelines/tiny/runs/*/run.json")
    assert json.loads(record.read_text())["status"] == "succeeded"


def _wait_for_busy(home: Path) -> None:
    logs = "w/pipelines/tiny/runs/*/log.txt"
    wait_for(lambda: any("is busy" in log.read_text() for log in home.glob(logs)))


def test_ctrl_c_stops_and_shows_how_to_resume(home, regard):
    process = _start("slow", "run", "tiny.yaml")
    _wait_for_busy(home)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "")
    assert "Stopping" in out
    assert "Interrupted. Completed steps are saved." in out
    assert "regard run tiny.yaml" in out
    assert json.loads(regard("runs", "--json")[1])[0]["status"] == "interrupted"


def test_second_run_is_refused_or_waits(home, regard):
    first = _start("slow", "run", "tiny.yaml")
    _wait_for_busy(home)
    code, _, err = regard("run", "tiny.yaml", fake="ok")
    assert (code, str(first.pid) in err, "--wait" in err) == (2, True, True)
    waiting = _start("ok", "run", "tiny.yaml", "--wait")
    assert "Waiting for run" in waiting.stderr.readline()
    assert waiting.poll() is None
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=30)
    assert first.returncode == 130
    out, _ = waiting.communicate(timeout=30)
    assert waiting.returncode == 0
    assert "✓ Trainer" in out


def test_closed_pipe_causes_no_traceback(home):
    command = f"{sys.executable} -m regard.pipeline.cli config reference | head -1"
    result = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert (result.stderr, len(result.stdout.splitlines())) == ("", 1)


def test_config_schema_is_json(regard):
    code, out, _ = regard("config", "schema")
    assert code == 0
    assert "name" in json.loads(out)["properties"]


def test_full_disk_before_the_worker_starts_is_recorded(home, regard, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(supervise, "supervise", fail)
    code, _, err = regard("run", "tiny.yaml")
    assert code == 2
    assert "No space left on device" in err
    (record,) = home.glob("w/pipelines/tiny/runs/*/run.json")
    assert json.loads(record.read_text())["status"] == "failed"


def test_unwritable_workspace_is_a_user_error(home, regard):
    (home / "w").touch()  # a file in place of the folder, so that even root cannot write
    code, out, err = regard("run", "tiny.yaml", fake="ok")
    assert (code, out) == (2, "")
    assert f"{home / 'w'}/pipelines/tiny: The folder {home / 'w'} is not writable" in err
    assert "REGARD_HOME" in err


def test_missing_data_is_reported_before_the_worker_starts(home, regard):
    (home / "train.tsv").unlink()
    for command in ("validate", "run"):
        code, out, err = regard(command, "tiny.yaml", fake="ok")
        assert (code, out) == (2, "")
        assert "data.train: No such file" in err
    assert not (home / "w").exists()


def test_a_traceback_does_not_control_the_terminal(tmp_path):
    code = (
        "import sys; sys.argv = ['regard', 'runs']\n"
        "from regard.pipeline.cli import app, runs\n"
        "def fail(*arguments): raise RuntimeError('a \\x1b]0;b\\x07 c')\n"
        "runs.Workspace.from_environment = fail\n"
        "app.main()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 1
    assert r"RuntimeError: a \x1b]0;b\x07 c" in result.stderr
    assert "\x1b" not in result.stderr


def test_a_uri_never_becomes_a_local_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["data", "generate", "quickstart", "--out", "gs://b/x"])
    assert isinstance(result.exception, UserError)
    assert (result.exception.where, "'gs://b/x'" in str(result.exception)) == ("--out", True)
    result = CliRunner().invoke(app, ["validate", "s3://b/x.yaml"])
    assert (result.exception.where, "'s3://b/x.yaml'" in str(result.exception)) == ("CONFIG", True)
    assert [*tmp_path.iterdir()] == []
