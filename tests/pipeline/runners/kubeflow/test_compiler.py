"""Compiling a configuration to a PipelineSpec and a PlatformSpec."""

import json

import pytest

from regard.components.common.runtime_parameters import PARAMETERS
from regard.core.errors import UserError
from regard.pipeline.config.config import NODES
from regard.pipeline.runners.kubeflow.settings import load_for_cluster
from tests.pipeline.runners.kubeflow.pipelines import CONFIG, KUBEFLOW, compile_config, write_config

IMAGE = "registry.example.org/regard:1"
RICH = """
kubeflow:
  image: registry.example.org/regard:1
  gpu_image: registry.example.org/regard:1-cuda
  home: /mnt/regard
  registry: /mnt/models
  volumes: {regard: /mnt/regard, models: /mnt/models}
  resources:
    default: {cpu: 2, memory: 4}
    Trainer: {memory: 16.5, gpu: 1}
    Predictor: {gpu: 2}
  pods:
    default:
      retries: 2
      environment: {OMP_NUM_THREADS: "2"}
      secret_environment: {HTTPS_PROXY: proxy/url, NO_PROXY: proxy/none}
    Trainer:
      retries: 9
      image_pull_secrets: [registry]
      labels: {example.org/team: a}
      node_selector: {gpu: "yes"}
      tolerations: [{key: gpu}, {key: a, value: b, effect: NoExecute}, {}]
      secret_environment: {}
      secret_folders: {certificates: /etc/certificates}
      environment: {}
      scratch: 20
training: {max_epochs: null, max_steps: 5, seed: 4}
beam: {runner: processes, workers: 3}
"""


@pytest.fixture(scope="module")
def rich(tmp_path_factory):
    return compile_config(tmp_path_factory.mktemp("rich"), RICH)


def inputs_of(pipeline, node):
    return pipeline.spec["root"]["dag"]["tasks"][node]["inputs"]["parameters"]


def constant(pipeline, node, name):
    return inputs_of(pipeline, node)[name]["runtimeValue"]["constant"]


def defaults(pipeline):
    return {name: p["defaultValue"] for name, p in pipeline.parameters.items()}


def container(pipeline, node):
    return pipeline.spec["deploymentSpec"]["executors"][f"{node}_executor"]["container"]


def test_every_node_runs_our_entrypoint_in_the_image(pipeline):
    assert set(pipeline.spec["root"]["dag"]["tasks"]) == set(NODES)
    command = ["python", "-m", "regard.pipeline.runners.kubeflow.entrypoint"]
    for node in NODES:
        facts = dict(container(pipeline, node))
        assert "--runner=FnApiRunner" in facts.pop("args")
        assert facts == {"image": IMAGE, "command": command}


def test_paths_are_those_of_the_containers(pipeline):
    data = json.loads(constant(pipeline, "CorpusGen", "corpus"))["config"]
    assert (data["root"], data["train"]) == ("/regard/data", "train-*.tsv")
    assert constant(pipeline, "Pusher", "registry") == "/regard/registry"
    run = json.loads(constant(pipeline, "Trainer", "custom_config"))["run"]
    assert run["checkpoints"] == "/regard/pipelines/tiny/checkpoints"
    assert run["checkpoint_key"] == ""  # the Trainer computes it from the data
    assert pipeline.pipeline_root == "minio://mlpipeline/v2/artifacts"


def test_fingerprint_and_production_version_are_resolved_at_run_time(pipeline):
    assert constant(pipeline, "CorpusGen", "fingerprint") == ""
    assert constant(pipeline, "Predictor", "production") == "/regard/registry/tiny"
    assert constant(pipeline, "Predictor", "production_version") == "latest"
    profile = json.loads(constant(pipeline, "ExampleValidator", "production"))
    assert profile == {"version": "latest", "versions": "/regard/registry/tiny"}


