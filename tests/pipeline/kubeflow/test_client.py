"""Runs and schedules, against a server that reads requests with the API's own models."""

import json
import socket
import subprocess
import sys

import pytest
import yaml
from typer.testing import CliRunner

from components.errors import UserError
from pipeline.cli import app
from tests.pipeline.kubeflow.api import serving
from tests.pipeline.kubeflow.pipelines import KUBEFLOW, write_config


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A pipeline's file, compiled by the command."""
    folder = tmp_path_factory.mktemp("compiled")
    path = folder / "pipeline.yaml"
    call = ["compile", str(write_config(folder)), "--to", "kubeflow", "-o", str(path)]
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.cli", *call], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "12 nodes, parameters max_epochs, seed" in done.stdout
    return path


@pytest.fixture
def api(monkeypatch):
    monkeypatch.delenv("KF_PIPELINES_ENDPOINT", raising=False)
    monkeypatch.delenv("KF_PIPELINES_TOKEN", raising=False)
    with serving() as made:
        yield made


def regard(*arguments):
    done = CliRunner().invoke(app, [str(part) for part in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_a_run_is_started_with_its_parameters(api, compiled):
    call = ("submit", compiled, "--host", api.url, "--experiment", "nightly")
    done = regard(*call, "--param", "seed=3", "--json")
    assert json.loads(done.stdout) == {
        "id": "r1",
        "name": "tiny",
        "link": f"{api.url}/#/runs/details/r1",
    }
    (run,) = api.runs
    assert run.display_name == "tiny"
    assert run.experiment_id == "e0"
    assert [e["display_name"] for e in api.experiments] == ["nightly"]
    assert run.runtime_config.parameters == {"seed": 3}
    assert run.runtime_config.pipeline_root == "minio://mlpipeline/v2/artifacts"
    spec, platform = yaml.safe_load_all(compiled.read_text())
    assert run.pipeline_spec == {"pipeline_spec": spec, "platform_spec": platform}
    regard(*call)
    assert len(api.experiments) == 1  # the one that is there is taken


def test_the_host_may_come_from_the_environment(api, compiled, monkeypatch):
    monkeypatch.setenv("KF_PIPELINES_ENDPOINT", f"{api.url}/")
    done = regard("submit", compiled, "--name", "again")
    assert "Run again is started: r1" in done.stdout
    assert f"{api.url}/#/runs/details/r1" in done.stdout


def test_a_schedule_has_the_second_first(api, compiled):
    call = ("schedule", compiled, "--to", "kubeflow", "--host", api.url, "--cron", "0 3 * * 1-5")
    done = regard(*call, "--max-concurrency", "2", "--no-catchup", "--param", "max_epochs=2")
    assert "0 0 3 * * 1-5" in done.stdout
    (made,) = api.recurring
    assert made.trigger.cron_schedule.cron == "0 0 3 * * 1-5"
    assert (made.max_concurrency, made.no_catchup, made.mode) == ("2", True, "ENABLE")
    assert made.runtime_config.parameters == {"max_epochs": 2}
    assert made.runtime_config.pipeline_root == "minio://mlpipeline/v2/artifacts"
    with pytest.raises(UserError, match="there is a schedule 'tiny' already"):
        regard(*call)
    regard(*call, "--name", "other")
    assert [run.no_catchup for run in api.recurring] == [True, False]


@pytest.mark.parametrize("pair", ["sede=3", "seed=three", "seed=1.5"])
def test_a_parameter_that_does_not_fit_is_refused_before_the_cluster_is_asked(compiled, pair):
    with pytest.raises(UserError, match="parameter"):
        regard("submit", compiled, "--host", "http://127.0.0.1:9", "--param", pair)


def test_what_lint_finds_is_refused(api, compiled, tmp_path):
    broken = tmp_path / "broken.yaml"
    broken.write_text(compiled.read_text().replace("2.1.0", "2.0.0"))
    with pytest.raises(UserError, match=r"broken.yaml:\d+: schemaVersion: .*2.0.0"):
        regard("submit", broken, "--host", api.url)
    assert api.runs == []


def test_a_host_that_does_not_answer(compiled):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        host = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(UserError, match="does not answer") as caught:
        regard("submit", compiled, "--host", host)
    assert caught.value.where == host
    assert "port-forward" in caught.value.remedy


def test_a_host_that_is_something_else(api, compiled):
    with pytest.raises(UserError, match="not the API of Kubeflow Pipelines"):
        regard("submit", compiled, "--host", f"{api.url}/console")


@pytest.mark.parametrize("host", ["localhost:8888", "kubeflow"])
def test_a_host_is_a_url(compiled, host):
    with pytest.raises(UserError, match="is no URL"):
        regard("submit", compiled, "--host", host)


def test_no_host(compiled, monkeypatch):
    monkeypatch.delenv("KF_PIPELINES_ENDPOINT", raising=False)
    with pytest.raises(UserError, match="no host is given"):
        regard("submit", compiled)


def test_a_token_opens_the_door(api, compiled, monkeypatch):
    api.token = "sesame"
    with pytest.raises(UserError, match=r"who you are \(401\)") as caught:
        regard("submit", compiled, "--host", api.url)
    assert "KF_PIPELINES_TOKEN" in caught.value.remedy
    monkeypatch.setenv("KF_PIPELINES_TOKEN", "wrong")
    with pytest.raises(UserError, match=r"your account may not do this \(403\)"):
        regard("submit", compiled, "--host", api.url)
    monkeypatch.setenv("KF_PIPELINES_TOKEN", "sesame")
    assert regard("submit", compiled, "--host", api.url).exit_code == 0


@pytest.mark.parametrize(
    ("status", "told"), [(400, r"\(400\): invalid pipeline job inputs"), (403, "may not do this")]
)
def test_what_the_server_refuses_is_told_in_its_words(api, compiled, status, told):
    api.status = status
    with pytest.raises(UserError, match=told):
        regard("submit", compiled, "--host", api.url)


def test_a_bad_cron_is_refused_before_anything_else(tmp_path):
    config = write_config(tmp_path, KUBEFLOW)
    with pytest.raises(UserError, match="is no cron expression"):
        regard("schedule", config, "--to", "kubeflow", "--cron", "0 25 * * *")

    with pytest.raises(UserError, match="says nothing about a cluster") as caught:
        regard("submit", write_config(tmp_path, ""), "--host", "http://127.0.0.1:9")
    assert caught.value.where.endswith("tiny.yaml")
    assert "kubeflow:" in caught.value.remedy


def test_lint_tells_lines_effects_and_remedies(compiled, tmp_path):
    assert "nothing that Kubeflow would refuse" in regard("lint", compiled).stdout
    broken = tmp_path / "broken.yaml"
    broken.write_text(compiled.read_text().replace("schemaVersion: 2.1.0", "schemaVersion: 2.0.0"))
    done = regard("lint", broken)
    assert done.exit_code == 2
    assert "refused: schemaVersion: the schema version is 2.0.0" in done.stdout
    done = regard("lint", broken, "--json", "--param", "seed=x")
    assert done.exit_code == 2
    found = json.loads(done.stdout)["findings"]
    assert {finding["rule"] for finding in found} == {"schema", "parameter-value"}
    for finding in found:
        assert finding["remedy"]
        last = finding["key"].rsplit(".", 1)[-1]
        line = broken.read_text().splitlines()[finding["line"] - 1]
        assert line.strip().startswith(f"{last}:")
