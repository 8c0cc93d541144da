"""The context of a pipeline: its data files, and the model that its training starts from."""

import json
import shutil

import pytest

from regard.components.common import run_progress
from regard.components.registry.rollback import rollback
from regard.components.registry.store import Registry
from regard.core.errors import UserError
from regard.pipeline.config import load
from regard.pipeline.context import check_start, local_context, resolve_data
from regard.pipeline.runs import worker
from regard.pipeline.workspace import Workspace
from regard.serving.contract import TRAINING
from tests.components.registry.models import write_contract, write_version
from tests.pipeline.graphs import create_pipeline

CONFIG = """
name: tiny
data: {{root: ., train: train.tsv}}
tokenizer: {{type: char, vocab_size: 20, vocab_limit: soft}}
training: {{learning_rate: {rate}, warm_start: {start}}}
evaluation: {{metrics: [exact_match]}}
"""


@pytest.mark.parametrize("check", ["duplicates", "near_overlap", "overlap"])
def test_other_test_rows_are_another_training_if_they_are_compared(tmp_path, check):
    files = dict.fromkeys(("train", "eval", "test"), "a\tA\n")
    config = tmp_path / "tiny.yaml"
    data = f"train, eval: eval, test: test, format: tsv, checks: {{{check}: {{action: drop}}}}}}"
    text = CONFIG.format(start="null", rate=0.1).replace("train.tsv}", data)
    keys = set()
    for row in ("a\tA\n", "b\tB\n"):
        for name, content in {**files, "test": row}.items():
            (tmp_path / name).write_text(content)
        config.write_text(text)
        keys.add(local_context(load(config, home=tmp_path), Workspace(tmp_path)).keys.training)
    assert len(keys) == (1 if check == "duplicates" else 2)


@pytest.fixture
def make(tmp_path):
    """What the run adds to the settings of the Trainer, and the record of the Pusher."""
    (tmp_path / "train.tsv").write_text("a\tA\nb\tB\n")

    def make(start="{}", rate=0.001):
        path = tmp_path / "tiny.yaml"
        path.write_text(CONFIG.format(start=start, rate=rate))
        pipeline = create_pipeline(load(path, home=tmp_path), Workspace(tmp_path))
        messages = {node.id: node.exec_properties for node in pipeline.components}
        run = json.loads(messages["Trainer"]["custom_config"])["run"]
        return run, json.loads(messages["Pusher"]["record"])

    return make


@pytest.mark.parametrize(
    ("record", "change", "where", "message"),
    [
        ({"config": {"task": "pointer"}}, ("", ""), "name", "belongs to a model for pointer"),
        ({}, ("null", "{model: none@3}"), "yaml:5: training.warm_start.model", "no model 'none'"),
        ({}, ("tiny\n", "tiny\nserving: {registry: train.tsv/x}\n"), "train.tsv/x", "not writable"),
        ({}, ("char", "word, word_list: none.txt"), "tokenizer.word_list", "none.txt"),
        ({}, ("tiny\n", "tiny\nserving: {registry: 'a[1]'}\n"), "serving.registry", "pattern"),
    ],
)
def test_what_a_run_would_refuse_is_refused_at_once(tmp_path, record, change, where, message):
    (tmp_path / "train.tsv").write_text("a\tA\n")
    write_version(tmp_path, 1, **record)
    path = tmp_path / "tiny.yaml"
    path.write_text(CONFIG.format(start="null", rate=0.001))
    check = lambda: check_start(load(path, home=tmp_path), Workspace(tmp_path))  # noqa: E731
    if not record:
        check()
    path.write_text(path.read_text().replace(*change))
    with pytest.raises(UserError, match=message) as caught:
        check()
    assert where in caught.value.where


@pytest.mark.parametrize("name", ["home [x]", "a]b", "a*b", "a?b", "a\\b", "[a][b]"])
def test_a_home_that_would_be_read_as_a_pattern_is_refused(tmp_path, name):
    (tmp_path / "train.tsv").write_text("a\tA\n")
    path = tmp_path / "tiny.yaml"
    path.write_text(CONFIG.format(start="null", rate=0.001))
    config = load(path, home=tmp_path)
    check_start(config, Workspace(tmp_path / "a, b; c% #é'\"{}$&"))
    with pytest.raises(UserError) as caught:
        check_start(config, Workspace(tmp_path / name))
    assert caught.value.where == f"REGARD_HOME: {tmp_path / name}"


