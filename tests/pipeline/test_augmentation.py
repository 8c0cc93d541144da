"""The node that changes the train split: what it receives, and what its models change."""

import json

import pytest
from tfx.dsl.compiler import compiler

from regard.components.common import run_progress, run_record
from regard.components.common.run_record import RunRecord
from regard.core.errors import UserError
from regard.pipeline.config import load
from regard.pipeline.config.config import ALL_NODES
from regard.pipeline.context import check_start, local_context
from regard.pipeline.runners import local
from regard.pipeline.runs import store, worker
from regard.pipeline.runs.summary import summarize
from regard.pipeline.scheduling.snapshot import take_snapshot
from regard.pipeline.workspace import Workspace
from regard.serving.contract import CONTRACT, TRAINING
from tests.components.registry.models import write_contract, write_version
from tests.pipeline.graphs import create_pipeline
from tests.pipeline.runners.kubeflow.pipelines import CONFIG as CLUSTER
from tests.pipeline.runners.kubeflow.pipelines import compile_config

CONFIG = """
name: tiny
data: {{root: ., train: train.tsv, monolingual: ["mono*.txt"]}}
tokenizer: {{type: char, vocab_size: 20, vocab_limit: soft}}
evaluation: {{metrics: [exact_match]}}
augmentation:
  distillation: {{teacher: deep@{teacher}, teacher_tag: {teacher_tag}}}
  back_translation: {{model: back@1, tag: {tag}}}
"""


def publish(home, name, number, task="translation"):
    folder = write_version(home, number, name)
    write_contract(folder, task)
    (folder / TRAINING).write_bytes(b"settings")
    return folder


@pytest.fixture
def make(tmp_path):
    (tmp_path / "train.tsv").write_text("a\tA\nb\tB\n")
    (tmp_path / "mono-1.txt").write_text("C\n")
    for name, number in (("deep", 1), ("deep", 2), ("back", 1), ("short", 1)):
        publish(tmp_path, name, number, "summarisation" if name == "short" else "translation")

    def make(teacher=1, tag="<bt>", teacher_tag="null"):
        path = tmp_path / "tiny.yaml"
        path.write_text(CONFIG.format(teacher=teacher, tag=tag, teacher_tag=teacher_tag))
        return load(path, home=tmp_path)

    return make


def add_tags(home, number):
    """Publish a teacher with tags."""
    path = publish(home, "deep", number) / CONTRACT
    path.write_text(json.dumps({**json.loads(path.read_text()), "tags": ["de", "fr"]}))


def properties(config, workspace):
    return {c.id: c.exec_properties for c in create_pipeline(config, workspace).components}


def test_the_graph_has_the_node_after_the_validator(make, tmp_path):
    pipeline = create_pipeline(make(), Workspace(tmp_path))
    assert tuple(local.node_ids(compiler.Compiler().compile(pipeline))) == ALL_NODES
    nodes = {component.id: component for component in pipeline.components}
    for name in ("TokenizerTrainer", "Preprocess"):
        assert nodes[name].inputs["examples"].producer_component_id == "Augmenter"
    for name in ("Predictor", "ServingCheck", "StatisticsGen", "ExampleValidator"):
        assert nodes[name].inputs["examples"].producer_component_id == "CorpusGen"
    assert nodes["Reporter"].inputs["augmentation"].producer_component_id == "Augmenter"
    models = json.loads(nodes["Augmenter"].exec_properties["models"])
    assert models["distillation.teacher"]["path"] == str(tmp_path / "registry/deep/1")
    symbols = json.loads(nodes["TokenizerTrainer"].exec_properties["config"])
    assert symbols["user_defined_symbols"] == ["<bt>"]


def test_model_texts_and_settings_change_node_and_training(make, tmp_path):
    workspace = Workspace(tmp_path)

    def state(**values):
        config = make(**values)
        nodes = properties(config, workspace)
        augmenter = (nodes["Augmenter"]["settings"], nodes["Augmenter"]["models"])
        return augmenter, local_context(config, workspace).keys.training

    states = [state(), state(teacher=2), state(tag="<b>")]
    add_tags(tmp_path, 3)
    states += [state(teacher=3, teacher_tag=tag) for tag in ("de", "fr")]
    (tmp_path / "mono-2.txt").write_text("D\n")
    states.append(state())
    (tmp_path / "mono-2.txt").write_text("E\n")
    states.append(state())
    for values in zip(*states, strict=True):
        assert len(set(values)) == len(states)
    assert state() == states[-1]


def test_a_schedule_sees_new_texts(make, tmp_path):
    config, paths = make(), Workspace(tmp_path).pipeline("tiny")
    before = take_snapshot(config, paths).key
    (tmp_path / "mono-1.txt").write_text("D\n")
    assert take_snapshot(config, paths).key != before


