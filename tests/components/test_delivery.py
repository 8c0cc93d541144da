"""The nodes from Predictor to Pusher, wired as in the graph and compiled, but not run."""

from __future__ import annotations

import json

import pytest
from tfx.dsl.compiler.compiler import Compiler
from tfx.dsl.components.common.importer import Importer
from tfx.orchestration.metadata import sqlite_metadata_connection_config
from tfx.orchestration.pipeline import Pipeline
from tfx.types import standard_artifacts

from regard.components.common.artifacts import Findings, Predictions
from regard.components.nodes import CorpusGen, Evaluator, Predictor, Pusher, ServingCheck


def source(kind, name: str) -> Importer:
    return Importer(source_uri=f"/{name}", artifact_type=kind).with_id(name)


def test_the_nodes_fit_together(tmp_path):
    examples = source(standard_artifacts.Examples, "examples")
    model = source(standard_artifacts.Model, "model")
    findings = source(Findings, "findings")
    corpus = source(Findings, "corpus")
    exported = model.outputs["result"]
    predictor = Predictor(
        examples=examples.outputs["result"],
        model=exported,
        features="[]",
        production="",
        production_version="",
        batch_size=64,
        reference_attention="",
        reference_scores=0,
    )
    predictions = predictor.outputs["predictions"]
    evaluator = Evaluator(predictions=predictions, config=json.dumps({"metrics": ["bleu"]}))
    serving = ServingCheck(
        model=exported,
        predictions=predictions,
        examples=examples.outputs["result"],
        tf_serving_versions='["2.20"]',
        rows=32,
    )
    pusher = Pusher(
        model=exported,
        model_blessing=evaluator.outputs["blessing"],
        infra_blessing=serving.outputs["blessing"],
        evaluation=evaluator.outputs["evaluation"],
        findings=findings.outputs["result"],
        corpus=corpus.outputs["result"],
        registry=str(tmp_path / "registry"),
        name="m",
        record="{}",
    )
    assert predictions.type is Predictions
    assert evaluator.outputs["blessing"].type is standard_artifacts.ModelBlessing
    assert serving.outputs["blessing"].type is standard_artifacts.InfraBlessing
    assert pusher.outputs["pushed_model"].type is standard_artifacts.PushedModel
    pipeline = Pipeline(
        pipeline_name="m",
        pipeline_root=str(tmp_path / "root"),
        components=[examples, findings, corpus, model, predictor, evaluator, serving, pusher],
        metadata_connection_config=sqlite_metadata_connection_config(str(tmp_path / "m.sqlite")),
    )
    compiled = Compiler().compile(pipeline)
    nodes = {node.pipeline_node.node_info.id: node.pipeline_node for node in compiled.nodes}
    assert set(nodes) >= {"Predictor", "Evaluator", "ServingCheck", "Pusher"}
    assert set(nodes["Pusher"].upstream_nodes) == {
        "Evaluator",
        "ServingCheck",
        "corpus",
        "findings",
        "model",
    }
    for name in ("Predictor", "Evaluator", "ServingCheck", "Pusher"):
        code = nodes[name].parameters.parameters["code"].field_value.string_value
        assert len(code) == 16, name


def test_a_missing_argument_is_an_error():
    with pytest.raises(ValueError, match="Missing argument 'fingerprint'"):
        CorpusGen(corpus="{}")