@pytest.fixture
def make_ensemble(make, tmp_path):
    """The arguments of the Trainer and the Pusher, with versions of another model."""
    for version, task in enumerate(("translation", "translation", "captioning"), 1):
        folder = write_version(tmp_path, version, "other", digest=f"d{version}")
        write_contract(folder, task)
        (folder / TRAINING).touch()
    (tmp_path / "registry/other/2" / TRAINING).unlink()
    return lambda ensemble: make(f"null, ensemble: {ensemble}")


def test_versions_of_an_ensemble_change_the_model_and_not_its_training(make_ensemble, tmp_path):
    alone, alone_record = make_ensemble("[]")
    trainer, record = make_ensemble("[other@1]")
    path = tmp_path / "registry/other/1"
    assert trainer["ensemble"] == [{"model": "other@1", "path": str(path), "digest": "d1"}]
    assert (alone["ensemble"], trainer["checkpoint_key"]) == ([], alone["checkpoint_key"])
    (path / "regard.json").write_text('{"digest": "changed"}')
    _, changed = make_ensemble("[other@1]")
    assert len({identity["recipe"] for identity in (alone_record, record, changed)}) == 3


@pytest.mark.parametrize("option", ["quantization: int8", "split_sentences: true"])
def test_what_is_served_changes_the_model_and_not_its_training(make, option):
    """Otherwise a run would not be compared with the model that is served without the option."""
    (plain, before), (trainer, record) = make("null"), make(f"null}}\nserving: {{{option}")
    assert trainer["checkpoint_key"] == plain["checkpoint_key"]
    assert record["recipe"] != before["recipe"]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("other@7", "'other' has no version '7'"),
        ("none@1", "no model 'none'"),
        ("other@2", "other@2 is an ensemble, or was exported without its settings"),
        ("other@3", "other@3 is a model for captioning, not translation"),
        ("other", "it must match"),
    ],
)
def test_versions_that_cannot_be_part_of_an_ensemble(make_ensemble, tmp_path, model, message):
    with pytest.raises(UserError, match=message) as caught:
        make_ensemble(f"[{model}]")
    assert "training.ensemble" in f"{caught.value.where} {caught.value.message}"
    if caught.value.where == "training.ensemble":
        # also by `regard validate`, as an error of the same kind
        with pytest.raises(type(caught.value), match=message):
            check_start(load(tmp_path / "tiny.yaml", home=tmp_path), Workspace(tmp_path))


def test_training_starts_from_scratch_by_default(make, tmp_path):
    write_version(tmp_path, 1, digest="d1")
    trainer, record = make("null")
    assert trainer["start"] is None
    assert "warm_start" not in record


def test_production_is_the_newest_version(make, tmp_path):
    trainer, record = make()
    assert trainer["start"] is None
    assert record["warm_start"]["start"] == {}
    write_version(tmp_path, 1, digest="d1")
    write_version(tmp_path, 2, digest="d2")
    folder = str(tmp_path / "registry/tiny/2")
    later, record = make()
    assert later["start"] == {"model": "tiny@2", "path": folder, "digest": "d2"}
    assert record["warm_start"]["start"] == later["start"]
    assert later["checkpoint_key"] != trainer["checkpoint_key"]


def test_a_training_does_not_start_from_its_own_result(make, tmp_path):
    write_version(tmp_path, 1, digest="d1")
    trainer, record = make()
    folder = write_version(tmp_path, 2, digest="d2", **record)
    again, record_again = make()
    assert again == trainer
    assert record_again == record
    other, _ = make(rate=0.01)
    assert other["start"]["path"] == str(folder)
    # Found again when the version that it started from has been deleted.
    (tmp_path / "registry/tiny/1/saved_model.pb").unlink()
    assert make()[0] == trainer


def test_the_first_training_does_not_start_from_its_own_result(make, tmp_path):
    trainer, record = make()
    write_version(tmp_path, 1, digest="d1", **record)
    assert make()[0] == trainer


