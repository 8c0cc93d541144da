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


def test_a_null_is_none_whatever_the_default_is(tmp_path):
    more = "  resources: {default: {gpu: 1, memory: 4}, Pusher: {gpu: null}, Trainer: {gpu: 0}}\n"
    kubeflow = loaded(tmp_path, WITH + more)
    assert kubeflow.resources_of("Pusher").gpu is None
    assert kubeflow.resources_of("Pusher").memory == 4
    assert kubeflow.resources_of("Trainer").gpu == 0
    assert kubeflow.resources_of("Predictor").gpu == 1


def test_the_default_says_which_accelerator_a_node_asks_for(tmp_path):
    more = "  resources: {default: {accelerator: amd.com/gpu}, Trainer: {gpu: 2}}\n"
    trainer = loaded(tmp_path, WITH + more).resources_of("Trainer")
    assert (trainer.accelerator, trainer.gpu) == ("amd.com/gpu", 2)


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
        ["6: kubeflow.resources.default.cpu: must be at least 0.001"],
    ),
    "an amount that Kubernetes could not read": (
        WITH + "  resources: {default: {memory: 1.0e+21}, Trainer: {memory: 0.00001}}\n",
        [
            "6: kubeflow.resources.default.memory: must be at most 1000000",
            "6: kubeflow.resources.Trainer.memory: must be at least 0.001",
        ],
    ),
    "an accelerator that nobody asks for": (
        WITH + "  resources: {default: {accelerator: a.com/gpu}, Trainer: {gpu: 0}}\n",
        ["6: kubeflow.resources.default.accelerator: none of them is asked for"],
    ),
    "an accelerator of a node that asks for none": (
        WITH + "  resources: {default: {gpu: 1}, Pusher: {gpu: null, accelerator: a.com/gpu}}\n",
        ["6: kubeflow.resources.Pusher.accelerator: none of them is asked for"],
    ),
    "a claim whose name is no volume's": (
        HEAD + "  image: r/i:1\n  volumes: {my.claim: /regard}\n",
        ["5: kubeflow.volumes.my.claim: 'my.claim' is not possible"],
    ),
    "a claim whose name is too long": (
        HEAD + "  image: r/i:1\n  volumes: {" + 64 * "a" + ": /regard}\n",
        [f"5: kubeflow.volumes.{64 * 'a'}: "],
    ),
    "volumes over folders that are needed": (
        WITH.replace("{v:", "{a: /tmp, b: /opt, c: /minio/data, d: /var, v:"),
        [
            "5: kubeflow.volumes.a: '/tmp' would hide /tmp",
            "5: kubeflow.volumes.b: '/opt' would hide /opt/regard",
            "5: kubeflow.volumes.c: '/minio/data' is where Kubeflow's launcher copies",
            "5: kubeflow.volumes.d: '/var' would hide /var/run/argo",
        ],
    ),
    "a path that leads elsewhere": (
        WITH + "  home: /regard/../etc\n",
        ["6: kubeflow.home: '/regard/../etc' has a dot for a folder"],
    ),
    "a dot": (
        WITH.replace("/regard", "/./regard"),
        ["5: kubeflow.volumes.v: '/./regard' has a dot for a folder"],
    ),
    "a registry that a cluster does not read": (
        WITH + "serving: {registry: models}\n",
        ["6: serving.registry: is not read on a cluster; say with kubeflow.registry"],
    ),
    "files in a store": (
        WITH.replace("{train: a.tsv}", "{root: 's3://b/d', train: ['a.tsv', 'gs://b/b.tsv']}")
        + "tokenizer: {type: word, words: 'http://h/words'}\n",
        [
            "2: data.root: 's3://b/d' is in a store, and the nodes read local folders alone",
            "2: data.train: 'gs://b/b.tsv' is in a store",
            "6: tokenizer.words: 'http://h/words' is in a store",
        ],
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
