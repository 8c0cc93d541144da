"""With ``--json``, every command that fails prints its errors as JSON."""

import inspect
import json
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from regard.core.errors import ConfigError, DataError, Failure, LocatedMessage, UserError
from regard.pipeline.cli import app, error_records, runs
from regard.pipeline.cli.commands import COMMANDS, load
from regard.pipeline.doctor import report
from regard.pipeline.doctor.checks import Check
from regard.pipeline.runs.outcome import Outcome

KEYS = ["code", "file", "line", "key", "message", "remedy"]
# An invalid call of every command, and the code of its error.
FAILURES = {
    "run": ("bad.yaml", "configuration"),
    "worker": ("", "environment"),
    "validate": ("bad.yaml", "configuration"),
    "tune": ("absent.yaml", "not_found"),
    "schedule": ("bad.yaml --once", "configuration"),
    "compare": ("matrix.yaml", "configuration"),
    "report": ("absent", "not_found"),
    "clean": ("absent", "not_found"),
    "runs": ("absent", "not_found"),
    "predict": ("absent text", "not_found"),
    "evaluate": ("absent --data absent.tsv", "not_found"),
    "score": ("absent a b", "not_found"),
    "serve": ("absent --port x", "usage"),
    "drift": ("absent --log absent.jsonl", "not_found"),
    "lineage": ("absent", "not_found"),
    "import marian": ("absent --name x", "not_found"),
    "import m2m": ("absent --name x --pair en-fr", "not_found"),
    "import joeynmt": ("absent --name x", "not_found"),
    "import opennmt-tf": ("absent --name x", "not_found"),
    "import fetch": ("absent --out x", "usage"),
    "import npz": ("absent --name x", "not_found"),
    "export": ("absent", "not_found"),
    "deploy render": ("absent --to compose --replicas 2", "usage"),
    "registry list": ("absent", "not_found"),
    "registry pin": ("absent@1", "not_found"),
    "registry unpin": ("absent@1", "not_found"),
    "registry prune": ("absent --keep 1", "not_found"),
    "rollback": ("absent", "not_found"),
    "compile": ("bad.yaml", "configuration"),
    "submit": ("absent.yaml --host x", "not_found"),
    "init": ("trnslation", "usage"),
    "data generate": ("absent", "not_found"),
    "data fetch": ("absent", "not_found"),
    "data list": ("--absent", "usage"),
    "config reference": ("--task absent", "usage"),
    "config schema": ("--task absent", "usage"),
    "doctor": ("", "environment"),
}


