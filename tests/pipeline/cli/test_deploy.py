"""``regard deploy render`` as a user types it."""

from __future__ import annotations

import pytest
import yaml
from typer.testing import CliRunner

from regard.components.common.errors import UserError
from regard.pipeline.cli.app import app
from tests import fake_models


@pytest.fixture
def home(tmp_path, monkeypatch):
    fake_models.save(fake_models.Reverser(), tmp_path / "registry" / "reverser" / "1")
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


def test_compose_needs_nothing(home):
    completed = _render("reverser", "--to", "compose", "-o", "here", "--memory", "1Gi")
    assert "needs" not in completed.stdout
    assert completed.stdout.splitlines()[-1] == "next  docker compose -f here/compose.yaml up"
    compose = yaml.safe_load((home / "here" / "compose.yaml").read_text())
    mounts = compose["services"]["tensorflow-serving"]["volumes"]
    assert mounts[0]["source"] == str(home / "registry")


def test_an_invalid_setting_writes_nothing(home):
    with pytest.raises(UserError, match="3 to 2 replicas"):
        _render("reverser", "--replicas", "3", "--max-replicas", "2")
    assert not (home / "deploy").exists()


@pytest.mark.parametrize(
    ("options", "where"),
    [
        (("--replicas", "3"), "--replicas"),
        # The default is rejected, too.
        (("--replicas", "2"), "--replicas"),
        (("--max-replicas", "8"), "--max-replicas"),
        (("--namespace", "nlp"), "--namespace"),
    ],
)
def test_compose_rejects_replicas_and_namespaces(home, options, where):
    with pytest.raises(UserError, match="one server without namespaces") as caught:
        _render("reverser", "--to", "compose", *options)
    assert caught.value.where == where
    assert "--to kubernetes" in caught.value.remedy
    assert not (home / "deploy").exists()


def test_kubernetes_takes_replicas_and_a_namespace(home):
    inputs = ("--replicas", "3", "--max-replicas", "8", "--namespace", "nlp")
    for number, (options, expected) in enumerate([((), (2, 6)), (inputs, (3, 8))]):
        assert _render("reverser", "-o", f"out{number}", *options).exit_code == 0
        spec = yaml.safe_load((home / f"out{number}" / "autoscaler.yaml").read_text())["spec"]
        assert (spec["minReplicas"], spec["maxReplicas"]) == expected
        kustomization = yaml.safe_load((home / f"out{number}" / "kustomization.yaml").read_text())
        assert kustomization["namespace"] == ("nlp" if options else "default")