def test_run_parameters_default_to_the_configuration(pipeline, rich):
    assert defaults(pipeline) == {"max_epochs": 20, "seed": 17}
    assert defaults(rich) == {"max_epochs": 0, "seed": 4}
    for name, parameter in pipeline.parameters.items():
        assert parameter["parameterType"] == "NUMBER_INTEGER"
        assert parameter["isOptional"] is True
        assert parameter["description"] == PARAMETERS[name].description
    for node in ("Trainer", "Pusher", "Reporter"):
        assert inputs_of(pipeline, node)["seed"] == {"componentInputParameter": "seed"}


def test_nodes_request_their_resources(rich):
    default = {"cpuRequest": 2.0, "cpuLimit": 2.0, "memoryRequest": 4.0, "memoryLimit": 4.0}
    assert container(rich, "CorpusGen")["resources"] == default
    gpus = {"type": "nvidia.com/gpu", "count": "2"}
    assert container(rich, "Predictor")["resources"] == {**default, "accelerator": gpus}
    more = {"memoryRequest": 16.5, "memoryLimit": 16.5, "accelerator": {**gpus, "count": "1"}}
    assert container(rich, "Trainer")["resources"] == {**default, **more}
    gpu_nodes = {node for node in NODES if container(rich, node)["image"] == f"{IMAGE}-cuda"}
    assert gpu_nodes == {"Trainer", "Predictor"}


def test_home_registry_and_volumes(rich):
    assert constant(rich, "Pusher", "registry") == "/mnt/models"
    assert json.loads(constant(rich, "CorpusGen", "corpus"))["config"]["root"] == "/mnt/regard/data"
    assert rich.pipeline_root is None
    executors = rich.platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    assert set(executors) == set(rich.spec["deploymentSpec"]["executors"])
    for executor in executors.values():
        assert executor["pvcMount"] == [  # only keys that every server knows
            {"mountPath": "/mnt/regard", "constant": "regard"},
            {"mountPath": "/mnt/models", "constant": "models"},
        ]


def test_pods_have_the_settings_of_their_node(rich, pipeline):
    task = rich.spec["root"]["dag"]["tasks"]
    # Argo gives up after the maximum, and without one at once; it counts from the first attempt.
    policy = {"backoffDuration": "60s", "backoffFactor": 2.0, "backoffMaxDuration": "31536000s"}
    assert task["Pusher"]["retryPolicy"] == {"maxRetryCount": 2, **policy}
    assert task["Trainer"]["retryPolicy"] == {"maxRetryCount": 9, **policy}
    assert container(rich, "Pusher")["env"] == [{"name": "OMP_NUM_THREADS", "value": "2"}]
    assert "env" not in container(rich, "Trainer")
    executors = rich.platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    volumes = executors["Pusher_executor"].pop("pvcMount")
    proxy = [{"envVar": "HTTPS_PROXY", "secretKey": "url"}]
    none = [{"envVar": "NO_PROXY", "secretKey": "none"}]
    assert executors["Pusher_executor"] == {
        "secretAsEnv": [{"secretName": "proxy", "keyToEnv": keys} for keys in (proxy, none)]
    }
    leaves = {"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute"}
    assert executors["Trainer_executor"] == {
        "pvcMount": volumes,
        "secretAsVolume": [{"secretName": "certificates", "mountPath": "/etc/certificates"}],
        "imagePullSecret": [{"secretName": "registry"}],
        "podMetadata": {"labels": {"example.org/team": "a"}},
        "nodeSelector": {"labels": {"gpu": "yes"}},
        "tolerations": [
            {"key": "gpu", "operator": "Exists"},
            leaves,
            {"operator": "Exists"},
        ],
        "emptyDirMounts": [{"volumeName": "regard-tmp", "mountPath": "/tmp", "sizeLimit": "20.0G"}],
    }
    executors = pipeline.platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    assert all(set(executor) == {"pvcMount"} for executor in executors.values())
    assert all("retryPolicy" not in task for task in pipeline.spec["root"]["dag"]["tasks"].values())


