"""A compiled pipeline under the local runner of Kubeflow's SDK, every node in its own process."""

import copy
import json
import os
import sys
from pathlib import Path

import pytest

from regard.pipeline.config.config import NODES
from regard.pipeline.runners.kubeflow.compiler import compile_pipeline
from regard.pipeline.runners.kubeflow.settings import load_for_cluster
from tests.e2e.conftest import CONFIG, ROOT, write_data
from tests.e2e.test_portable import beam_services, digests

pytestmark = pytest.mark.slow

KUBEFLOW = """
kubeflow:
  image: registry.example.org/regard:1
  pipeline_root: minio://mlpipeline/v2/artifacts
  home: {home}
  volumes: {{regard: {home}}}
"""


class Cluster:
    """Runs a compiled pipeline with ``kfp.local``, and remembers the tasks.

    Args:
        folder: contains the artifacts that a store would have.
        pipeline: the compiled pipeline.
        patch: patches for as long as the cluster exists.
    """

    def __init__(self, folder: Path, pipeline, patch: pytest.MonkeyPatch):
        from kfp import components, local
        from kfp.local import subprocess_task_handler, task_dispatcher

        self.store = folder / "store"
        self.tasks: dict[str, dict] = {}
        self.outputs: dict[str, dict] = {}
        self._producers: dict[str, tuple[str, str]] = {}  # by the URI of an output
        # The runner admits nodes of the SDK's own kind only, and runs the first `python`.
        for name in dir(subprocess_task_handler.SubprocessTaskHandler):
            if name.startswith("validate_"):
                handler = subprocess_task_handler.SubprocessTaskHandler
                patch.setattr(handler, name, lambda *_: None)
        patch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        patch.setenv("PYTHONPATH", str(ROOT))
        for name in [name for name in os.environ if name.startswith("REGARD_")]:
            patch.delenv(name)
        self._dispatch = task_dispatcher.run_single_task_implementation
        patch.setattr(task_dispatcher, "run_single_task_implementation", self._run_task)
        path = folder / "compiled.yaml"
        path.write_text(pipeline.to_yaml())
        local.init(local.SubprocessRunner(use_venv=False), pipeline_root=str(self.store))
        self.run = components.load_component_from_file(str(path))

    def run_again(self, node: str, arguments: list[str] | None = None, **parameters: str) -> None:
        """Run one task again on the outputs of the others, and replace its outputs.

        Args:
            node: its name.
            arguments: additional arguments of its command.
            parameters: parameters that differ.
        """
        task = copy.deepcopy(self.tasks[node])
        for key, value in task["arguments"].items():
            if uri := getattr(value, "uri", None):
                producer, output = self._producers[uri]
                task["arguments"][key] = self.outputs[producer][output]
        task["arguments"] |= parameters
        task["pipeline_resource_name"] += "-again"
        task["executor_spec"].container.args.extend(arguments or [])
        self._run_task(**task)

    def folder(self, node: str, key: str) -> Path:
        """Return the folder with the content of an output."""
        path = Path(self.outputs[node][key].uri)
        location = path / "regard_location.json"
        return Path(json.loads(location.read_text())["path"]) if location.exists() else path

    def _run_task(self, **task):
        node = task["component_name"].removeprefix("comp-")
        outputs, status = self._dispatch(**task)
        assert status.name == "SUCCESS", node
        self.tasks[node], self.outputs[node] = task, outputs
        self._producers |= {artifact.uri: (node, key) for key, artifact in outputs.items()}
        return outputs, status


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    config = folder / "tiny.yaml"
    text = CONFIG.format(data=folder / "data", epochs=9) + KUBEFLOW.format(home=folder / "regard")
    config.write_text(text.replace("train: train.tsv", "train: train-{SPAN}.tsv"))
    pipeline = compile_pipeline(load_for_cluster(config))
    write_data(folder / "data")  # only now, because compiling needs no data
    (folder / "data" / "train.tsv").rename(folder / "data" / "train-3.tsv")
    (folder / "data" / "train-4.tsv").write_text("a span\tof another run\n")
    with pytest.MonkeyPatch.context() as patch:
        cluster = Cluster(folder, pipeline, patch)
        cluster.run(max_epochs=6, last_span="3")
        yield folder, cluster


def test_the_store_has_the_report_and_the_locations_of_everything_else(cluster):
    folder, local = cluster
    assert set(local.outputs) == set(NODES)
    for node, artifacts in local.outputs.items():
        for key, artifact in artifacts.items():
            assert Path(artifact.uri).is_relative_to(local.store)
            assert any(local.folder(node, key).rglob("*"))
    names = {path.name for path in local.store.rglob("*") if path.is_file()}
    assert names == {"executor_output.json", "regard_location.json", "report.html"}
    examples = local.folder("CorpusGen", "examples")
    assert examples.is_relative_to(folder / "regard" / "artifacts")


