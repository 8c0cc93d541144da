"""``regard deploy render`` as a user types it."""

import shutil

import pytest
import yaml
from typer.testing import CliRunner

from regard.core.errors import UserError
from regard.pipeline.cli.app import app
from tests import fake_models


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    folder = tmp_path_factory.mktemp("registry")
    fake_models.save(fake_models.Reverser(), folder / "reverser" / "1")
    return folder


@pytest.fixture
def home(tmp_path, monkeypatch, registry):
    shutil.copytree(registry, tmp_path / "registry")
    monkeypatch.setenv("REGARD_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _render(*arguments):
    return CliRunner().invoke(
        app, ["deploy", "render", *arguments], env={"COLUMNS": "100"}, catch_exceptions=False
    )


def test_files_and_the_next_command(home):
    completed = _render("reverser")
    assert completed.exit_code == 0
    folder = home / "deploy" / "reverser"
    printed = completed.stdout.splitlines()
    names = [line.rpartition("/")[2] for line in printed if line.startswith("deploy/")]
    assert sorted(names) == sorted(path.name for path in folder.iterdir())
    assert printed[-1] == "next  kubectl apply -k deploy/reverser"
    assert yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]


def test_compose_in_another_folder(home):
    completed = _render("reverser", "--to", "compose", "-o", "here", "--memory", "1Gi")
    assert completed.stdout.splitlines()[-1] == "next  docker compose -f here/compose.yaml up"
    compose = yaml.safe_load((home / "here" / "compose.yaml").read_text())
    service = compose["services"]["tensorflow-serving"]
    assert service["deploy"]["resources"]["limits"]["memory"] == "1g"
    assert service["volumes"][0]["source"] == str(home / "registry")


@pytest.mark.parametrize(
    ("option", "value"),
    # The default number of replicas is rejected, too.
    [("--replicas", "2"), ("--max-replicas", "8"), ("--namespace", "nlp")],
)
def test_compose_rejects_replicas_and_namespaces(home, option, value):
    with pytest.raises(UserError) as caught:
        _render("reverser", "--to", "compose", option, value)
    assert caught.value.where == option
    assert "--to kubernetes" in caught.value.remedy
    assert not (home / "deploy").exists()


@pytest.mark.parametrize(
    ("options", "replicas", "namespace"),
    [
        ((), (2, 6), "default"),
        (("--replicas", "3", "--max-replicas", "8", "--namespace", "nlp"), (3, 8), "nlp"),
    ],
)
def test_kubernetes_takes_replicas_and_a_namespace(home, options, replicas, namespace):
    _render("reverser", "-o", "out", *options)
    spec = yaml.safe_load((home / "out" / "autoscaler.yaml").read_text())["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == replicas
    kustomization = yaml.safe_load((home / "out" / "kustomization.yaml").read_text())
    assert kustomization["namespace"] == namespace


@pytest.mark.parametrize(
    "options", [["--to", "kserve", "--image", "example.com/regard:0.1.0"], ["--to", "compose"]]
)
def test_ctranslate2_needs_an_image_of_regard(home, options):
    with pytest.raises(UserError, match="TensorFlow Serving has no CTranslate2") as caught:
        _render("reverser", *options, "--engine", "ctranslate2")
    assert "--image with the image of Regard's Dockerfile" in caught.value.remedy
