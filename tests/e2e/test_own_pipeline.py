"""Nodes in a pipeline of one's own, with TFX's runner: nothing of the user is lost or reused."""

import json
import os
from pathlib import Path

import pytest
from tfx.dsl.components.common.importer import Importer
from tfx.orchestration.local.local_dag_runner import LocalDagRunner
from tfx.orchestration.metadata import sqlite_metadata_connection_config
from tfx.orchestration.pipeline import Pipeline
from tfx.types.standard_artifacts import Examples, TransformGraph

from regard.components import CorpusGen, Trainer
from tests.components.corpora import BEAM
from tests.components.tuner import tiny

STEPS = {"max_epochs": None, "max_steps": 4, "evaluate_every": 2}
# Trained and exported in the shortest time.
SMALL = {"encoder": {"type": "embedding"}, "decoder": {"type": "luong", "units": 8}}


@pytest.fixture
def working_directory(tmp_path, monkeypatch):
    """Become a folder with folders of the user, older than anything that Regard writes."""
    folder = tmp_path / "home"
    for name in ("photos", "thesis", ".config", "checkpoints"):
        (folder / name / "sub").mkdir(parents=True)
        (folder / name / "sub" / "file").write_text(name)
        os.utime(folder / name, (1000, 1000))
    (folder / "link").symlink_to(folder / "photos")
    monkeypatch.chdir(folder)
    return folder


def contents(folder):
    paths = sorted(folder.rglob("*"))
    return {str(path): path.read_bytes() for path in paths if path.is_file()}, len(paths)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The artifacts of Preprocess for sources that are their own targets."""
    folder = tmp_path_factory.mktemp("source")
    data = tiny.make_source(folder / "files")
    for split, (path,) in (("train", data.train_files), ("eval", data.eval_files)):
        (folder / "examples" / f"Split-{split}").mkdir(parents=True)
        os.rename(path, folder / "examples" / f"Split-{split}" / "rows-00000-of-00001.arrow")
    return folder / "examples", data.transform_graph


def run(root, source, checkpoints, monkeypatch, **training):
    """Run a pipeline of one Trainer, and return its record, the model's weights and the events."""
    events = root.with_name(f"{root.name}-events")
    events.unlink(missing_ok=True)
    monkeypatch.setenv("REGARD_EVENTS", str(events))
    config = tiny.config()
    config["training"] |= {**STEPS, **training}
    config["model"] |= SMALL
    config["search"] = {"type": "greedy"}
    properties = {"split_names": '["train", "eval"]'}
    examples = Importer(str(source[0]), Examples, properties=properties).with_id("Rows")
    graph = Importer(str(source[1]), TransformGraph).with_id("Graph")
    trainer = Trainer(
        examples=examples.outputs["result"],
        transform_graph=graph.outputs["result"],
        **config,
        checkpoints=str(checkpoints or ""),
    )
    metadata = sqlite_metadata_connection_config(str(root.with_suffix(".sqlite")))
    LocalDagRunner().run(
        Pipeline(
            pipeline_name="own",
            pipeline_root=str(root),
            components=[examples, graph, trainer],
            metadata_connection_config=metadata,
            enable_cache=False,
        )
    )
    folder = max((root / "Trainer" / "model_run").glob("[0-9]*"), key=lambda path: int(path.name))
    return json.loads((folder / "training.json").read_text()), events.read_text()


def test_a_trainer_leaves_the_folders_of_the_working_directory(
    tmp_path, working_directory, source, monkeypatch
):
    before = contents(working_directory)
    run(tmp_path / "root", source, None, monkeypatch)
    assert contents(working_directory) == before
    (checkpoints,) = (tmp_path / "root" / "Trainer" / "model_run" / "checkpoints").iterdir()
    assert (checkpoints / "last.npz").is_file()


@pytest.fixture
def files_of_the_user(working_directory):
    """Files with the names of checkpoints, such as those of an earlier version."""
    for name in ("last.npz", "step-2.npz", ".note.tmp"):
        (working_directory / name).write_bytes(b"mine")
    return contents(working_directory)[0]


def test_a_folder_of_the_user_is_kept(
    tmp_path, working_directory, files_of_the_user, source, monkeypatch
):
    # The slow test below also exports the model, which takes most of the time.
    module = "regard.components.trainer.train_and_export"

    def create_folder(model, network, config, tokenizers, folder, *_):
        Path(folder).mkdir(parents=True)

    monkeypatch.setattr(f"{module}.export", create_folder)
    monkeypatch.setattr(f"{module}.write_warm_start", lambda *_: None)
    _, events = run(tmp_path / "root", source, working_directory, monkeypatch)
    assert '"warning"' in events
    assert contents(working_directory)[0].items() >= files_of_the_user.items()


@pytest.mark.slow
def test_a_folder_of_the_user_is_kept_and_resumed_only_with_equal_settings(
    tmp_path, working_directory, files_of_the_user, source, monkeypatch
):
    first, events = run(tmp_path / "root", source, working_directory, monkeypatch)
    assert '"warning"' in events
    again, events = run(tmp_path / "root", source, working_directory, monkeypatch)
    assert "resumed at step 4" in events
    assert again["history"] == first["history"]
    changes = {"learning_rate": 0.05, "seed": 5}
    other, events = run(tmp_path / "root", source, working_directory, monkeypatch, **changes)
    assert "resumed at" not in events
    assert other["history"] != first["history"]
    assert contents(working_directory)[0].items() >= files_of_the_user.items()


def generate(root, data):
    """Run a pipeline of one CorpusGen without a fingerprint; return its rows and their folder."""
    files = {"root": str(data), "train": "a.tsv", "eval": "a.tsv", "test": "a.tsv"}
    node = CorpusGen(files, task="translation")
    metadata = sqlite_metadata_connection_config(str(root.with_suffix(".sqlite")))
    pipeline = Pipeline(
        pipeline_name="own",
        pipeline_root=str(root),
        components=[node],
        metadata_connection_config=metadata,
        enable_cache=True,
        beam_pipeline_args=BEAM,
    )
    LocalDagRunner().run(pipeline)
    folders = [*(root / "CorpusGen" / "findings").iterdir()]
    folder = max(folders, key=lambda path: int(path.name))
    return json.loads((folder / "corpus.json").read_text()), len(folders)


def test_changed_data_are_not_taken_from_the_cache(tmp_path):
    (tmp_path / "a.tsv").write_text("one\teins\ntwo\tzwei\n")
    first, _ = generate(tmp_path / "root", tmp_path)
    again, executions = generate(tmp_path / "root", tmp_path)
    assert (again, executions) == (first, 1)
    (tmp_path / "a.tsv").write_text("one\teins\ntwo\tzwei\nthree\tdrei\n")
    changed, executions = generate(tmp_path / "root", tmp_path)
    assert executions == 2
    assert changed["rows"]["train"] == 3
    assert changed["fingerprint"] != first["fingerprint"]
