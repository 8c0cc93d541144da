"""``regard compile`` and ``submit`` against a local API server."""

import json
import socket
import subprocess
import sys

import pytest
import yaml
from typer.testing import CliRunner

from regard.core.errors import UserError
from regard.pipeline.cli.app import app
from regard.pipeline.runners.kubeflow.pipeline_file import read_pipeline
from tests.pipeline.runners.kubeflow.pipelines import write_config


@pytest.fixture
def compiled(pipeline, tmp_path):
    """The file of a compiled pipeline."""
    path = tmp_path / "pipeline.yaml"
    path.write_text(pipeline.to_yaml())
    return path


def regard(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.slow  # imports TFX in another process
def test_compile_hides_the_output_of_libraries(tmp_path):
    call = ["compile", str(write_config(tmp_path)), "-o", str(tmp_path / "pipeline.yaml")]
    result = subprocess.run(
        [sys.executable, "-m", "regard.pipeline.cli", *call], capture_output=True, text=True
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert "12 nodes, parameters max_epochs, seed" in result.stdout


def test_submit_starts_a_run_with_parameters(api, compiled):
    call = ("submit", compiled, "--host", api.url, "--experiment", "nightly")
    result = regard(*call, "--param", "seed=3", "--json")
    assert json.loads(result.stdout) == {"id": "r1", "name": "tiny", "link": None, "replaced": []}
    (run,) = api.runs
    assert (run.display_name, run.experiment_id) == ("tiny", "e0")
    assert run.runtime_config.parameters == {"seed": 3}
    assert run.runtime_config.pipeline_root == "minio://mlpipeline/v2/artifacts"
    spec, platform = yaml.safe_load_all(compiled.read_text())
    assert run.pipeline_spec == {"pipeline_spec": spec, "platform_spec": platform}
    regard(*call)
    assert [e["display_name"] for e in api.experiments] == ["nightly"]  # reused


def test_submit_reads_host_and_ui_from_the_environment(api, compiled, monkeypatch):
    monkeypatch.setenv("KF_PIPELINES_ENDPOINT", f"{api.url}/")
    result = regard("submit", compiled, "--name", "again")
    assert result.stdout == "Started run again: r1\n"
    monkeypatch.setenv("KF_PIPELINES_UI_ENDPOINT", "http://localhost:8080/")
    result = regard("submit", compiled)
    assert "  http://localhost:8080/#/runs/details/r1\n" in result.stdout


def test_cron_creates_a_recurring_run_with_six_fields(api, compiled, monkeypatch):
    monkeypatch.setenv("KF_PIPELINES_UI_ENDPOINT", "http://localhost:8080/")
    call = ("submit", compiled, "--host", api.url, "--cron", "0 3 * * 1-5")
    result = regard(*call, "--no-catchup", "--param", "max_epochs=2")
    assert "0 0 3 * * 1-5" in result.stdout
    assert "  http://localhost:8080/#/recurringrun/details/s1\n" in result.stdout
    (run,) = api.recurring_runs
    assert run.trigger.cron_schedule.cron == "0 0 3 * * 1-5"
    assert (run.max_concurrency, run.no_catchup, run.mode) == ("1", True, "ENABLE")
    assert run.runtime_config.parameters == {"max_epochs": 2}
    with pytest.raises(UserError, match="already has a recurring run 'tiny'"):
        regard(*call)
    regard(*call, "--name", "other")
    assert [run.no_catchup for run in api.recurring_runs] == [True, False]


def test_a_recurring_run_is_replaced(api, compiled):
    call = ("submit", compiled, "--host", api.url, "--cron", "0 3 * * *")
    regard(*call)
    regard(*call, "--name", "other")
    assert "  replaces s1, which is disabled\n" in regard(*call, "--replace").stdout
    assert [run.status for run in api.recurring_runs] == ["DISABLED", "ENABLED", "ENABLED"]
    result = regard(*call, "--replace", "--json")
    assert json.loads(result.stdout)["replaced"] == ["s3"]
    # The disabled ones are on other pages than the enabled one.
    with pytest.raises(UserError, match="already has a recurring run 'tiny'") as caught:
        regard(*call)
    assert "--replace" in caught.value.remedy
    with pytest.raises(UserError, match="requires --cron"):
        regard(*call[:4], "--replace")


def test_a_configuration_is_compiled_before_it_is_submitted(tmp_path):
    with pytest.raises(UserError, match="seed is an integer"):
        regard("submit", write_config(tmp_path), "--param", "seed=x")


def test_compile_overwrites_only_compiled_pipelines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = write_config(tmp_path)
    before = config.read_text()
    (tmp_path / "tiny.txt").write_text("notes: mine\n")
    for out in ("tiny.yaml", "./tiny.yaml", "tiny.txt"):
        with pytest.raises(UserError, match=r"configuration itself|not a compiled") as caught:
            regard("compile", config, "--out", out)
        assert caught.value.where == f"--out {out.removeprefix('./')}"
    assert config.read_text() == before
    for _ in range(2):
        assert regard("compile", config).stdout.startswith("tiny.kubeflow.yaml: pipeline tiny")
    assert read_pipeline(tmp_path / "tiny.kubeflow.yaml").parameters.keys() == {
        "max_epochs",
        "seed",
    }


def test_an_invalid_pipeline_is_not_submitted(api, compiled, tmp_path):
    invalid = tmp_path / "invalid.yaml"
    invalid.write_text(compiled.read_text().replace("2.1.0", "2.0.0"))
    with pytest.raises(UserError, match=r"schemaVersion is '2.0.0'"):
        regard("submit", invalid, "--host", api.url)
    assert api.runs == []


def test_a_host_that_does_not_respond(compiled):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        host = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(UserError, match="does not respond") as caught:
        regard("submit", compiled, "--host", host)
    assert caught.value.where == host
    assert "port-forward" in caught.value.remedy


def test_a_wrong_path_of_the_host(api, compiled):
    with pytest.raises(UserError, match="not the API of Kubeflow Pipelines"):
        regard("submit", compiled, "--host", f"{api.url}/console")


def test_authentication_by_token(api, compiled, monkeypatch):
    api.token = "sesame"
    with pytest.raises(UserError, match=r"Authentication required \(401\)") as caught:
        regard("submit", compiled, "--host", api.url)
    assert "KF_PIPELINES_TOKEN" in caught.value.remedy
    monkeypatch.setenv("KF_PIPELINES_TOKEN", "wrong")
    with pytest.raises(UserError, match=r"Access denied \(403\)"):
        regard("submit", compiled, "--host", api.url)
    monkeypatch.setenv("KF_PIPELINES_TOKEN", "sesame\n")  # as from a file
    assert regard("submit", compiled, "--host", api.url).exit_code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--no-catchup"], "requires --cron"),
        (["--cron", "0 25 * * *"], "is not a cron expression"),
        (["--host", "localhost:8888"], "is not a URL"),
        (["--host", "kubeflow"], "is not a URL"),
        ([], "address of Kubeflow Pipelines is missing"),
    ],
)
def test_invalid_options(compiled, options, message):
    with pytest.raises(UserError, match=message):
        regard("submit", compiled, *options)