def test_after_a_rollback_a_withdrawn_training_is_known_again(make, tmp_path):
    """Production is the model that it started from, under another number."""
    data = tmp_path / "train.tsv"
    _, record = make()
    write_version(tmp_path, 1, **record)
    data.write_text("a\tA\nb\tC\n")
    trainer, record = make()
    write_version(tmp_path, 2, **record)
    assert make()[0] == trainer
    rollback(Registry(tmp_path / "registry"), "tiny")
    assert trainer["start"]["model"] == "tiny@1"
    assert make() == (trainer, {**record, "compared_with": "3"})
    # Where the first one is pruned, by what it is, so that its checkpoints are found.
    shutil.rmtree(tmp_path / "registry/tiny/1")
    again, _ = make()
    assert again["start"]["model"] == "tiny@3"
    assert again["checkpoint_key"] == trainer["checkpoint_key"]


def test_new_data_start_from_the_result_of_the_old(make, tmp_path):
    _, record = make()
    write_version(tmp_path, 1, digest="d1", **record)
    (tmp_path / "train.tsv").write_text("a\tA\nb\tC\n")
    assert make()[0]["start"]["model"] == "tiny@1"


def test_a_version_that_is_named_and_a_path(make, tmp_path):
    write_version(tmp_path, 3, name="other", digest="d3")
    assert make("{model: other@3}")[0]["start"]["model"] == "other@3"
    assert make("{model: other}")[0]["start"]["digest"] == "d3"
    saved = tmp_path / "saved"
    saved.mkdir()
    (saved / "saved_model.pb").write_bytes(b"one")
    (saved / "assets.extra").mkdir()
    start = make("{model: ./saved}")[0]["start"]  # as the file stands, not the command
    assert (start["model"], start["path"]) == (str(saved), str(saved))
    (saved / "assets.extra/training.npz").write_bytes(b"not what it answers by")
    assert make("{model: ./saved}")[0]["start"] == start
    (saved / "saved_model.pb").write_bytes(b"two")
    changed = make("{model: ./saved}")[0]
    assert changed["start"]["digest"] != start["digest"]


def test_a_run_tells_what_it_starts_from(make, tmp_path, monkeypatch):
    """By that it is known to be needed, and is not pruned meanwhile."""
    write_version(tmp_path, 4, digest="d4")
    make()
    messages = tmp_path / "events.jsonl"
    monkeypatch.setenv("REGARD_EVENTS", str(messages))
    home = Workspace(tmp_path)
    worker._emit_origin(create_pipeline(load(tmp_path / "tiny.yaml", home=tmp_path), home))
    assert run_progress.read(messages).origin.start == {
        "model": "tiny@4",
        "path": str(tmp_path / "registry/tiny/4"),
        "digest": "d4",
    }


def test_a_model_that_is_not_there(make, tmp_path):
    write_version(tmp_path, 1, digest="d1")
    with pytest.raises(UserError, match="'tiny' has no version '7'") as caught:
        make("{model: tiny@7}")
    assert caught.value.where == "training.warm_start.model"
    assert "Its versions: 1" in caught.value.remedy
    with pytest.raises(UserError, match="no folder"):
        make("{model: ./nowhere}")


def config_with_root(folder, root):
    path = folder / "tiny.yaml"
    path.write_text(f"name: tiny\ndata: {{root: {root}, train: a.tsv}}\n")
    return load(path, home=folder)


def test_existing_files_are_resolved(tmp_path):
    (tmp_path / "a.tsv").write_text("a\tb\n")
    corpus = resolve_data(config_with_root(tmp_path, "."))
    assert (corpus.config.root, corpus.config.train) == (str(tmp_path), "a.tsv")
    assert [(feature.name, feature.role) for feature in corpus.features] == [
        ("source", "input"),
        ("target", "reference"),
    ]


@pytest.mark.parametrize(
    ("root", "remedy"),
    [
        ("data/quickstart", "regard data generate quickstart"),
        ("data/multi30k", "regard data fetch multi30k"),
        ("missing", "tiny.yaml"),  # what the folder contains
    ],
)
def test_missing_folder_names_the_command(tmp_path, root, remedy):
    with pytest.raises(UserError) as caught:
        resolve_data(config_with_root(tmp_path, root))
    assert remedy in caught.value.remedy
    (tmp_path / root).mkdir(parents=True)
    with pytest.raises(UserError, match=r"No such file: .*a\.tsv"):
        resolve_data(config_with_root(tmp_path, root))


