"""A compiled pipeline, node by node in the processes of simulated containers."""

import json

import pytest

from regard.pipeline.config.config import NODES
from regard.pipeline.runners.kubeflow.compiler import compile_pipeline
from regard.pipeline.runners.kubeflow.settings import load_for_cluster
from tests.e2e.conftest import CONFIG, ROOT, write_data
from tests.e2e.launcher import Cluster, environment

pytestmark = pytest.mark.slow

KUBEFLOW = """
kubeflow:
  image: registry.example.org/regard:1
  pipeline_root: minio://mlpipeline/v2/artifacts
  home: {home}
  volumes: {{regard: {home}}}
"""


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
    cluster = Cluster(folder, pipeline.spec, pipeline.pipeline_root, environment(ROOT))
    cluster.run({"max_epochs": 6.0, "last_span": "3"})
    return folder, cluster


def test_every_node_stores_its_outputs(cluster):
    _, simulated = cluster
    assert set(simulated.outputs) == set(NODES)
    for artifacts in simulated.outputs.values():
        for artifact in artifacts.values():
            assert artifact["uri"].startswith("minio://mlpipeline/v2/artifacts/tiny/")
            assert any(simulated.store_path(artifact["uri"]).rglob("*"))


def test_the_registry_has_the_model_with_the_facts_of_the_run(cluster):
    folder, simulated = cluster
    version = folder / "regard" / "registry" / "tiny" / "1"
    assert (version / "saved_model.pb").is_file()
    record = json.loads((version / "regard.json").read_text())
    assert record["config"]["training"]["max_epochs"] == 6
    assert record["config"]["training"]["seed"] == 17
    assert record["metrics"]["exact_match"]["value"] > 0.5
    findings = simulated.store_path(simulated.outputs["CorpusGen"]["findings"]["uri"])
    fingerprint = json.loads((findings / "corpus.json").read_text())["fingerprint"]
    assert len(fingerprint) == 64
    assert record["data_fingerprint"] == fingerprint
    assert record["config"]["data"]["spans"]["last"] == 3
    (span,) = record["spans"]
    assert (span["span"], span["rows"]) == (3, {"train": 900})
    report = simulated.store_path(simulated.outputs["Reporter"]["report"]["uri"]) / "report.html"
    assert fingerprint in report.read_text(encoding="utf-8")
    run = simulated.store_path(simulated.outputs["Trainer"]["model_run"]["uri"])
    assert json.loads((run / "training.json").read_text())["epochs"] == 6


def test_checkpoints_are_on_the_volume(cluster):
    folder, _ = cluster
    (checkpoint,) = (folder / "regard" / "pipelines" / "tiny" / "checkpoints").iterdir()
    assert (checkpoint / "last.npz").is_file()


def test_drift_is_measured_from_the_newest_version_at_run_time(cluster):
    _, simulated = cluster
    uri = simulated.outputs["ExampleValidator"]["findings"]["uri"]
    checks = simulated.store_path(uri) / "checks.json"
    assert "drift" not in json.loads(checks.read_text(encoding="utf-8"))  # there was none yet
    simulated.run_again("ExampleValidator")
    drift = json.loads(checks.read_text(encoding="utf-8"))["drift"]
    assert drift["version"] == "1"
    assert drift["checks"]["drift_words"]["value"] < 1e-6


def test_a_model_that_fails_the_gate_is_not_pushed(cluster):
    folder, simulated = cluster
    simulated.run_again("Predictor")
    uri = simulated.outputs["Predictor"]["predictions"]["uri"]
    predictions = json.loads(
        (simulated.store_path(uri) / "predictions.json").read_text(encoding="utf-8")
    )
    assert predictions["production_version"] == "1"  # of the previous run
    config = simulated.spec["root"]["dag"]["tasks"]["Evaluator"]["inputs"]["parameters"]["config"]
    constant = json.loads(config["runtimeValue"]["constant"])
    constant["thresholds"] = {"exact_match": 1.01}
    config["runtimeValue"]["constant"] = json.dumps(constant)
    for name in ("Evaluator", "Pusher", "Reporter"):
        simulated.run_again(name)
    pushed = simulated.outputs["Pusher"]["pushed_model"]
    assert pushed["metadata"]["pushed"] == 0
    assert [path.name for path in (folder / "regard" / "registry" / "tiny").glob("[0-9]*")] == ["1"]
