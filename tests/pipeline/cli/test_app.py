from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

ROOT = Path(__file__).resolve().parents[2]
FAKE = str(Path(__file__).parents[1] / "fake_worker.py")
# The command with another worker than the one that needs TFX.
WITH_FAKE = f"""
import sys
from regard.pipeline import supervisor
how = sys.argv.pop(1)
supervisor.worker_command = lambda *_: [sys.executable, {FAKE!r}, how]
from regard.pipeline.cli.app import main
main()
"""


@pytest.fixture
def home(tmp_path):
    """A workspace with a configuration and its data."""
    (tmp_path / "train.tsv").write_text("".join(f"a {i}\tb\n" for i in range(200)))
    (tmp_path / "tiny.yaml").write_text(
        f"name: tiny\ndata:\n  root: {tmp_path}\n  train: train.tsv\n"
    )
    return tmp_path


def _command(home: Path, *arguments: str, fake: str | None = None) -> subprocess.Popen:
    start = ["-c", WITH_FAKE, fake] if fake else ["-m", "regard.pipeline.cli"]
    environment = {**os.environ, "REGARD_HOME": str(home / "w"), "COLUMNS": "100"}
    environment.pop("FORCE_COLOR", None)
    return subprocess.Popen(
        [sys.executable, *start, *arguments],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _regard(home: Path, *arguments: str, fake: str | None = None) -> tuple[int, str, str]:
    process = _command(home, *arguments, fake=fake)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_every_command_has_help():
    from regard.pipeline.cli.app import app

    def command_paths(typer_app, path=()):
        for command in typer_app.registered_commands:
            yield (*path, command.name or command.callback.__name__)
        for group in typer_app.registered_groups:
            yield from command_paths(group.typer_instance, (*path, group.name))

    commands = list(command_paths(app))
    assert ("deploy", "render") in commands
    assert ("run",) in commands
    for command in commands:
        result = CliRunner().invoke(app, [*command, "--help"])
        assert result.exit_code == 0, (command, result.exception)
        assert "Usage: " in result.stdout


def _imports(home: Path, *arguments: str) -> tuple[str, str]:
    """Return the output of a command, and which large libraries it imports."""
    code = (
        f"import sys; sys.argv = ['regard', *{arguments!r}]\n"
        "from regard.pipeline.cli.app import main\n"
        "try:\n    main()\nexcept SystemExit as ended: assert not ended.code\n"
        "heavy = {'tensorflow', 'tfx', 'keras', 'numpy', 'pyarrow', 'apache_beam', 'matplotlib'}\n"
        "print(*sorted((heavy | {'pydantic', 'yaml'}) & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "REGARD_HOME": str(home / "w")}
    out = subprocess.check_output(
        [sys.executable, "-c", code], cwd=home, env=environment, text=True
    )
    text, _, modules = out.removesuffix("\n").rpartition("\n")
    return text, modules


def test_help_does_not_import_large_libraries(home):
    text, modules = _imports(home, "--help")
    assert modules == ""
    commands = "run compare validate runs predict lineage registry rollback data config doctor"
    for command in commands.split():
        assert re.search(rf"│ {command} ", text)


def test_validate_does_not_import_training_libraries(home):
    assert _imports(home, "validate", "tiny.yaml")[1] == "pydantic"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("rnu",), "Did you mean 'run'"),
        (("predict",), "MODEL"),
        (("run", "tiny.yam"), "No such file"),
        (("runs", "quickstrat"), "Unknown pipeline"),
        (("runs", "diff", "a", "b"), "Unknown run 'a'"),
        (("runs", "dif", "a", "b"), "Did you mean 'diff'"),
        (("data", "generate", "quickstar"), "quickstart"),
        (("predict", "quickstrat", "x"), "there is no model"),
    ],
)
def test_user_errors_exit_with_status_2_and_without_traceback(home, arguments, text):
    code, out, err = _regard(home, *arguments)
    assert code == 2
    assert text in err
    assert out == ""
    assert "Traceback" not in err


def test_unknown_node_and_runner(home):
    config = str(home / "tiny.yaml")
    code, _, err = _regard(home, "run", config, "--from", "Trianer")
    assert (code, "Did you mean Trainer?" in err) == (2, True)
    code, _, err = _regard(home, "run", config, "--from", "Pusher", "--to", "Trainer")
    assert (code, "runs after" in err) == (2, True)
    code, _, err = _regard(home, "run", config, "--runner", "spark")
    assert (code, "local or beam" in err) == (2, True)
    assert not (home / "w").exists()