@pytest.fixture
def regard(tmp_path, monkeypatch, capfd):
    """Run a command with ``--json`` in this process; return its exit status and its output."""
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "w"))
    monkeypatch.delenv("TF_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    Path("bad.yaml").write_text("name: bad\ndata:\n  train: x\ntraining: {max_epochs: many}\n")
    Path("matrix.yaml").write_text("name: m\nbase: bad.yaml\nmodels: {a: {}, b: {modle: 1}}\n")

    def call(*arguments: str) -> tuple[int, object]:
        monkeypatch.setattr(sys, "argv", ["regard", *arguments, "--json"])
        with pytest.raises(SystemExit) as ended:
            app.main()
        return ended.value.code, json.loads(capfd.readouterr().out)

    return call


def _leaves() -> list[str]:
    """The commands of the table, with those of its groups."""
    return [
        f"{name} {child}".strip()
        for name in COMMANDS
        for child in getattr(load(name), "commands", None) or [""]
    ]


def test_the_table_of_failures_has_every_command():
    assert list(FAILURES) == _leaves()


@pytest.mark.parametrize("command", FAILURES)
def test_a_failed_command_prints_its_errors_as_json(command, regard, monkeypatch):
    arguments, code = FAILURES[command]
    failed = [Check("python", "fail", "3.9.0", "Use Python 3.11.")]
    monkeypatch.setattr(report, "run_checks", lambda: failed)
    status, output = regard(*command.split(), *arguments.split())
    assert status == 2
    assert [list(error) for error in output["errors"]] == [KEYS] * len(output["errors"])
    assert {error["code"] for error in output["errors"]} == {code}
    assert all(error["message"] for error in output["errors"])
    help_text = " ".join(inspect.cleandoc(load(command.split()[0]).help or "").split())
    if "Exit status" in help_text:
        assert re.search(r"\b2 |otherwise,? 2", help_text)


def test_each_mistake_in_a_configuration_has_its_place(regard):
    Path("bad.yaml").write_text("name: bad\ntraining:\n  max_epochs: many\n  beam: 1\n")
    status, output = regard("validate", "bad.yaml")
    places = [(error["file"], error["line"], error["key"]) for error in output["errors"]]
    assert (status, places) == (
        2,
        [
            ("bad.yaml", 1, "data"),
            ("bad.yaml", 3, "training.max_epochs"),
            ("bad.yaml", 4, "training.beam"),
        ],
    )
    assert "'many' was given" in output["errors"][1]["message"]
    _, output = regard("validate", "bad.yaml", "--set", "data")
    (error,) = output["errors"]
    assert (error["code"], error["key"]) == ("usage", "--set")


def test_a_file_name_may_have_any_bytes(regard):
    _, output = regard("run", "\udcff\x9b.yaml")
    assert output["errors"][0]["file"] == "\udcff\x9b.yaml"


def test_a_mistake_of_a_comparison_has_its_place(regard):
    _, output = regard("compare", "matrix.yaml")
    assert {
        "code": "configuration",
        "file": "bad.yaml",
        "line": 4,
        "key": "training.max_epochs",
        "message": "a whole number or null is expected, 'many' was given",
    }.items() <= output["errors"][0].items()


@pytest.mark.parametrize(
    ("where", "place", "code"),
    [
        ("train.tsv:17", ("train.tsv", 17, None), "invalid_input"),
        ("a/b.yaml:3: data.train", ("a/b.yaml", 3, "data.train"), "configuration"),
        ("a.yaml: name", ("a.yaml", None, "name"), "configuration"),
        ("--set data.schema", (None, None, "data.schema"), "configuration"),
        ("--set training.seed=[\n", (None, None, "training.seed"), "configuration"),
        ("--dry-run, --once", (None, None, "--dry-run"), "usage"),
        ("REGARD_HOME", (None, None, "REGARD_HOME"), "environment"),
        ("127.0.0.1:8501", (None, None, "127.0.0.1:8501"), "invalid_input"),
        ("http://host:8501", (None, None, "http://host:8501"), "invalid_input"),
        ("grpc://host:8500/m@2", (None, None, "grpc://host:8500/m@2"), "invalid_input"),
        ("s3://bucket/train.tsv:17", ("s3://bucket/train.tsv", 17, None), "invalid_input"),
        ("MODEL", (None, None, "MODEL"), "usage"),
        ("/w/registry", ("/w/registry", None, None), "invalid_input"),
        ("mine@3", (None, None, "mine@3"), "invalid_input"),
        (None, (None, None, None), "invalid_input"),
    ],
)
def test_a_place_is_parsed(where, place, code):
    (error,) = error_records.of_user_error(UserError("wrong", where))
    assert (error["file"], error["line"], error["key"]) == place
    assert error["code"] == code


@pytest.mark.parametrize(
    ("where", "place", "detail", "code"),
    [
        ("training.devices: workers", (None, "training.devices"), "workers", "configuration"),
        ("a.yaml:3: serving.registry: /r", (3, "serving.registry"), "/r", "configuration"),
        ("metadata.mysql: db:3306/m", (None, "metadata.mysql"), "db:3306/m", "configuration"),
        ("--out x.yaml", (None, "--out"), "x.yaml", "usage"),
        ("--dry-run, --once", (None, "--dry-run"), "--once", "usage"),
        ("REGARD_HOME: /a*", (None, "REGARD_HOME"), "/a*", "environment"),
    ],
)
def test_the_message_has_what_a_place_says_about_a_key(where, place, detail, code):
    (error,) = error_records.of_user_error(UserError("wrong", where))
    assert (error["line"], error["key"]) == place
    assert error["message"] == f"{detail}: wrong"
    assert error["code"] == code


def test_a_key_of_a_given_value_is_a_key_of_the_configuration(regard):
    Path("t.tsv").write_text("a\tb\n" * 50)
    Path("good.yaml").write_text("name: good\ndata: {train: t.tsv}\n")
    for key, value in {"data.schema": "/nope", "training.seed": "["}.items():
        _, output = regard("validate", "good.yaml", "--set", f"{key}={value}")
        (error,) = output["errors"]
        assert (error["code"], error["key"]) == ("configuration", key)


@pytest.mark.parametrize(
    ("command", "code", "file", "key"),
    [
        ("evaluate m", "usage", None, "--data"),
        ("serve m --port 0 --rest-api-port 0", "usage", None, "--port"),
        ("serve m --tls-certificate t.tsv", "usage", None, "--tls-key"),
        ("data generate quickstart --rows 1", "usage", None, "--rows"),
        ("tune good.yaml", "configuration", "good.yaml", "tune"),
        ("submit good.yaml --host http://x", "configuration", "good.yaml", "kubeflow"),
        ("validate failing.yaml", "data", None, None),
    ],
)
def test_the_code_is_that_of_the_mistake(command, code, file, key, regard):
    rows = [f"a {number % 40}\tb {number % 40}\n" for number in range(60)]
    Path("t.tsv").write_text("".join(rows))
    Path("good.yaml").write_text("name: good\ndata: {train: t.tsv}\n")
    checks = "checks: {duplicates: {action: fail, limit: 0.1}}"
    Path("failing.yaml").write_text(f"name: failing\ndata: {{train: t.tsv, {checks}}}\n")
    status, output = regard(*command.split())
    (error,) = output["errors"]
    assert (status, error["code"]) == (2, code)
    assert (error["key"] if key else None) == key
    assert (error["file"] if file else None) == file


def test_an_unreachable_server_is_a_fault_of_the_environment(regard):
    with socket.create_server(("127.0.0.1", 0)) as unused:
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    _, output = regard("predict", f"grpc://{address}/m", "text")
    (error,) = output["errors"]
    place = (error["file"], error["line"], error["key"])
    assert (error["code"], place) == ("environment", (None, None, f"grpc://{address}/m"))


def test_the_class_of_an_error_precedes_its_place():
    error = DataError("wrong", "data.train", "Fix it.")
    (changed,) = error_records.of_user_error(error.with_texts("worse", "x.tsv:2", None))
    assert (changed["code"], changed["file"], changed["line"]) == ("data", "x.tsv", 2)
    config_error = ConfigError("a\nb")
    config_error.problems = (LocatedMessage("a", "f.yaml", 1, "k"), LocatedMessage("b"))
    first, second = error_records.of_user_error(config_error)
    assert (first["file"], first["key"]) == ("f.yaml", "k")
    assert (second["file"], second["key"]) == (None, None)


def test_a_failed_node_names_the_step():
    failure = Failure("out of memory", "Trainer", "training.batch_tokens", "Lower it.")
    (error,) = error_records.of_outcome(Outcome("failed", failure))["errors"]
    assert (error["code"], error["key"]) == ("step_failed", "training.batch_tokens")
    assert error["message"] == "Trainer failed: out of memory"
    failure = Failure("row 3 is empty", "CorpusGen", "a.tsv:3", user=True, code="data")
    (error,) = error_records.of_outcome(Outcome("failed", failure))["errors"]
    assert (error["code"], error["file"], error["line"]) == ("data", "a.tsv", 3)
    (error,) = error_records.of_outcome(Outcome("interrupted"))["errors"]
    assert error["code"] == "interrupted"
    assert error_records.of_outcome(Outcome("not blessed")) == {}


@pytest.mark.parametrize(
    ("reason", "status", "code"),
    [(KeyboardInterrupt, 130, "interrupted"), (ZeroDivisionError, 1, "internal")],
)
def test_an_interruption_and_a_bug(reason, status, code, regard, monkeypatch):
    def fail(*_: object) -> None:
        raise reason

    monkeypatch.setattr(runs.store, "listing", fail)
    ended, output = regard("runs")
    assert (ended, output["errors"][0]["code"]) == (status, code)


def test_the_codes_of_all_classes_have_a_meaning():
    assert {kind.code for kind in UserError.__subclasses__() if kind.code} <= {*error_records.CODES}
    assert {code for _, code in FAILURES.values()} <= {*error_records.CODES}


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("validate absent.yaml --json", "not_found"),
        ("runs --json", "environment"),
        ("runs", ""),
        ("config reference", ""),
    ],
)
def test_a_full_output_keeps_the_status_and_the_errors(
    command, code, unbuffered, tmp_path, monkeypatch
):
    monkeypatch.setenv("REGARD_HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with open("/dev/full", "wb") as full:
        arguments = [sys.executable, "-m", "regard", *command.split()]
        result = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 2
    if code:
        (error,) = json.loads(result.stderr)["errors"]
        assert (error["code"], error["key"]) == (code, None)
        assert ("standard output: No space left" in error["message"]) == (code == "environment")
    else:
        first, remedy = result.stderr.splitlines()
        assert first.endswith("standard output: No space left on device")
        assert remedy.startswith("Free some space")


@pytest.mark.parametrize("command", ["runs", "config reference", "--help"])
def test_a_closed_pipe_ends_a_command_with_0(command, tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_HOME", str(tmp_path))
    script = f"set -o pipefail; {sys.executable} -m regard {command} | sleep 0"
    result = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