def test_the_registry_has_the_model_with_the_facts_of_the_run(cluster):
    folder, local = cluster
    version = folder / "regard" / "registry" / "tiny" / "1"
    assert (version / "saved_model.pb").is_file()
    record = json.loads((version / "regard.json").read_text())
    assert record["config"]["training"]["max_epochs"] == 6
    assert record["config"]["training"]["seed"] == 17
    assert record["metrics"]["exact_match"]["value"] > 0.5
    findings = local.folder("CorpusGen", "findings")
    fingerprint = json.loads((findings / "corpus.json").read_text())["fingerprint"]
    assert len(fingerprint) == 64
    assert record["data_fingerprint"] == fingerprint
    assert record["config"]["data"]["spans"]["last"] == 3
    (span,) = record["spans"]
    assert (span["span"], span["rows"]) == (3, {"train": 900})
    report = local.folder("Reporter", "report") / "report.html"
    assert fingerprint in report.read_text(encoding="utf-8")
    run = local.folder("Trainer", "model_run")
    assert json.loads((run / "training.json").read_text())["epochs"] == 6


def test_checkpoints_are_on_the_volume(cluster):
    folder, _ = cluster
    (checkpoint,) = (folder / "regard" / "pipelines" / "tiny" / "checkpoints").iterdir()
    assert (checkpoint / "last.npz").is_file()


def test_workers_outside_of_the_nodes_read_and_write_the_volume(cluster, tmp_path):
    _, local = cluster
    outputs = [("CorpusGen", "examples"), ("TokenizerTrainer", "tokenizer")]
    before = [digests(local.folder(*output)) for output in outputs]
    with beam_services(tmp_path) as (jobs, pool):
        beam = ["--runner=PortableRunner", f"--job_endpoint=localhost:{jobs}"]
        beam += ["--environment_type=EXTERNAL", f"--environment_config=localhost:{pool}"]
        for node, _ in outputs:
            local.run_again(node, beam)
        assert (tmp_path / "pool.log").read_text().count("Starting worker") >= 2
    assert [digests(local.folder(*output)) for output in outputs] == before


def test_drift_is_measured_from_the_newest_version_at_run_time(cluster):
    _, local = cluster
    checks = local.folder("ExampleValidator", "findings") / "checks.json"
    assert "drift" not in json.loads(checks.read_text(encoding="utf-8"))  # there was none yet
    local.run_again("ExampleValidator")
    checks = local.folder("ExampleValidator", "findings") / "checks.json"
    drift = json.loads(checks.read_text(encoding="utf-8"))["drift"]
    assert drift["version"] == "1"
    assert drift["checks"]["drift_words"]["value"] < 1e-6


def test_a_warm_start_is_found_in_the_registry_by_the_trainer(cluster):
    folder, local = cluster
    custom = json.loads(local.tasks["Trainer"]["arguments"]["custom_config"])
    custom["config"]["training"]["warm_start"] = {"model": "production", "optimizer": False}
    local.run_again("Trainer", custom_config=json.dumps(custom), max_epochs=1)
    run = local.folder("Trainer", "model_run")
    start = json.loads((run / "training.json").read_text())["warm_start"]
    assert start["model"] == "tiny@1"
    recorded = json.loads(local.outputs["Trainer"]["model"].metadata["warm_start"])
    path = folder / "regard" / "registry" / "tiny" / "1"
    assert recorded["start"]["path"] == str(path)
    (checkpoint,) = (folder / "regard/pipelines/tiny/checkpoints").glob("*-*")
    assert checkpoint.name.startswith(recorded["training"])


def test_a_model_that_fails_the_gate_is_not_pushed(cluster):
    folder, local = cluster
    local.run_again("Predictor")
    predictions = json.loads(
        (local.folder("Predictor", "predictions") / "predictions.json").read_text(encoding="utf-8")
    )
    assert predictions["production_version"] == "1"  # of the previous run
    constant = json.loads(local.tasks["Evaluator"]["arguments"]["config"])
    constant["thresholds"] = {"exact_match": 1.01}
    local.run_again("Evaluator", config=json.dumps(constant))
    for name in ("Pusher", "Reporter"):
        local.run_again(name)
    assert local.outputs["Pusher"]["pushed_model"].metadata["pushed"] == 0
    assert [path.name for path in (folder / "regard" / "registry" / "tiny").glob("[0-9]*")] == ["1"]