def test_validate(home):
    code, out, _ = _regard(home, "validate", str(home / "tiny.yaml"))
    assert code == 0
    assert re.search(r"pipeline tiny, 1\d\d train, \d+ eval, \d+ test from 1 file\.$", out.strip())
    code, out, _ = _regard(home, "validate", str(home / "tiny.yaml"), "--json")
    assert json.loads(out)["files"] == {"train": [str(home / "train.tsv")]}
    assert sum(json.loads(out)["rows"].values()) == 200
    with open(home / "train.tsv", "ab") as file:
        file.write(b"a\xff\tb\n")
    code, out, err = _regard(home, "validate", str(home / "tiny.yaml"))
    assert (code, out) == (2, "")
    assert f"{home / 'train.tsv'}:201: not UTF-8" in err
    assert "data.encoding_errors" in err
    (home / "train.tsv").unlink()
    code, _, err = _regard(home, "validate", str(home / "tiny.yaml"))
    assert (code, "train.tsv" in err) == (2, True)


def test_validate_lists_spans_and_files(home):
    text = (home / "tiny.yaml").read_text().replace("train.tsv", "'{SPAN}/v{VERSION}.tsv'")
    (home / "tiny.yaml").write_text(text + "  spans: {window: 2, test_share: 0.1}\n")
    for name in ("1/v1", "3/v1", "3/v2", "4/v1"):
        (home / name).parent.mkdir(exist_ok=True)
        (home / f"{name}.tsv").write_text("".join(f"{name} {i}\tb\n" for i in range(100)))
    code, out, _ = _regard(home, "validate", str(home / "tiny.yaml"))
    assert code == 0
    head, *lines = out.splitlines()
    assert head.endswith("from 2 files.")
    pattern = r"  span 3, version 2: \d+ train, \d+ eval, \d+ test"
    assert re.fullmatch(pattern, lines[0])
    assert lines[1] == "    3/v2.tsv"
    assert lines[3] == "    4/v1.tsv"
    assert len(lines) == 4
    _, out, _ = _regard(home, "validate", str(home / "tiny.yaml"), "--json")
    spans = json.loads(out)["spans"]
    assert [(span["span"], span["version"]) for span in spans] == [(3, 2), (4, 1)]
    assert sum(spans[1]["rows"].values()) == 100
    (home / "6").mkdir()
    (home / "6" / "v1.tsv").write_text("a\tb\n")
    _, out, _ = _regard(home, "validate", str(home / "tiny.yaml"))
    *_, gap, small = out.splitlines()
    assert gap == "  1 span is missing between 4 and 6: 5"
    assert "of span 6" in small


def test_comparison_can_be_validated_but_not_run(home):
    path = home / "m.yaml"
    path.write_text("name: m\nbase: tiny.yaml\nmodels: {a: {}, b: {model.dropout: 0.5}}\n")
    code, out, err = _regard(home, "validate", str(path))
    assert (code, err) == (0, "")
    assert re.search(r"comparison m of 2 models, 1\d\d train, ", out)
    path.write_text("name: m\nbase: tiny.yaml\nmodels: {a: {}, b: {model.dropuot: 0.5}}\n")
    code, _, err = _regard(home, "validate", str(path))
    assert (code, "m.yaml:3: " in err, "Did you mean dropout?" in err) == (2, True, True)
    code, _, err = _regard(home, "run", str(path))
    assert (code, "describes a comparison of several models" in err) == (2, True)
    assert f"regard compare {path}" in err


def test_successful_run_is_recorded_and_listed(home):
    code, out, err = _regard(home, "run", str(home / "tiny.yaml"), fake="ok")
    assert (code, err) == (0, "")
    assert "⟲ CorpusGen cached" in out
    assert "✓ Trainer 2.0 s" in out
    assert "published  version 3: /r/tiny/3" in out
    (directory,) = (home / "w" / "pipelines" / "tiny" / "runs").iterdir()
    record = json.loads((directory / "run.json").read_text())
    assert record["status"] == "succeeded"
    assert record["pushed_version"] == "3"
    assert record["nodes"]["CorpusGen"] == {"state": "cached", "seconds": 0.1}
    assert record["nodes"]["Trainer"] == {"state": "done", "seconds": 2.0, "peak_bytes": 7 << 30}
    assert (record["data_fingerprint"], record["parent"], record["seed"]) == ("f00d", "2", 17)
    assert record["command"] == f"regard run {directory}/config.yaml"
    assert record["machine"]["cores"] >= 1
    assert record["machine"]["memory_bytes"] > 0
    assert {"tensorflow", "keras"} <= set(record["stack"])
    assert "name: tiny" in (directory / "config.yaml").read_text()
    code, out, _ = _regard(home, "runs", "--json")
    assert [(r["name"], r["status"]) for r in json.loads(out)] == [("tiny", "succeeded")]
    code, out, _ = _regard(home, "runs")
    assert directory.name in out


