"""The section ``kubeflow``: defaults and checks."""

from pathlib import Path

import pytest

from regard.core.yaml_text import to_yaml
from regard.pipeline.config import load
from tests.pipeline.config.refusals import compare, load_text, problems_of

HEAD = "name: x\ndata: {train: a.tsv}\nkubeflow:\n"
WITH = HEAD + "  image: r/i:1\n  volumes: {v: /regard}\n"


def load_section(folder: Path, text: str):
    return load_text(folder, text).kubeflow


def test_the_section_is_optional(tmp_path):
    assert load_section(tmp_path, "name: x\ndata: {train: a.tsv}\n") is None


def test_resources_fall_back_to_the_default(tmp_path):
    more = "  resources: {default: {cpu: 2, memory: 4}, Trainer: {memory: 16, gpu: 1}}\n"
    kubeflow = load_section(tmp_path, WITH + more)
    trainer, other = kubeflow.resources_of("Trainer"), kubeflow.resources_of("Pusher")
    assert (trainer.cpu, trainer.memory, trainer.gpu) == (2, 16, 1)
    assert (other.cpu, other.memory, other.gpu) == (2, 4, None)


def test_null_removes_a_default_resource(tmp_path):
    more = "  resources: {default: {gpu: 1, memory: 4}, Pusher: {gpu: null}, Trainer: {gpu: 0}}\n"
    kubeflow = load_section(tmp_path, WITH + more)
    assert kubeflow.resources_of("Pusher").gpu is None
    assert kubeflow.resources_of("Pusher").memory == 4
    assert kubeflow.resources_of("Trainer").gpu == 0
    assert kubeflow.resources_of("Predictor").gpu == 1


def test_registry_folder(tmp_path):
    assert load_section(tmp_path, WITH).registry_folder == "/regard/registry"
    assert (
        load_section(tmp_path, WITH + "  registry: /regard/models\n").registry_folder
        == "/regard/models"
    )


def test_pods_fall_back_to_the_default(tmp_path):
    default = "retries: 2, environment: {A: b}, tolerations: [{key: gpu}]"
    more = f"  pods: {{default: {{{default}}}, Trainer: {{retries: 0, tolerations: []}}}}\n"
    kubeflow = load_section(tmp_path, WITH + more)
    trainer, other = kubeflow.pod_of("Trainer"), kubeflow.pod_of("Pusher")
    assert (trainer.retries, trainer.environment, trainer.tolerations) == (0, {"A": "b"}, ())
    assert (other.retries, other.tolerations[0].key) == (2, "gpu")


def test_names_of_kubernetes_are_accepted(tmp_path):
    more = """  pods:
    default:
      environment: {_a1: "", PATH: "$(PATH):/x"}
      secret_environment: {A: a.b-c.9/.tls-key_1}
      secret_folders: {certificates: /etc/certificates}
      node_selector: {example.org/a_b.C: "", x: 1.2-b_C}
"""
    assert load_section(tmp_path, WITH + more).pod_of("Pusher").secret_environment["A"]


