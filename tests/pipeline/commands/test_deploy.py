"""``regard deploy render`` as a user types it."""

from __future__ import annotations

import pytest
import yaml
from typer.testing import CliRunner

from components.errors import UserError
from pipeline.cli import app
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


def test_the_files_and_what_to_do_with_them(home):
    done = _render("reverser")
    assert done.exit_code == 0
    folder = home / "deploy" / "reverser"
    printed = done.stdout.splitlines()
    names = [line.rpartition("/")[2] for line in printed if line.startswith("deploy/")]
    assert sorted(names) == sorted(path.name for path in folder.iterdir())
    assert printed[-1] == "next  kubectl apply -k deploy/reverser"
    assert yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]


def test_compose_needs_nothing(home):
    done = _render("reverser", "--to", "compose", "-o", "here", "--memory", "1Gi")
    assert "needs" not in done.stdout
    assert done.stdout.splitlines()[-1] == "next  docker compose -f here/compose.yaml up"
    compose = yaml.safe_load((home / "here" / "compose.yaml").read_text())
    mounts = compose["services"]["tensorflow-serving"]["volumes"]
    assert mounts[0]["source"] == str(home / "registry")


def test_a_setting_that_cannot_be_writes_nothing(home):
    with pytest.raises(UserError, match="3 to 2 replicas"):
        _render("reverser", "--replicas", "3", "--max-replicas", "2")
    assert not (home / "deploy").exists()


@pytest.mark.parametrize(
    ("options", "where"),
    [
        (("--replicas", "3"), "--replicas"),
        # What is given is said, also where it is the default.
        (("--replicas", "2"), "--replicas"),
        (("--max-replicas", "8"), "--max-replicas"),
        (("--namespace", "nlp"), "--namespace"),
    ],
)
def test_compose_refuses_what_it_has_not(home, options, where):
    with pytest.raises(UserError, match="one server, and no namespaces") as caught:
        _render("reverser", "--to", "compose", *options)
    assert caught.value.where == where
    assert "--to kubernetes" in caught.value.remedy
    assert not (home / "deploy").exists()


def test_kubernetes_takes_replicas_and_a_namespace(home):
    given = ("--replicas", "3", "--max-replicas", "8", "--namespace", "nlp")
    for number, (options, expected) in enumerate([((), (2, 6)), (given, (3, 8))]):
        assert _render("reverser", "-o", f"out{number}", *options).exit_code == 0
        spec = yaml.safe_load((home / f"out{number}" / "autoscaler.yaml").read_text())["spec"]
        assert (spec["minReplicas"], spec["maxReplicas"]) == expected
        kustomization = yaml.safe_load((home / f"out{number}" / "kustomization.yaml").read_text())
        assert kustomization["namespace"] == ("nlp" if options else "default")
