"""The graph of a search: nodes shared with a run, and the folder of the trials."""

import json

import pytest
from tfx.dsl.compiler import compiler
from tfx.proto.orchestration import pipeline_pb2

from regard.pipeline.config import load
from regard.pipeline.config.config import NODES
from regard.pipeline.runners import local
from regard.pipeline.tuning.graph import create_tuning
from regard.pipeline.workspace import Workspace
from tests.pipeline.graphs import create_pipeline

CONFIG = """
name: tiny
data: {{root: {root}, train: train.tsv}}
tokenizer: {{type: char, vocab_size: 20, vocab_limit: soft}}
training: {{max_epochs: 9, early_stopping: {{metric: {metric}}}}}
tune: {{search_space: {{training.learning_rate: {{log: [{low}, 0.1]}}}}{more}}}
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
    """Return all that TFX's cache keys depend on: nodes, parameters and executor specifications."""
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


def test_nodes_of_a_search_equal_those_of_a_run(read, tmp_path):
    """Those that the search runs before the Tuner, so that it finds their cached outputs."""
    workspace = Workspace(tmp_path)
    plain = compiled(create_pipeline(read(), workspace))
    tuned = compiled(create_tuning(read(), workspace))
    assert set(tuned) == {*NODES, "Tuner"}
    *shared, tuner = read().search_nodes
    assert tuner == "Tuner"
    assert [tuned[name] for name in shared] == [plain[name] for name in shared]


def test_tuner_needs_no_training(read, tmp_path):
    ir = compiler.Compiler().compile(create_tuning(read(), Workspace(tmp_path)))
    local.remove_unneeded_nodes(ir, "Tuner")
    assert tuple(local.node_ids(ir)) == read().search_nodes


def test_search_folder_depends_on_the_settings(read, tmp_path):
    def folder(**changes):
        pipeline = create_tuning(read(**changes), Workspace(tmp_path))
        (tuner,) = (node for node in pipeline.components if node.id == "Tuner")
        return json.loads(tuner.exec_properties["custom_config"])["folder"]

    first = folder(more=", algorithm: random")
    assert first.startswith(f"{tmp_path}/pipelines/tiny/tuning/")
    assert folder(more=", algorithm: random, max_trials: 40, max_failed_trials: 5") == first
    assert folder(more=", algorithm: random, seed: 3") != first
    assert folder(more=", algorithm: random", low=0.01) != first
    (tmp_path / "train.tsv").write_text("a\tA\nb\tC\n")
    assert folder(more=", algorithm: random") != first
