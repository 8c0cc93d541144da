"""The node, the gate and the run_fn of the documentation, on this machine and on a cluster."""

import json
import os
import re
from pathlib import Path

import pytest

from regard.pipeline.config.config import NODES
from regard.pipeline.runners.kubeflow.compiler import compile_pipeline
from regard.pipeline.runners.kubeflow.settings import load_for_cluster
from tests.e2e.conftest import CONFIG, ROOT
from tests.e2e.test_kubeflow import KUBEFLOW, Cluster
from tests.pipeline.own_code import PIPELINE, edit, write_modules

pytestmark = pytest.mark.slow


def configure(folder: Path, more: str = "") -> str:
    """Write the modules and a configuration that uses them, and return its name."""
    write_modules(folder)
    word = (folder / "data/train.tsv").read_text().split("\t", 1)[0]
    edit(folder / "own_nodes.py", '"head"', f'"{word}"')
    text = CONFIG.format(data=folder / "data", epochs=5) + PIPELINE + more
    text = text.replace("training:\n", "training:\n  run_fn: own_training:run_fn\n")
    text = text.replace("type: beam, beam_size: 2, length_penalty: 0.0", "type: greedy")
    (folder / "tiny.yaml").write_text(text)
    return "tiny.yaml"


def versions(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("[0-9]*")]


def test_own_code_runs_is_cached_and_runs_again_after_an_edit(shell):
    config = configure(shell.folder)
    gate = shell.folder / "own_gate.py"
    edit(gate, '<= content["limit"]', "<= 0")
    result = shell.run("validate", config)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "CorpusGen → Profanity (own) → " in result.stdout
    result = shell.run("run", config)
    assert result.returncode == 3, result.stdout + result.stderr
    assert shell.states() == dict.fromkeys([*NODES, "Profanity", "Gate"], "done")
    assert "1 rows have profanity." in result.stdout
    assert versions(shell.home / "registry/tiny") == []
    artifacts = shell.home / "pipelines/tiny/artifacts"
    (count,) = artifacts.glob("Profanity/count/*/count.json")
    assert json.loads(count.read_text()) == {"count": 1, "limit": 5}
    (own,) = artifacts.glob("Trainer/model_run/*/own.txt")
    assert own.read_text() == "at most 5 epochs"

    result = shell.run("run", config)
    assert result.returncode == 3, result.stdout + result.stderr
    assert set(shell.states().values()) == {"cached"}
    log = max((shell.home / "pipelines/tiny/runs").iterdir()) / "log.txt"
    assert "All nodes are cached" in log.read_text()  # found without a worker

    edit(gate, "<= 0", '<= content["limit"]')
    result = shell.run("run", config)
    assert result.returncode == 0, result.stdout + result.stderr
    again = {name for name, state in shell.states().items() if state == "done"}
    assert again == {"Gate", "Pusher", "Reporter"}
    assert versions(shell.home / "registry/tiny") == ["1"]
    lineage = json.loads(shell.run("lineage", "tiny@1", "--json").stdout)
    assert {"Profanity", "Gate"} <= {node["node"] for node in lineage["nodes"]}

    edit(shell.folder / "own_nodes.py", "number = 0", "number = 7")
    result = shell.run("run", config, "--to", "Profanity")
    assert result.returncode == 0, result.stdout + result.stderr
    assert shell.states() == {"CorpusGen": "cached", "Profanity": "done"}

    edit(shell.folder / "own_training.py", "    train(fn_args)\n", "    raise ValueError('no')\n")
    result = shell.run("run", config, "--to", "Trainer")
    assert result.returncode == 2, result.stdout + result.stderr
    assert shell.states()["Preprocess"] == "cached"
    assert "ValueError: no" in result.stdout
    assert re.search(r"tiny\.yaml:\d+: training\.run_fn", result.stdout)


def test_own_code_runs_on_a_cluster_whose_image_has_it(shell, tmp_path):
    config = configure(shell.folder, KUBEFLOW.format(home=tmp_path / "regard"))
    pipeline = compile_pipeline(load_for_cluster(shell.folder / config))
    with pytest.MonkeyPatch.context() as patch:
        cluster = Cluster(tmp_path, pipeline, patch)
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(shell.folder)]))
        cluster.run()
        assert set(cluster.outputs) == {*NODES, "Profanity", "Gate"}
        count = cluster.folder("Profanity", "count") / "count.json"
        assert json.loads(count.read_text()) == {"count": 1, "limit": 5}
        assert (cluster.folder("Trainer", "model_run") / "own.txt").is_file()
        assert versions(tmp_path / "regard/registry/tiny") == ["1"]