@pytest.mark.parametrize(
    ("database", "place"),
    [
        ("{mysql: {database: d, user: u,\n  host: host.invalid}}", "4: metadata.mysql.host"),
        ("{mysql: {database: d, user: u, host: h,\n  ssl_ca: none}}", "4: metadata.mysql.ssl_ca"),
        ("\n  sqlite: missing/a.sqlite", "4: metadata.sqlite"),
    ],
)
def test_an_error_of_the_database_has_the_line_of_its_key(tmp_path, database, place):
    path = tmp_path / "tiny.yaml"
    path.write_text(f"name: tiny\ndata: {{train: a.tsv}}\nmetadata: {database}\n")
    with pytest.raises(UserError) as caught:
        check_start(load(path, home=tmp_path), Workspace(tmp_path))
    assert caught.value.where == f"{path}:{place}"


@pytest.mark.parametrize(
    ("train", "images"), [("a.tsv", ""), ("*.tsv", ""), ("{SPAN}.tsv", ""), ("a.tsv", "images")]
)
@pytest.mark.parametrize(
    ("root", "remedy"),
    [
        ("$HOME/data", "Write ${HOME} for the environment variable HOME."),
        ("gone/data", "The folder {folder}/gone does not exist. Check `data.root`."),
        ("dat", "Did you mean data?"),
    ],
)
def test_a_missing_root_has_its_own_line(tmp_path, train, images, root, remedy):
    (tmp_path / "data").mkdir()
    path = tmp_path / "tiny.yaml"
    task = f"task: captioning\ndata: {{images: {images}, " if images else "\ndata: {"
    path.write_text(f"name: tiny\n{task}train: '{train}',\n  root: {root}}}\n")
    with pytest.raises(UserError) as caught:
        resolve_data(load(path, home=tmp_path))
    assert caught.value.where == f"{path}:4: data.root"
    assert caught.value.remedy == remedy.replace("{folder}", str(tmp_path))


def test_a_dollar_sign_in_a_folder_that_exists_is_no_variable(tmp_path):
    (tmp_path / "$HOME").mkdir()
    with pytest.raises(UserError) as caught:
        resolve_data(config_with_root(tmp_path, "$HOME"))
    assert caught.value.where == f"{tmp_path / 'tiny.yaml'}:2: data.train"
    assert "${" not in caught.value.remedy


@pytest.mark.parametrize(
    ("train", "schema", "place"),
    [
        ("b.tsv", "null", "5: data.train"),
        ("{source: b.en, target: b.de}", "null", "5: data.train.source"),
        ("[a.tsv, b.tsv]", "null", "5: data.train"),
        ("a.tsv", "s.pbtxt", "4: data.schema"),
    ],
)
def test_missing_file_has_the_line_of_the_configuration(tmp_path, train, schema, place):
    (tmp_path / "a.tsv").write_text("a\tA\n")
    path = tmp_path / "tiny.yaml"
    path.write_text(f"name: tiny\ndata:\n  root: .\n  schema: {schema}\n  train: {train}\n")
    with pytest.raises(UserError) as caught:
        resolve_data(load(path))
    assert caught.value.where == f"{path}:{place}"


def test_another_test_split_is_not_trained_on(tmp_path):
    """Its content and its name change the graph, but not the folder of the checkpoints."""

    def checkpoints(**files):
        for name in ("train", "eval", "test", "other"):
            (tmp_path / f"{name}.tsv").write_text("a\tA\nb\tB\n")
        for name, text in files.items():
            (tmp_path / f"{name}.tsv").write_text(text)
        test = "other.tsv" if "other" in files else "test.tsv"
        path = tmp_path / "tiny.yaml"
        path.write_text(
            "name: tiny\n"
            f"data: {{root: ., train: train.tsv, eval: eval.tsv, test: {test}}}\n"
            "tokenizer: {type: char, vocab_size: 20, vocab_limit: soft}\n"
        )
        pipeline = create_pipeline(load(path, home=tmp_path), Workspace(tmp_path))
        messages = {node.id: node.exec_properties for node in pipeline.components}
        run = json.loads(messages["Trainer"]["custom_config"])["run"]
        return messages["CorpusGen"]["fingerprint"], run["checkpoint_key"]

    data, folder = checkpoints()
    for other in (checkpoints(test="c\tC\n"), checkpoints(other="c\tC\n")):
        assert other[0] != data
        assert other[1] == folder
    assert checkpoints(train="c\tC\n")[1] != folder
    assert checkpoints(eval="c\tC\n")[1] != folder
