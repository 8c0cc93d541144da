"""The completion of a shell, by the protocol of its scripts."""

import subprocess
import sys
from pathlib import Path

import pytest

from regard.models.tasks import TASKS
from regard.pipeline.cli import app
from regard.pipeline.cli.completion import complete_node
from regard.pipeline.config.config import ALL_NODES

# What makes an import slow.
HEAVY = ("tensorflow", "keras", "tfx", "apache_beam", "pyarrow", "matplotlib")


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """A workspace with two models, of which one has two versions."""
    monkeypatch.setenv("REGARD_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for version in ("quickstart/1", "quickstart/2", "birds/7"):
        folder = tmp_path / "registry" / version
        folder.mkdir(parents=True)
        (folder / "saved_model.pb").touch()
    (tmp_path / "pipelines" / "quickstart" / "runs").mkdir(parents=True)
    Path("points.yaml").write_text("name: points\ntask: pointer\n")
    return tmp_path


@pytest.fixture
def complete(workspace, monkeypatch, capfd):
    """Return what bash offers for the last word of a line."""

    def call(line: str) -> list[str]:
        monkeypatch.setenv("_REGARD_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
        monkeypatch.setattr(sys, "argv", ["regard"])
        with pytest.raises(SystemExit):
            app.main()
        return capfd.readouterr().out.split()

    return call


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("regard ru", ["run", "runs"]),
        ("regard predict ", ["birds", "birds@7", "quickstart", "quickstart@2", "quickstart@1"]),
        ("regard predict quickstart@", ["quickstart@2", "quickstart@1"]),
        ("regard registry prune b", ["birds"]),
        ("regard rollback quickstart ", ["2", "1"]),
        ("regard serve b", ["birds", "birds@7"]),
        ("regard runs ", ["quickstart"]),
        ("regard report q", ["quickstart"]),
        ("regard run x.yaml --from Tr", ["Trainer"]),
        ("regard run x.yaml --runner ", ["local", "beam"]),
        ("regard init s", ["similarity", "span", "summarisation"]),
        ("regard config schema --task tr", ["translation"]),
        ("regard data fetch ", ["multi30k"]),
        ("regard data generate s", ["scenes", "sorting", "stories"]),
        ("regard run points.yaml --set model.dim", ["model.dimensions="]),
        ("regard run absent.yaml --set model.dim", []),
        ("regard compare points.yaml other.yaml --set model.dim", ["model.dimensions="]),
        ("regard rollback absent ", []),
    ],
)
def test_values_are_offered(line, offered, complete):
    assert complete(line) == offered


def test_all_tasks_nodes_and_keys_are_offered(complete):
    assert complete("regard init ") == [*TASKS]
    assert complete("regard run x.yaml --to ") == [*ALL_NODES]
    keys = complete("regard run --set training.max_")
    assert {"training.max_epochs=", "training.max_steps="} <= {*keys}
    assert all(key.startswith("training.max_") for key in keys)


def test_another_registry(complete, tmp_path):
    folder = tmp_path / "other" / "cats" / "1"
    folder.mkdir(parents=True)
    (folder / "saved_model.pb").touch()
    assert complete(f"regard predict --registry {tmp_path}/other ") == ["cats", "cats@1"]


def test_an_error_offers_nothing(complete, workspace, monkeypatch):
    monkeypatch.setitem(sys.modules, "regard.pipeline.config.config", None)
    assert complete_node(None, "") == []


@pytest.mark.parametrize(
    ("shell", "variables", "output"),
    [
        ("bash", {"COMP_WORDS": "regard predict bir", "COMP_CWORD": "2"}, "birds\nbirds@7"),
        (
            "zsh",
            {"_TYPER_COMPLETE_ARGS": "regard predict bir"},
            '_arguments \'*: :(("birds"\n"birds@7"))\'',
        ),
        (
            "fish",
            {
                "_TYPER_COMPLETE_ARGS": "regard predict bir",
                "_TYPER_COMPLETE_FISH_ACTION": "get-args",
            },
            "birds\nbirds@7",
        ),
    ],
)
def test_shells_are_answered_without_large_libraries(
    shell, variables, output, workspace, monkeypatch
):
    for name, value in {"_REGARD_COMPLETE": f"complete_{shell}", **variables}.items():
        monkeypatch.setenv(name, value)
    code = f"import sys; sys.modules |= dict.fromkeys({HEAVY}); sys.argv = ['regard']\n"
    code += "from regard.pipeline.cli.__main__ import main; main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.stdout.strip(), result.stderr) == (output, "")