POD = WITH + "  pods: {default: {%s}}\n"
IN_POD = "6: kubeflow.pods.default."
CASES = {
    WITH + "  pods: {Trainr: {retries: 1}}\n": (
        "6: kubeflow.pods.Trainr: 'Trainr' is not a node. Did you mean Trainer?"
    ),
    POD % "retries: 11": f"{IN_POD}retries: must be less than or equal to 10",
    POD % "environment: {1A: x}": f"{IN_POD}environment.1A: ",
    POD % "environment: {A: 1}": f"{IN_POD}environment.A: ",
    POD % "environment: {KFP_POD_NAME: x}, secret_environment: {NAMESPACE: s/y}": [
        f"{IN_POD}environment.KFP_POD_NAME: is set by Kubeflow; choose another name",
        f"{IN_POD}secret_environment.NAMESPACE: is set by Kubeflow; choose another name",
    ],
    POD % "environment: {A: x}, secret_environment: {A: s/key}": (
        f"{IN_POD}secret_environment.A: is also set by environment"
    ),
    POD % "secret_environment: {A: s, B: s/t/u, C: S/t}": [
        f"{IN_POD}secret_environment.A: ",
        f"{IN_POD}secret_environment.B: ",
        f"{IN_POD}secret_environment.C: ",
    ],
    POD % "secret_folders: {s: etc, s.t: /etc/s}": [
        f"{IN_POD}secret_folders.s: ",
        f"{IN_POD}secret_folders.s.t: ",
    ],
    POD % "secret_folders: {v: /x, w: /regard, y: /etc/s, z: /etc/s}": [
        f"{IN_POD}secret_folders.v: is also the name of a volume",
        f"{IN_POD}secret_folders.w: '/regard' is already the folder of another volume",
        f"{IN_POD}secret_folders.z: '/etc/s' is already the folder of another volume",
    ],
    POD % "image_pull_secrets: [a_b]": f"{IN_POD}image_pull_secrets.0: ",
    POD % "node_selector: {a/b/c: d}": f"{IN_POD}node_selector.a/b/c: ",
    POD % "labels: {a: -b}": f"{IN_POD}labels.a: ",
    POD % "tolerations: [{key: a, value: b}, {value: a}]": (
        f"{IN_POD}tolerations.1.value: needs a key"
    ),
    POD % "scratch: 0": f"{IN_POD}scratch: must be greater than or equal to 0.001",
    HEAD + "  volumes: {v: /regard}\n": "3: kubeflow.image: is missing",
    HEAD + "  image: r/i:1\n": "3: kubeflow.home: no volume contains /regard",
    WITH + "  registry: /models\n": "6: kubeflow.registry: no volume contains /models",
    HEAD + "  image: r/i:1\n  volumes: {v: /regard, w: /regard}\n": (
        "5: kubeflow.volumes.w: '/regard' is already the folder of another volume"
    ),
    WITH + "  resources: {Trainr: {cpu: 1}}\n": (
        "6: kubeflow.resources.Trainr: 'Trainr' is not a node. Did you mean Trainer?"
    ),
    WITH + "  pipeline_root: /data/root\n": (
        "6: kubeflow.pipeline_root: '/data/root' is not possible: Where the locations of"
    ),
    WITH + "  home: regard\n": (
        "6: kubeflow.home: 'regard' is not possible: The value of ${REGARD_HOME} in the"
    ),
    WITH + "  resources: {default: {cpu: 0}}\n": (
        "6: kubeflow.resources.default.cpu: must be greater than or equal to 0.001"
    ),
    WITH + "  resources: {default: {memory: 1.0e+21}, Trainer: {memory: 0.00001}}\n": [
        "6: kubeflow.resources.default.memory: must be less than or equal to 1000000",
        "6: kubeflow.resources.Trainer.memory: must be greater than or equal to 0.001",
    ],
    HEAD + "  image: r/i:1\n  volumes: {" + 64 * "a" + ": /regard}\n": (
        f"5: kubeflow.volumes.{64 * 'a'}: "
    ),
    WITH + "  home: /regard/../etc\n": "6: kubeflow.home: '/regard/../etc' is not possible",
    WITH.replace("/regard", "/./regard"): "5: kubeflow.volumes.v: '/./regard' is not possible",
    WITH + "serving: {registry: models}\n": (
        "6: serving.registry: has no effect on a cluster; use kubeflow.registry"
    ),
    (
        WITH.replace("{train: a.tsv}", "{root: 's3://b/d', train: ['a.tsv', 'gs://b/b.tsv']}")
        + "tokenizer: {type: word, word_list: 'http://h/words'}\n"
    ): [
        "2: data.root: 's3://b/d' is a URI; copy it to a volume",
        "2: data.train: 'gs://b/b.tsv' is a URI",
        "6: tokenizer.word_list: 'http://h/words' is a URI",
    ],
}


@pytest.mark.parametrize(("text", "expected"), CASES.items())
def test_refused(text, expected, tmp_path):
    compare(problems_of(tmp_path, text), expected)


def test_a_task_without_text_has_no_tokenizer_node(tmp_path: Path) -> None:
    head = WITH.replace("data: {train: a.tsv}", "task: pointer\ndata: {train: a.jsonl}")
    (problem,) = problems_of(tmp_path, head + "  resources: {TokenizerTrainer: {cpu: 1}}\n")
    assert "'TokenizerTrainer' is not a node" in problem


def test_a_recorded_configuration_is_valid(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(WITH)
    recorded = load(tmp_path / "a.yaml").recorded()
    (tmp_path / "b.yaml").write_text(to_yaml(recorded))
    assert load(tmp_path / "b.yaml").recorded() == recorded
