"""The section ``kubeflow``: what it fills in, and what cannot be."""

from pathlib import Path

import pytest

from pipeline.config import load
from tests.pipeline.config.refusals import compare, problems_of

HEAD = "name: x\ndata: {train: a.tsv}\nkubeflow:\n"
WITH = HEAD + "  image: r/i:1\n  volumes: {v: /regard}\n"


def loaded(folder: Path, text: str):
    (folder / "x.yaml").write_text(text)
    return load(folder / "x.yaml").kubeflow


def test_without_it_there_is_no_cluster(tmp_path):
    assert loaded(tmp_path, "name: x\ndata: {train: a.tsv}\n") is None


def test_a_node_takes_the_rest_from_the_default(tmp_path):
    more = "  resources: {default: {cpu: 2, memory: 4}, Trainer: {memory: 16, gpu: 1}}\n"
    kubeflow = loaded(tmp_path, WITH + more)
    trainer, other = kubeflow.resources_of("Trainer"), kubeflow.resources_of("Pusher")
    assert (trainer.cpu, trainer.memory, trainer.gpu) == (2, 16, 1)
    assert (other.cpu, other.memory, other.gpu) == (2, 4, None)


def test_the_registry_is_in_home_unless_it_is_elsewhere(tmp_path):
    assert loaded(tmp_path, WITH).served == "/regard/registry"
    assert loaded(tmp_path, WITH + "  registry: /regard/models\n").served == "/regard/models"


CASES = {
    "no image": (HEAD + "  volumes: {v: /regard}\n", ["3: kubeflow.image: is missing"]),
    "no volume": (
        HEAD + "  image: r/i:1\n",
        ["3: kubeflow.home: no volume holds /regard, so what is written there would go"],
    ),
    "a registry on no volume": (
        WITH + "  registry: /models\n",
        ["6: kubeflow.registry: no volume holds /models"],
    ),
    "a volume beside": (
        HEAD + "  image: r/i:1\n  volumes: {v: /regards}\n",
        ["3: kubeflow.home: no volume holds /regard"],
    ),
    "two volumes in one place": (
        HEAD + "  image: r/i:1\n  volumes: {v: /regard, w: /regard}\n",
        ["5: kubeflow.volumes.w: '/regard' is the folder of another volume"],
    ),
    "no node": (
        WITH + "  resources: {Trainr: {cpu: 1}}\n",
        ["6: kubeflow.resources.Trainr: 'Trainr' is no node; did you mean Trainer?"],
    ),
    "a store that the launcher does not know": (
        WITH + "  pipeline_root: /data/root\n",
        ["6: kubeflow.pipeline_root: '/data/root' is not possible: Where the artifacts go: minio"],
    ),
    "a relative home": (
        WITH + "  home: regard\n",
        ["6: kubeflow.home: 'regard' is not possible: What ${REGARD_HOME} is in the containers"],
    ),
    "nothing asked for": (
        WITH + "  resources: {default: {cpu: 0}}\n",
        ["6: kubeflow.resources.default.cpu: must be more than 0"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_refused(name: str, tmp_path: Path) -> None:
    text, expected = CASES[name]
    compare(problems_of(tmp_path, text), expected)


def test_a_task_without_text_has_no_tokenizer(tmp_path: Path) -> None:
    head = WITH.replace("data: {train: a.tsv}", "task: pointer\ndata: {train: a.jsonl}")
    (found,) = problems_of(tmp_path, head + "  resources: {TokenizerTrainer: {cpu: 1}}\n")
    assert "'TokenizerTrainer' is no node" in found