def test_runs_are_limited_and_compared(home):
    for how in ("ok", "not-blessed"):
        _regard(home, "run", str(home / "tiny.yaml"), fake=how)
    newest, oldest = json.loads(_regard(home, "runs", "tiny", "--json")[1])
    code, out, _ = _regard(home, "runs", "--limit", "1", "--json")
    assert (code, [record["id"] for record in json.loads(out)]) == (0, [newest["id"]])
    code, out, _ = _regard(home, "runs", "diff", "tiny@3", "tiny")
    assert code == 0
    assert out.splitlines()[0].split() == ["tiny", oldest["id"], newest["id"]]
    assert "not blessed" in out.splitlines()[1]
    code, out, _ = _regard(home, "runs", "diff", "tiny@3", "tiny", "--json")
    assert json.loads(out)["a"]["run"] == f"tiny/{oldest['id']}"


def test_json_output_only(home):
    code, out, _ = _regard(home, "run", str(home / "tiny.yaml"), "--json", fake="ok")
    summary = json.loads(out)
    assert (code, summary["status"], summary["pushed"]["version"]) == (0, "succeeded", "3")


def test_rejected_model_gives_status_3(home):
    assert _regard(home, "run", str(home / "tiny.yaml"), fake="not-blessed")[0] == 3


@pytest.mark.parametrize(
    ("how", "status", "parts"),
    [
        (
            "user",
            2,
            ("the batch is too large", "training.batch_tokens", "Make it smaller.", "log.txt"),
        ),
        ("crash", 1, ("the worker process crashed with SIGSEGV",)),
    ],
)
def test_failed_node_is_explained(home, how, status, parts):
    code, out, _ = _regard(home, "run", str(home / "tiny.yaml"), fake=how)
    assert code == status
    for part in ("Trainer failed: ", f"regard run {home / 'tiny.yaml'}", *parts):
        assert part in out


def _wait_for_busy(home: Path) -> None:
    for _ in range(300):
        logs = home.glob("w/pipelines/tiny/runs/*/log.txt")
        if any("is busy" in log.read_text() for log in logs):
            return
        time.sleep(0.05)
    raise AssertionError("the worker did not start")


def test_ctrl_c_stops_and_shows_how_to_resume(home):
    process = _command(home, "run", str(home / "tiny.yaml"), fake="slow")
    _wait_for_busy(home)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "")
    assert "Stopping" in out
    assert f"regard run {home / 'tiny.yaml'}" in out
    assert json.loads(_regard(home, "runs", "--json")[1])[0]["status"] == "interrupted"


def test_second_run_is_refused_or_waits(home):
    first = _command(home, "run", str(home / "tiny.yaml"), fake="slow")
    _wait_for_busy(home)
    code, _, err = _regard(home, "run", str(home / "tiny.yaml"), fake="ok")
    assert code == 2
    assert str(first.pid) in err
    assert "--wait" in err
    waiting = _command(home, "run", str(home / "tiny.yaml"), "--wait", fake="ok")
    assert "Waiting for run" in waiting.stderr.readline()
    assert waiting.poll() is None
    first.send_signal(signal.SIGTERM)
    assert first.wait(30) == 130
    first.communicate()
    out, _ = waiting.communicate(timeout=30)
    assert waiting.returncode == 0
    assert "✓ Trainer" in out


def test_closed_pipe_causes_no_traceback(home):
    result = subprocess.run(
        f"{sys.executable} -m regard.pipeline.cli config reference | head -1",
        shell=True, cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert result.stderr == ""
    assert len(result.stdout.splitlines()) == 1


def test_config_schema_is_json(home):
    code, out, _ = _regard(home, "config", "schema")
    assert code == 0
    assert "name" in json.loads(out)["properties"]


def test_full_disk_before_the_worker_starts_is_recorded(home):
    code = "import errno\nfrom regard.pipeline import supervisor\n"
    code += "def full(*_):\n    raise OSError(errno.ENOSPC, 'No space left on device')\n"
    code += "supervisor.supervise = full\nfrom regard.pipeline.cli.app import main\nmain()\n"
    result = subprocess.run(
        [sys.executable, "-c", code, "run", str(home / "tiny.yaml")],
        cwd=ROOT, capture_output=True, text=True, env={**os.environ, "REGARD_HOME": str(home)},
    )  # fmt: skip
    assert result.returncode == 2
    assert "No space left on device" in result.stderr
    assert "Traceback" not in result.stderr
    (record,) = (home / "pipelines" / "tiny" / "runs").glob("*/run.json")
    assert json.loads(record.read_text())["status"] == "failed"


def test_unwritable_workspace_is_a_user_error(home):
    (home / "w").touch()  # a file in place of the folder, so that even root cannot write
    code, out, err = _regard(home, "run", str(home / "tiny.yaml"), fake="ok")
    assert (code, out) == (2, "")
    assert f"{home / 'w'}/pipelines/tiny: The pipeline's folder is not writable" in err
    assert "REGARD_HOME" in err


def test_missing_data_is_reported_before_the_worker_starts(home):
    (home / "train.tsv").unlink()
    code, out, err = _regard(home, "run", str(home / "tiny.yaml"), fake="ok")
    assert (code, out) == (2, "")
    assert "data.train: no such file" in err
    assert not (home / "w").exists()
