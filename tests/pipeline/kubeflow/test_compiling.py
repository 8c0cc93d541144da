"""What is in the file that a cluster gets: of the configuration, and of nothing else."""

import json

import pytest
import yaml
from google.protobuf import json_format
from kfp import components
from kfp.pipeline_spec import pipeline_spec_pb2

from components.errors import UserError
from components.parameters import PARAMETERS
from pipeline.kubeflow.compiling import compiled, write
from pipeline.kubeflow.settings import load_for_cluster
from pipeline.nodes import NODES
from tests.pipeline.kubeflow.pipelines import CONFIG, KUBEFLOW, write_config

MORE = """
kubeflow:
  image: registry.example.org/regard:1
  home: /mnt/regard
  registry: /mnt/models
  volumes: {regard: /mnt/regard, models: /mnt/models}
  resources:
    default: {cpu: 2, memory: 4}
    Trainer: {memory: 16.5, gpu: 1}
    Predictor: {gpu: 2, accelerator: amd.com/gpu}
training: {max_epochs: null, max_steps: 5, seed: 4}
beam: {runner: processes, workers: 3}
"""


def documents(folder, more=KUBEFLOW, config=CONFIG):
    return compiled(load_for_cluster(write_config(folder, more, config)))


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return documents(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def rich(tmp_path_factory):
    return documents(tmp_path_factory.mktemp("rich"), MORE)


def constant(spec, node, name):
    given = spec["root"]["dag"]["tasks"][node]["inputs"]["parameters"][name]
    return given["runtimeValue"]["constant"]


def container(spec, node):
    return spec["deploymentSpec"]["executors"][f"{node}_executor"]["container"]


def test_every_node_is_a_container_of_the_image_with_our_entry_point(plain):
    spec = plain[0]
    assert set(spec["root"]["dag"]["tasks"]) == set(NODES)
    for node in NODES:
        found = container(spec, node)
        assert set(found) <= {"image", "command", "args", "resources"}
        assert found["image"] == "registry.example.org/regard:1"
        assert found["command"] == ["python", "-m", "pipeline.kubeflow.container"]
        assert "--runner=FnApiRunner" in found["args"]


def test_paths_are_those_of_the_containers(plain):
    spec = plain[0]
    data = json.loads(constant(spec, "CorpusGen", "data"))
    assert data["root"] == "/regard/data"
    assert data["train"] == "train-*.tsv"
    assert constant(spec, "Pusher", "registry") == "/regard/registry"
    training = json.loads(constant(spec, "Trainer", "custom_config"))
    assert training["checkpoints"].startswith("/regard/pipelines/tiny/checkpoints/")
    assert spec["defaultPipelineRoot"] == "minio://mlpipeline/v2/artifacts"


def test_what_only_a_run_can_know_is_left_to_it(plain):
    spec = plain[0]
    assert constant(spec, "CorpusGen", "fingerprint") == ""
    assert constant(spec, "Predictor", "production") == "/regard/registry/tiny"
    assert constant(spec, "Predictor", "production_version") == "latest"
    profile = json.loads(constant(spec, "ExampleValidator", "production"))
    assert profile == {"version": "latest", "versions": "/regard/registry/tiny"}
    assert json.loads(constant(spec, "Reporter", "about"))["fingerprint"] == ""
    assert json.loads(constant(spec, "Pusher", "record"))["data_fingerprint"] == ""
    assert json.loads(constant(spec, "Trainer", "custom_config"))["checkpoints_by_content"] is True


def test_nothing_is_cached(plain):
    """Kubeflow's cache does not see the content of the files."""
    tasks = plain[0]["root"]["dag"]["tasks"].values()
    assert not any(task.get("cachingOptions", {}).get("enableCache") for task in tasks)


def test_parameters_have_the_configuration_s_values_as_defaults(plain, rich):
    known = plain[0]["root"]["inputDefinitions"]["parameters"]
    assert {name: known[name]["defaultValue"] for name in known} == {"max_epochs": 20, "seed": 17}
    for name, parameter in known.items():
        assert parameter["parameterType"] == "NUMBER_INTEGER"
        assert parameter["isOptional"] is True
        assert parameter["description"] == PARAMETERS[name].about
    for node in ("Trainer", "Pusher", "Reporter"):
        inputs = plain[0]["root"]["dag"]["tasks"][node]["inputs"]["parameters"]
        assert inputs["seed"] == {"componentInputParameter": "seed"}
    known = rich[0]["root"]["inputDefinitions"]["parameters"]
    assert {name: known[name]["defaultValue"] for name in known} == {"max_epochs": 0, "seed": 4}


def test_nodes_ask_for_what_the_configuration_says(plain, rich):
    assert "resources" not in container(plain[0], "Trainer")
    default = {"cpuRequest": 2.0, "cpuLimit": 2.0, "memoryRequest": 4.0, "memoryLimit": 4.0}
    assert container(rich[0], "CorpusGen")["resources"] == default
    assert container(rich[0], "Trainer")["resources"] == {
        **default,
        "memoryRequest": 16.5,
        "memoryLimit": 16.5,
        "accelerator": {"type": "nvidia.com/gpu", "count": "1"},
    }
    asked = container(rich[0], "Predictor")["resources"]["accelerator"]
    assert asked == {"type": "amd.com/gpu", "count": "2"}


def test_nodes_with_accelerators_have_an_image_of_their_own(tmp_path, rich):
    assert container(rich[0], "Trainer")["image"] == "registry.example.org/regard:1"
    cuda = "registry.example.org/regard:1-cuda"
    more = MORE.replace("  home:", f"  gpu_image: {cuda}\n  home:")
    spec = documents(tmp_path, more)[0]
    found = {node for node in NODES if container(spec, node)["image"] == cuda}
    assert found == {"Trainer", "Predictor"}


def test_several_workers_are_refused(tmp_path):
    path = write_config(tmp_path, f"{KUBEFLOW}\ntraining: {{devices: workers}}\n", CONFIG)
    with pytest.raises(UserError, match="one container") as error:
        load_for_cluster(path)
    assert "devices: all" in error.value.remedy


def test_home_registry_and_volumes(rich):
    spec, platform = rich
    assert constant(spec, "Pusher", "registry") == "/mnt/models"
    assert json.loads(constant(spec, "CorpusGen", "data"))["root"] == "/mnt/regard/data"
    assert "defaultPipelineRoot" not in spec
    executors = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    assert set(executors) == set(spec["deploymentSpec"]["executors"])
    for executor in executors.values():
        mounts = {mount["mountPath"]: mount["constant"] for mount in executor["pvcMount"]}
        assert mounts == {"/mnt/regard": "regard", "/mnt/models": "models"}


def test_beam_is_told_what_the_configuration_says(rich):
    args = container(rich[0], "StatisticsGen")["args"]
    assert args[-2:] == ["--direct_running_mode=multi_processing", "--direct_num_workers=3"]


def test_beams_workers_must_be_in_the_node(tmp_path):
    flink = MORE.replace(
        "beam: {runner: processes, workers: 3}",
        "beam: {runner: flink, options: {sdk_container_image: regard}}",
    )
    with pytest.raises(UserError, match="would not see the local folders") as caught:
        documents(tmp_path, flink)
    assert caught.value.where == "beam.runner"


def test_the_file_is_read_by_the_sdk_and_is_always_the_same(plain, tmp_path):
    write(plain, tmp_path / "a.yaml")
    write(documents(tmp_path), tmp_path / "b.yaml")
    text = (tmp_path / "a.yaml").read_text()
    assert text == (tmp_path / "b.yaml").read_text()
    assert "# Parameter max_epochs (default 20): Passes" in text
    assert "*id" not in text  # no aliases
    assert yaml.safe_load(text.split("\n---\n")[0]) == plain[0]
    loaded = components.load_component_from_file(str(tmp_path / "a.yaml"))
    assert set(loaded.component_spec.inputs) == set(PARAMETERS)
    json_format.ParseDict(plain[1], pipeline_spec_pb2.PlatformSpec())


def test_a_pipeline_without_a_comparison_looks_for_no_version(tmp_path):
    config = CONFIG.replace("[exact_match]}", "[exact_match], production: null}")
    spec = documents(tmp_path, config=config)[0]
    assert constant(spec, "Predictor", "production_version") == ""
    assert constant(spec, "ExampleValidator", "production") == ""


def test_spans_are_left_to_the_run(tmp_path):
    config = CONFIG.replace("train-*.tsv", "train-{SPAN}.tsv")
    config = config.replace('.tsv"}', '.tsv", spans: {window: 3}}')
    spec = documents(tmp_path, config=config)[0]
    data = json.loads(constant(spec, "CorpusGen", "data"))
    assert data["train"] == "train-{SPAN}.tsv"
    assert data["spans"]["window"] == 3
    assert "taken" not in data["spans"]
    stored = json.loads(constant(spec, "ExampleValidator", "features"))
    assert [feature["name"] for feature in stored] == ["source", "target", "span"]


def test_without_a_section_there_is_no_cluster(tmp_path):
    with pytest.raises(UserError, match="says nothing about a cluster"):
        documents(tmp_path, more="")
