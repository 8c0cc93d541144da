"""The graph's nodes, and what its cache keys depend on."""

import json

import pytest
from tfx.dsl.compiler import compiler

from regard.components.common.run_progress import read
from regard.components.common.run_record import RunRecord
from regard.components.data.sources import Corpus as DataCorpus
from regard.components.data.sources import find_files
from regard.components.registry.rollback import rollback
from regard.components.registry.store import Registry
from regard.components.settings.trainer import TrainerConfig
from regard.core import events, owned_folders
from regard.pipeline.config import load
from regard.pipeline.config.config import NODES
from regard.pipeline.runners import local
from regard.pipeline.runs import store, worker
from regard.pipeline.runs.launch import resolved_yaml
from regard.pipeline.scheduling.snapshot import take_snapshot
from regard.pipeline.workspace import Workspace
from tests.components.registry.models import write_version
from tests.pipeline.graphs import create_pipeline

CONFIG = """
name: tiny
data: {{root: {root}, train: train.tsv}}
tokenizer: {{type: char, vocab_size: 20, vocab_limit: soft}}
training: {{learning_rate: {rate}, checkpoint_seconds: {every}}}
search: {{beam_size: {beam}}}
evaluation: {{metrics: [exact_match], thresholds: {{exact_match: {floor}}}}}
"""


@pytest.fixture
def make(tmp_path):
    (tmp_path / "train.tsv").write_text("a\tA\nb\tB\n")

    def make(rate=0.001, floor=0.5, beam=5, every=60):
        path = tmp_path / "tiny.yaml"
        path.write_text(
            CONFIG.format(root=tmp_path, rate=rate, floor=floor, beam=beam, every=every)
        )
        return create_pipeline(load(path, home=tmp_path), Workspace(tmp_path))

    return make


def properties(pipeline, node):
    (component,) = [c for c in pipeline.components if c.id == node]
    return component.exec_properties


def checkpoints(pipeline):
    return json.loads(properties(pipeline, "Trainer")["custom_config"])["run"]["checkpoint_key"]


def test_the_nodes_run_in_the_order_that_is_shown(make):
    """The validator before all that trains: what it refuses must go no further."""
    assert tuple(local.node_ids(compiler.Compiler().compile(make()))) == NODES


def test_a_floor_does_not_train_again(make):
    loose, strict = make(floor=0.5), make(floor=0.9)
    for node in NODES:
        same = properties(loose, node) == properties(strict, node)
        assert same == (node not in ("Evaluator", "Pusher", "Reporter"))


def test_the_evaluator_receives_the_words_of_the_train_split(make):
    (evaluator,) = [c for c in make().components if c.id == "Evaluator"]
    assert evaluator.inputs["findings"].producer_component_id == "ExampleValidator"


@pytest.mark.parametrize(
    ("first", "last", "is_repeated"),
    [
        ("CorpusGen", None, True),
        ("Trainer", "Pusher", True),
        ("Preprocess", "Trainer", True),
        ("CorpusGen", "SchemaGen", False),
        ("Predictor", None, False),
        (None, "Trainer", False),
    ],
)
def test_only_a_repeated_training_loses_its_checkpoints(
    make, tmp_path, monkeypatch, first, last, is_repeated
):
    paths = Workspace(tmp_path).pipeline("tiny")
    current = paths.checkpoints / checkpoints(make())
    mixed, other = current.with_name(f"{current.name}-mixed_float16"), current.with_name("0" * 16)
    for folder in (current, mixed, other):
        owned_folders.create(folder, owned_folders.CHECKPOINTS)
    run = store.create(paths, RunRecord(first=first, last=last, runner="local"))
    run.config.write_text(resolved_yaml(load(tmp_path / "tiny.yaml", home=tmp_path)))
    monkeypatch.setattr(worker, "_stop_on_signals", lambda: None)
    monkeypatch.setattr(worker, "run", lambda build, *_: build() and worker.INTERRUPTED)
    worker.main(str(run.directory))
    remaining = [folder for folder in (current, mixed, other) if folder.exists()]
    assert remaining == ([other] if is_repeated else [current, mixed, other])


def test_a_schedule_is_in_no_key(make, tmp_path):
    plain = [node.exec_properties for node in make().components]
    path = tmp_path / "tiny.yaml"
    path.write_text(path.read_text() + "schedule: {every: 1h}\n")
    scheduled = create_pipeline(load(path, home=tmp_path), Workspace(tmp_path))
    assert [node.exec_properties for node in scheduled.components] == plain


def test_a_run_records_the_words_that_a_schedule_compares(make, tmp_path, monkeypatch):
    make()
    words, path = tmp_path / "words.txt", tmp_path / "tiny.yaml"
    words.write_text("abc\n")
    tokenizer = f"{{type: word, word_list: {words}}}"
    path.write_text(
        path.read_text().replace("{type: char, vocab_size: 20, vocab_limit: soft}", tokenizer)
    )
    config, workspace = load(path, home=tmp_path), Workspace(tmp_path)
    monkeypatch.setenv(events.VARIABLE, str(tmp_path / "events.jsonl"))
    worker._emit_origin(create_pipeline(config, workspace))
    snapshot = take_snapshot(config, workspace.pipeline("tiny"))
    origin = read(tmp_path / "events.jsonl").origin
    assert list(snapshot.word_files) == ["words"]
    assert origin.word_vectors == snapshot.word_files
    assert origin.data_fingerprint == snapshot.fingerprint


def test_a_learning_rate_trains_again_but_reads_nothing_again(make):
    slow, fast = make(rate=0.001), make(rate=0.01)
    changed = {node for node in NODES if properties(slow, node) != properties(fast, node)}
    assert changed == {"Trainer", "Pusher", "Reporter"}