def test_artifacts_are_on_the_volume(pipeline, rich):
    for node in NODES:
        assert "--artifact_folder=/regard/artifacts" in container(pipeline, node)["args"]
        assert "--artifact_folder=/mnt/regard/artifacts" in container(rich, node)["args"]


@pytest.mark.parametrize("setting", ["", "keep_tokenizer: true"])
def test_the_nodes_find_the_models_that_they_start_from(tmp_path, setting):
    pipeline = compile_config(tmp_path, KUBEFLOW + f"training: {{warm_start: {{{setting}}}}}\n")
    start = json.loads(constant(pipeline, "TokenizerTrainer", "start"))
    assert start == ({"model": "production"} if setting else {})
    folder = constant(pipeline, "TokenizerTrainer", "published")
    assert folder == ("/regard/registry/tiny" if setting else "")
    run = json.loads(constant(pipeline, "Trainer", "custom_config"))["run"]
    assert run["published"] == "/regard/registry/tiny"
    assert (run["start"], run["ensemble"]) == (None, [])


def test_beam_options_are_arguments_of_the_nodes(rich):
    args = container(rich, "StatisticsGen")["args"]
    assert args[-2:] == ["--direct_running_mode=multi_processing", "--direct_num_workers=3"]


def test_without_a_production_baseline_no_version_is_read(tmp_path):
    config = CONFIG.replace("[exact_match]}", "[exact_match], production: null}")
    pipeline = compile_config(tmp_path, config=config)
    assert constant(pipeline, "Predictor", "production_version") == ""
    assert constant(pipeline, "ExampleValidator", "production") == ""


def test_spans_are_resolved_at_run_time(tmp_path):
    config = CONFIG.replace("train-*.tsv", "train-{SPAN}.tsv")
    config = config.replace('.tsv"}', '.tsv", spans: {window: 3}}')
    pipeline = compile_config(tmp_path, config=config)
    corpus = json.loads(constant(pipeline, "CorpusGen", "corpus"))
    assert corpus["config"]["train"] == "train-{SPAN}.tsv"
    assert corpus["spans"] is None
    spans = {"first_span": "", "last_span": "", "span_window": 3}
    assert defaults(pipeline) == {"max_epochs": 20, "seed": 17, **spans}
    kinds = [pipeline.parameters[name]["parameterType"] for name in spans]
    assert kinds == ["STRING", "STRING", "NUMBER_INTEGER"]
    for node in ("CorpusGen", "Pusher", "Reporter"):
        assert inputs_of(pipeline, node)["last_span"] == {"componentInputParameter": "last_span"}
    assert "# Parameter last_span (default empty): Last span" in pipeline.to_yaml()
    features = json.loads(constant(pipeline, "ExampleValidator", "features"))
    assert [feature["name"] for feature in features] == ["source", "target", "span"]


FLINK = "beam: {runner: flink, options: {environment_type: DOCKER, environment_config: regard}}\n"
DATAFLOW = """beam:
  runner: dataflow
  options: {project: p, region: r, temp_location: "gs://b/t", sdk_container_image: regard}
"""
WORKERS = "training: {devices: workers}\n"


@pytest.mark.parametrize(
    ("more", "where", "message"),
    [
        ("", "tiny.yaml: kubeflow", "no section kubeflow"),
        (KUBEFLOW + DATAFLOW, "beam.runner", "mount no volume"),
        (KUBEFLOW + WORKERS, "training.devices", "the address of the Trainer"),
    ],
)
def test_unsupported_configurations_are_refused(tmp_path, more, where, message):
    with pytest.raises(UserError, match=message) as caught:
        load_for_cluster(write_config(tmp_path, more))
    assert caught.value.where.endswith(where)
    assert "kubeflow" in caught.value.remedy or where in caught.value.remedy