def test_missing_and_unsuitable_models_are_refused(make, tmp_path):
    workspace = Workspace(tmp_path)
    with pytest.raises(UserError, match="no version '3'") as caught:
        check_start(make(teacher=3), workspace)
    assert caught.value.where.endswith(": augmentation.distillation.teacher")
    path = tmp_path / "tiny.yaml"
    path.write_text(path.read_text().replace("deep@3", "short@1"))
    with pytest.raises(UserError, match="short@1 is a model for summarisation, not translation"):
        check_start(load(path, home=tmp_path), workspace)
    (tmp_path / "registry/short/1" / CONTRACT).unlink()
    with pytest.raises(UserError, match="short@1 cannot be used: It has no"):
        check_start(load(path, home=tmp_path), workspace)
    (tmp_path / "mono-1.txt").unlink()
    with pytest.raises(UserError, match="No file matches") as caught:
        check_start(make(), workspace)
    assert caught.value.where == "data.monolingual"


def test_a_teacher_with_tags_needs_one(make, tmp_path):
    workspace = Workspace(tmp_path)
    add_tags(tmp_path, 3)
    check_start(make(teacher=3, teacher_tag="fr"), workspace)
    with pytest.raises(UserError, match=r"deep@3 needs a tag .*its tags are de, fr") as caught:
        check_start(make(teacher=3), workspace)
    assert caught.value.where.endswith(":7: augmentation.distillation.teacher")
    assert "augmentation.distillation.teacher_tag" in caught.value.remedy
    with pytest.raises(UserError, match="deep@3 has no tag 'es': its tags are de, fr") as caught:
        check_start(make(teacher=3, teacher_tag="es"), workspace)
    assert caught.value.where.endswith(":7: augmentation.distillation.teacher_tag")
    with pytest.raises(UserError, match="deep@1 has no tags") as caught:
        check_start(make(teacher=1, teacher_tag="de"), workspace)
    assert caught.value.where.endswith(":7: augmentation.distillation.teacher_tag")


def test_a_teacher_has_the_tags_of_the_rows(make, tmp_path):
    workspace, path = Workspace(tmp_path), tmp_path / "tiny.yaml"
    add_tags(tmp_path, 3)
    make(teacher=3)
    text = path.read_text().partition("  back_translation")[0]

    def with_tags(tag):
        tags = f"train: train.tsv, tags: {{train: [{tag}]}}"
        path.write_text(text.replace("train: train.tsv", tags))
        return load(path, home=tmp_path)

    check_start(with_tags("fr"), workspace)
    with pytest.raises(UserError, match=r"deep@3 has no tag 'es' of data\.tags: .*de, fr"):
        check_start(with_tags("es"), workspace)
    node = properties(with_tags("fr"), workspace)["Augmenter"]
    features = json.loads(node["settings"])["features"]
    assert [feature["tags"] for feature in features if feature["tags"]] == [["fr"]]


def test_an_ensemble_cannot_sample(make, tmp_path):
    make()
    (tmp_path / "registry/back/1" / TRAINING).unlink()
    path = tmp_path / "tiny.yaml"
    check_start(load(path, home=tmp_path), Workspace(tmp_path))
    path.write_text(path.read_text().replace("back@1,", "back@1, search: sampling,"))
    with pytest.raises(UserError, match="back@1 is an ensemble, or was") as caught:
        check_start(load(path, home=tmp_path), Workspace(tmp_path))
    assert caught.value.where.endswith(": augmentation.back_translation.model")


def test_running_models_are_not_pruned_and_recorded(make, tmp_path, monkeypatch):
    workspace = Workspace(tmp_path)
    run = store.create(workspace.pipeline("tiny"), RunRecord(runner="local", pid=1))
    monkeypatch.setenv("REGARD_EVENTS", str(run.events))
    monkeypatch.setattr(store, "status", lambda run: run_record.RUNNING)
    worker._emit_origin(create_pipeline(make(), workspace))
    origin = run_progress.read(run.events).origin
    assert sorted(model["model"] for model in origin.augmentation) == ["back@1", "deep@1"]
    needed = store.needed_versions(workspace, tmp_path / "registry/deep")
    assert list(needed) == [1]


def test_the_summary_says_what_the_steps_did(tmp_path):
    run = store.create(Workspace(tmp_path).pipeline("tiny"), RunRecord(runner="local"))
    (tmp_path / "augmentation.json").write_text(json.dumps({"steps": {"filter": "1 of 2 pairs"}}))
    state = run_progress.Progress(["Augmenter"])
    state.nodes["Augmenter"].outputs = {"findings": str(tmp_path)}
    assert summarize(run, state)["augmentation"] == ["1 of 2 pairs"]


def test_the_node_of_a_cluster_looks_up_its_models(tmp_path):
    section = "augmentation: {distillation: {teacher: deep@1}}\n"
    spec = compile_config(tmp_path, config=CLUSTER + section).spec
    task = spec["root"]["dag"]["tasks"]["Augmenter"]
    values = {
        name: value["runtimeValue"]["constant"]
        for name, value in task["inputs"]["parameters"].items()
    }
    assert json.loads(values["models"]) == {}
    assert values["registry"] == "/regard/registry"
    assert values["folder"] == "/regard/augmentation"
    assert "ExampleValidator" in task["dependentTasks"]