@pytest.mark.parametrize("change", [{"beam": 3}, {"every": 5}, {"floor": 0.9}])
def test_what_the_weights_do_not_depend_on_finds_the_finished_training(make, change):
    assert checkpoints(make()) == checkpoints(make(**change))
    assert checkpoints(make()) != checkpoints(make(rate=0.01))


def test_new_content_is_read_and_trained_again(make, tmp_path):
    before = make()
    (tmp_path / "train.tsv").write_text("a\tA\nb\tC\n")
    after = make()
    changed = {node for node in NODES if properties(before, node) != properties(after, node)}
    assert changed == {"CorpusGen", "Trainer", "Pusher", "Reporter"}


@pytest.mark.parametrize(("versions", "newest"), [([], ""), ([1, 2], "2"), ([0], "0")])
def test_the_newest_version_is_the_production_baseline(make, tmp_path, versions, newest):
    for version in versions:
        write_version(tmp_path, version, recipe=f"recipe {version}")
    result = properties(make(), "Predictor")
    folder = str(tmp_path / "registry" / "tiny" / newest) if newest else ""
    assert (result["production"], result["production_version"]) == (folder, newest)


@pytest.mark.parametrize(
    ("baseline_model", "expected"), [("", ""), ("1", "1"), ("9", ""), ("2", "")]
)
def test_a_run_is_not_compared_with_its_own_result(make, tmp_path, baseline_model, expected):
    record = json.loads(properties(make(), "Pusher")["record"])
    write_version(tmp_path, 1, recipe="another")
    write_version(tmp_path, 2, **{**record, "compared_with": baseline_model})
    again = make()
    assert properties(again, "Predictor")["production_version"] == expected
    if expected == "":
        assert json.loads(properties(again, "Pusher")["record"]) == record


def test_data_is_compared_with_the_profile_of_production(make, tmp_path):
    def locked():
        return properties(make(), "ExampleValidator")["production"]

    write_version(tmp_path, 3)
    assert locked() == ""  # of a time when none was kept
    profile = tmp_path / "registry/tiny/3/assets.extra/profile.json"
    profile.parent.mkdir()
    profile.write_text("{}")
    before = json.loads(locked())
    assert (before["version"], before["profile"]) == ("3", str(profile))
    profile.write_text('{"rows": 3}')
    assert json.loads(locked())["digest"] != before["digest"]


@pytest.fixture
def make_spans(tmp_path):
    for name in ("1.tsv", "2.tsv", "test.tsv"):
        (tmp_path / name).write_text(f"a {name}\tA\n")

    def make(spans="{}"):
        text = CONFIG.format(root=tmp_path, rate=0.001, floor=0.5, beam=5, every=60)
        arguments = f"train: '{{SPAN}}.tsv', eval: test.tsv, test: test.tsv, spans: {spans}"
        path = tmp_path / "tiny.yaml"
        path.write_text(text.replace("train: train.tsv", arguments))
        return create_pipeline(load(path, home=tmp_path), Workspace(tmp_path))

    return make


def test_a_new_span_is_trained_on_and_one_that_is_not_taken_changes_nothing(make_spans, tmp_path):
    before, bounded = make_spans(), make_spans("{last: 2}")
    (tmp_path / "3.tsv").write_text("a 3\tA\n")
    after = make_spans()
    changed = {node for node in NODES if properties(before, node) != properties(after, node)}
    assert changed == {"CorpusGen", "Trainer", "Pusher", "Reporter"}
    again = make_spans("{last: 2}")
    assert all(properties(bounded, node) == properties(again, node) for node in NODES)
    # The same files by another rule: what was trained is found again.
    for node in ("CorpusGen", "Trainer"):
        assert properties(before, node) == properties(bounded, node)


def test_a_span_that_comes_between_is_in_neither_key_nor_work(make_spans, tmp_path):
    created = properties(make_spans(), "CorpusGen")
    (tmp_path / "3.tsv").write_text("a 3\tA\n")
    groups = find_files(DataCorpus.from_json(json.loads(created["corpus"])))["train"]
    assert [group.span for group in groups] == ["1", "2"]


def test_those_who_read_rows_know_the_span_and_the_files_have_no_such_column(make_spans):
    created = make_spans()
    for node in ("ExampleValidator", "Predictor"):
        names = [feature["name"] for feature in json.loads(properties(created, node)["features"])]
        assert names == ["source", "target", "span"]
    data = json.loads(properties(created, "CorpusGen")["corpus"])
    assert [feature["name"] for feature in data["features"]] == ["source", "target"]


def test_after_a_rollback_the_next_run_compares_with_the_model_that_is_live(make, tmp_path):
    recipe = json.loads(properties(make(), "Pusher")["record"])["recipe"]
    write_version(tmp_path, 1, recipe="another")
    write_version(tmp_path, 2, recipe=recipe, compared_with="1")
    rollback(Registry(tmp_path / "registry"), "tiny")
    result = properties(make(), "Predictor")
    assert result["production"] == str(tmp_path / "registry" / "tiny" / "3")
    assert result["production_version"] == "3"


def test_the_export_depends_on_how_long_sources_are_served(make, tmp_path):
    before = json.loads(properties(make(), "Trainer")["custom_config"])
    path = tmp_path / "tiny.yaml"
    path.write_text(f"{path.read_text()}serving: {{split_sentences: true}}\n")
    pipeline = create_pipeline(load(path, home=tmp_path), Workspace(tmp_path))
    after = json.loads(properties(pipeline, "Trainer")["custom_config"])
    assert TrainerConfig.model_validate(after["config"]).serving.split_sentences
    before["config"]["serving"]["split_sentences"] = True
    assert after == before
