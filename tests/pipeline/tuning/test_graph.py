"""The graph of a search: what it shares with a run, and when it is another search."""

import json

import pytest
from tfx.dsl.compiler import compiler
from tfx.proto.orchestration import pipeline_pb2

from pipeline import machine
from pipeline.config import load
from pipeline.graph import create_pipeline
from pipeline.nodes import NODES, nodes_of_search
from pipeline.runners import parts
from pipeline.tuning.graph import create_tuning, settings
from pipeline.workspace import Workspace

CONFIG = """
name: tiny
data: {{root: {root}, train: train.tsv}}
tokenizer: {{type: char, vocab_size: 20, vocab_limit: soft}}
training: {{max_epochs: 9, early_stop: {{metric: {metric}}}}}
tune: {{over: {{training.learning_rate: {{log: [{low}, 0.1]}}}}{more}}}
"""


@pytest.fixture
def read(tmp_path):
    (tmp_path / "train.tsv").write_text("a\tA\nb\tB\n")

    def read(more="", low=0.001, metric="loss"):
        path = tmp_path / "tiny.yaml"
        path.write_text(CONFIG.format(root=tmp_path, more=more, low=low, metric=metric))
        return load(path, home=tmp_path)

    return read


def compiled(pipeline):
    """What TFX's cache goes by: nodes, parameters, and executors with Beam's arguments."""
    ir = compiler.Compiler().compile(pipeline)
    config = pipeline_pb2.IntermediateDeploymentConfig()
    ir.deployment_config.Unpack(config)
    return {
        node.pipeline_node.node_info.id: (
            node.pipeline_node.node_info,
            node.pipeline_node.parameters,
            config.executor_specs[node.pipeline_node.node_info.id],
        )
        for node in ir.nodes
    }


def test_all_nodes_of_a_run_are_as_they_are_in_a_run(read, tmp_path):
    workspace = Workspace(tmp_path)
    plain = compiled(create_pipeline(read(), workspace))
    tuned = compiled(create_tuning(read(), workspace))
    assert set(tuned) == {*NODES, "Tuner"}
    assert {name: tuned[name] for name in NODES} == plain


def test_up_to_the_tuner_nothing_is_trained(read, tmp_path):
    ir = compiler.Compiler().compile(create_tuning(read(), Workspace(tmp_path)))
    parts.keep_up_to(ir, "Tuner")
    assert tuple(parts.node_ids(ir)) == nodes_of_search(text=True)


def test_which_changes_are_another_search(read, tmp_path):
    def folder(**changes):
        made = create_tuning(read(**changes), Workspace(tmp_path))
        (tuner,) = (node for node in made.components if node.id == "Tuner")
        return json.loads(tuner.exec_properties["custom_config"])["folder"]

    first = folder(more=", algorithm: random")
    assert first.startswith(f"{tmp_path}/pipelines/tiny/tuning/")
    more = ", algorithm: random, trials: 40, parallel: 4, failures: 5"
    assert folder(more=more) == first
    others = [", algorithm: random, epochs: 3", ", algorithm: random, seed: 3", ""]
    assert len({first, *(folder(more=other) for other in others)}) == 4
    assert folder(more=", algorithm: random", low=0.01) != first
    (tmp_path / "train.tsv").write_text("a\tA\nb\tC\n")
    assert folder(more=", algorithm: random") != first


def test_settings_with_their_defaults(read):
    found = settings(read())
    assert (found["algorithm"], found["trials"]) == ("hyperband", None)
    assert (found["epochs"], found["factor"], found["iterations"]) == (9, 3, 1)
    assert (found["objective"], found["direction"]) == ("loss", "min")
    assert (found["parallel"], found["threads"]) == (1, None)
    found = settings(read(", algorithm: bayesian, parallel: 64", metric="bleu"))
    assert (found["trials"], found["epochs"]) == (20, None)
    assert (found["objective"], found["direction"]) == ("bleu", "max")
    assert (found["parallel"], found["threads"]) == (64, 1)
    found = settings(read(", algorithm: random, trials: 1, parallel: 64"))
    assert found["threads"] is None  # one alone has all cores
    found = settings(read(", factor: 9, parallel: 64"))
    assert found["threads"] == max(1, machine.cores() // 11)
    assert settings(read(", objective: ter", metric="bleu"))["direction"] == "min"