def test_workers_of_beam_and_of_a_training_are_supported(tmp_path):
    pods = "  pods: {default: {environment: {TF_CONFIG: x}}}\n"
    pipeline = compile_config(tmp_path, KUBEFLOW + pods + FLINK + WORKERS)
    assert "--runner=FlinkRunner" in container(pipeline, "Preprocess")["args"]
    config = json.loads(constant(pipeline, "Trainer", "custom_config"))["config"]
    assert config["training"]["devices"] == "workers"


def test_configurations_of_two_tasks_in_one_process(tmp_path):
    (tmp_path / "other").mkdir()
    pointer = 'name: sorting\ntask: pointer\ndata: {root: "${REGARD_HOME}/data", train: "*.tsv"}\n'
    first = compile_config(tmp_path)
    second = compile_config(tmp_path / "other", config=pointer)
    assert compile_config(tmp_path).to_yaml() == first.to_yaml()
    tasks = [set(pipeline.spec["root"]["dag"]["tasks"]) for pipeline in (first, second)]
    assert tasks[0] - tasks[1] == {"TokenizerTrainer"}


EXTRA = """
from tfx.dsl.components.common.importer import Importer
from tfx.dsl.components.common.resolver import Resolver
from tfx.dsl.input_resolution.strategies.latest_artifact_strategy import LatestArtifactStrategy
from tfx.components import StatisticsGen
from tfx.types import Channel
from tfx.types.standard_artifacts import Examples, Model

def importer(nodes):
    rows = Importer("/regard/rows", Examples, properties={"span": 3}).with_id("Rows")
    return [rows, StatisticsGen(examples=rows.outputs["result"]).with_id("RowStatistics")]

def resolver(nodes):
    return [Resolver(strategy_class=LatestArtifactStrategy, model=Channel(type=Model))]
"""


def compile_extra(folder, function):
    (folder / f"own_{function}.py").write_text(EXTRA)
    return compile_config(folder, f"{KUBEFLOW}pipeline:\n  extra: own_{function}:{function}\n")


def test_an_importer_of_the_user_runs(tmp_path):
    pipeline = compile_extra(tmp_path, "importer")
    tasks = pipeline.spec["root"]["dag"]["tasks"]
    artifact = tasks["RowStatistics"]["inputs"]["artifacts"]["examples"]["taskOutputArtifact"]
    assert artifact == {"producerTask": "Rows", "outputArtifactKey": "result"}
    assert "Rows_executor" not in pipeline.platform["platforms"]["kubernetes"]["deploymentSpec"]

    from google.protobuf import json_format
    from kfp import local
    from kfp.local import importer_handler
    from kfp.pipeline_spec import pipeline_spec_pb2

    local.init(local.SubprocessRunner(use_venv=False), pipeline_root=str(tmp_path))
    spec = json_format.ParseDict(pipeline.spec, pipeline_spec_pb2.PipelineSpec())
    deployment = pipeline_spec_pb2.PipelineDeploymentConfig()
    json_format.ParseDict(pipeline.spec["deploymentSpec"], deployment)
    component = spec.components[spec.root.dag.tasks["Rows"].component_ref.name]
    inputs = inputs_of(pipeline, "Rows")
    arguments = {name: value["runtimeValue"]["constant"] for name, value in inputs.items()}
    outputs, status = importer_handler.run_importer(
        "tiny",
        "Rows",
        component,
        deployment.executors[component.executor_label],
        arguments,
        str(tmp_path),
        "1",
    )
    assert status.name == "SUCCESS"
    assert [artifact.uri for artifact in outputs.values()] == ["/regard/rows"]


def test_a_resolver_of_the_user_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"cannot run .*Resolver") as caught:
        compile_extra(tmp_path, "resolver")
    line = (tmp_path / "tiny.yaml").read_text().splitlines().index(
        "  extra: own_resolver:resolver"
    ) + 1
    assert caught.value.where == f"{tmp_path / 'tiny.yaml'}:{line}: pipeline.extra"
