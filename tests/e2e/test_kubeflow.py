"""The commands of a compiled pipeline, run as the containers of a cluster run them."""

from __future__ import annotations

import json

import pytest
import yaml

from pipeline.kubeflow import compiling, settings
from pipeline.nodes import NODES
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
    text = compiling.as_text(compiling.compiled(settings.load_for_cluster(config)))
    write_data(folder / "data")  # only now: the graph is made without it
    (folder / "data" / "train.tsv").rename(folder / "data" / "train-3.tsv")
    (folder / "data" / "train-4.tsv").write_text("a span\tof another run\n")
    spec, _ = yaml.safe_load_all(text)
    made = Cluster(folder, spec, spec["defaultPipelineRoot"], environment(ROOT))
    made.run({"max_epochs": 6.0, "last_span": "3"})
    return folder, made


def test_every_node_ran_and_its_outputs_are_in_the_store(cluster):
    _, made = cluster
    assert set(made.outputs) == set(NODES)
    for artifacts in made.outputs.values():
        for artifact in artifacts.values():
            assert artifact["uri"].startswith("minio://mlpipeline/v2/artifacts/tiny/")
            assert any(made.stored(artifact["uri"]).rglob("*"))


def test_the_model_is_in_the_registry_with_what_only_the_run_knew(cluster):
    folder, made = cluster
    version = folder / "regard" / "registry" / "tiny" / "1"
    assert (version / "saved_model.pb").is_file()
    record = json.loads((version / "regard.json").read_text())
    assert record["config"]["training"]["max_epochs"] == 6
    assert record["config"]["training"]["seed"] == 17
    assert record["metrics"]["exact_match"]["value"] > 0.5
    findings = made.stored(made.outputs["CorpusGen"]["findings"]["uri"])
    fingerprint = json.loads((findings / "corpus.json").read_text())["fingerprint"]
    assert len(fingerprint) == 64
    assert record["data_fingerprint"] == fingerprint
    assert record["config"]["data"]["spans"]["last"] == 3
    (span,) = record["spans"]
    assert (span["span"], span["rows"]) == (3, {"train": 900})
    report = made.stored(made.outputs["Reporter"]["report"]["uri"]) / "report.html"
    assert fingerprint in report.read_text(encoding="utf-8")
    run = made.stored(made.outputs["Trainer"]["model_run"]["uri"])
    assert json.loads((run / "training.json").read_text())["epochs"] == 6


def test_the_checkpoints_outlive_the_container(cluster):
    folder, _ = cluster
    (kept,) = (folder / "regard" / "pipelines" / "tiny" / "checkpoints").iterdir()
    assert (kept / "last.npz").is_file()


def test_data_is_held_against_the_newest_version_that_is_there_now(cluster):
    _, made = cluster
    uri = made.outputs["ExampleValidator"]["findings"]["uri"]
    checks = made.stored(uri) / "checks.json"
    assert "drift" not in json.loads(checks.read_text(encoding="utf-8"))  # there was none yet
    made.run_again("ExampleValidator")
    drift = json.loads(checks.read_text(encoding="utf-8"))["drift"]
    assert drift["version"] == "1"
    assert drift["checks"]["drift_words"]["value"] < 1e-6


def test_a_model_that_is_not_good_enough_ends_its_run_and_is_not_pushed(cluster):
    folder, made = cluster
    made.run_again("Predictor")
    uri = made.outputs["Predictor"]["predictions"]["uri"]
    told = json.loads((made.stored(uri) / "predictions.json").read_text(encoding="utf-8"))
    assert told["production_version"] == "1"  # the one of the run before
    given = made.spec["root"]["dag"]["tasks"]["Evaluator"]["inputs"]["parameters"]["config"]
    constant = json.loads(given["runtimeValue"]["constant"])
    constant["floors"] = {"exact_match": 1.01}
    given["runtimeValue"]["constant"] = json.dumps(constant)
    for name in ("Evaluator", "Pusher", "Reporter"):
        made.run_again(name)
    pushed = made.outputs["Pusher"]["pushed_model"]
    assert pushed["metadata"]["pushed"] == 0
    assert [path.name for path in (folder / "regard" / "registry" / "tiny").glob("[0-9]*")] == ["1"]
