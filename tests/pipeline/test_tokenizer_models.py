"""The files of ``tokenizer.model`` before a run: checks, copies and cache keys."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tfx.orchestration.pipeline import Pipeline

from regard.components.tokenizer_trainer.given_models import GivenModel, read_given_model
from regard.core.errors import UserError
from regard.core.files import sha256_file
from regard.models.protected_spans import symbol
from regard.pipeline import tokenizer_models
from regard.pipeline.cache_keys import training_key, vector_digests
from regard.pipeline.clean import clean
from regard.pipeline.config import Config, load
from regard.pipeline.context import check_start, local_context
from regard.pipeline.metadata_file import REMOVED
from regard.pipeline.tokenizer_models import check_tokenizer_models, describe_tokenizer_models
from regard.pipeline.validation import validate
from regard.pipeline.workspace import Workspace
from tests.components.common.sentencepiece_corpora import SENTENCES, train_foreign_model
from tests.pipeline.graphs import create_pipeline

CONFIG = """name: tiny
data: {train: train.tsv, protect: {kinds: [numbers]}}
tokenizer: {model: MODEL}
training: {checkpoint_seconds: 60}
"""
SIDES = {"source": "a", "target": "b"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = "".join(f"{sentence}\t{sentence}\n" for sentence in SENTENCES[:60])
    (tmp_path / "train.tsv").write_text(rows)
    (tmp_path / "a.model").write_bytes(train_foreign_model())
    (tmp_path / "b.model").write_bytes(train_foreign_model(vocab_size=40))
    return tmp_path


def configure(folder: Path, model: str = "a.model", head: str = CONFIG) -> Config:
    (folder / "tiny.yaml").write_text(head.replace("MODEL", model))
    return load(folder / "tiny.yaml", home=folder)


def build(folder: Path, model: str = "a.model") -> dict[str, dict[str, Any]]:
    """The parameters of each node."""
    pipeline: Pipeline = create_pipeline(configure(folder, model), Workspace(folder / "home"))
    return {node.id: dict(node.exec_properties) for node in pipeline.components}


def changes(before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]) -> set[str]:
    return {node for node in before if before[node] != after[node]}


def checkpoint(nodes: dict[str, dict[str, Any]]) -> str:
    return str(json.loads(nodes["Trainer"]["custom_config"])["run"]["checkpoint_key"])


def test_keys_depend_on_the_content_alone(folder: Path) -> None:
    before = build(folder)
    os.utime(folder / "a.model", (1, 1))
    assert changes(before, build(folder)) == set()
    (folder / "moved").mkdir()
    (folder / "a.model").rename(folder / "moved" / "c.model")
    renamed = build(folder, "moved/c.model")
    assert changes(before, renamed) <= {"Pusher", "Reporter"}  # which record the configuration
    (folder / "moved" / "c.model").write_bytes((folder / "b.model").read_bytes())
    os.utime(folder / "moved" / "c.model", (1, 1))
    changed = build(folder, "moved/c.model")
    assert {"TokenizerTrainer", "Trainer"} <= changes(renamed, changed)
    assert checkpoint(renamed) == checkpoint(before) != checkpoint(changed)


def test_the_node_reads_a_copy(folder: Path) -> None:
    digest = sha256_file(folder / "a.model")
    node = build(folder)["TokenizerTrainer"]
    copy = Path(json.loads(node["config"])["model"])
    assert copy == folder / "home/pipelines/tiny/tokenizers" / digest
    assert sha256_file(copy / "a.model") == digest
    assert json.loads(node["model_digests"]) == {"source": digest, "target": digest}
    # A damaged copy is replaced.
    (copy / "a.model").write_bytes(b"x")
    (copy / "other").touch()
    build(folder)
    assert [sha256_file(path) for path in copy.iterdir()] == [digest]


def test_a_cleaning_removes_the_copies(folder: Path) -> None:
    """A killed cleaning has renamed one; what has another name is not Regard's."""
    workspace = Workspace(folder / "home")
    copies = workspace.pipeline("tiny").tokenizers
    build(folder)
    (copies / f"{'b' * 64}{REMOVED}").mkdir()
    others = {copies / name for name in ("mine", "A" * 64, "a" * 63)}
    for other in others:
        other.mkdir()
        (other / "spm.model").touch()
    (folder / "elsewhere").mkdir()
    link = copies / ("c" * 64)
    link.symlink_to(folder / "elsewhere")
    size = (folder / "a.model").stat().st_size
    assert clean(workspace, "tiny", keep=1, dry_run=True).bytes >= size
    assert len([*copies.iterdir()]) == 6
    assert clean(workspace, "tiny", keep=1).bytes >= size
    assert {*copies.iterdir()} == {*others, link}
    build(folder)
    assert (copies / sha256_file(folder / "a.model") / "a.model").is_file()


def test_two_files(folder: Path) -> None:
    model = "{source: a.model, target: b.model}"
    config = configure(folder, model)
    digests = {side: sha256_file(folder / f"{name}.model") for side, name in SIDES.items()}
    assert vector_digests(config) == {f"tokenizer.model.{s}": d for s, d in digests.items()}
    assert not config.tokenizer.shared
    node = build(folder, model)["TokenizerTrainer"]
    assert json.loads(node["model_digests"]) == digests
    copies = json.loads(node["config"])["model"]
    assert {side: Path(path).name for side, path in copies.items()} == digests
    notes = describe_tokenizer_models(check_tokenizer_models(config))
    assert [note.partition(":")[0] for note in notes] == [
        f"tokenizer.model.{side}" for side in SIDES
    ]
    swapped = configure(folder, "{source: b.model, target: a.model}")
    keys = {training_key(c, "x", vector_digests(c)) for c in (config, swapped)}
    assert len(keys) == 2


def test_the_validation_reads_each_file_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_HOME", str(folder / "home"))
    names: list[str] = []

    def read(path: str, *arguments: Any) -> GivenModel:
        names.append(Path(path).name)
        return read_given_model(path, *arguments)

    monkeypatch.setattr("regard.pipeline.tokenizer_models.read_given_model", read)
    result = validate(configure(folder, "{source: a.model, target: b.model}"))
    assert sorted(names) == ["a.model", "b.model"]
    assert sum(note.startswith("tokenizer.model.") for note in result.notes) == 2


def test_one_file_is_shared(folder: Path) -> None:
    for model in ("a.model", "{source: a.model, target: a.model}"):
        tied = CONFIG + "model: {tie_embeddings: all}\n"
        config = configure(folder, model, tied)
        assert config.tokenizer.shared
        assert config.tokenizer.model_paths(["source"]) == {"source": str(folder / "a.model")}
    (model,) = check_tokenizer_models(configure(folder)).values()
    assert symbol(0).encode() in model.proto


def test_validate_describes_the_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_HOME", str(folder / "home"))
    notes = validate(configure(folder)).notes
    (note,) = [note for note in notes if note.startswith("tokenizer.model")]
    assert "a.model (unigram, normalization nmt_nfkc)" in note


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"<html>", "HTML"), (None, "cannot be read"), (b"", "empty"), (b"\x0a\x05abc", "damaged")],
)
def test_unusable_files(folder: Path, content: bytes | None, message: str) -> None:
    path = folder / "a.model"
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        check_start(configure(folder), Workspace(folder / "home"))
    assert caught.value.where == f"{folder}/tiny.yaml:3: tokenizer.model"
    with pytest.raises(UserError, match=message) as caught:
        check_start(configure(folder, "{source: b.model, target: a.model}"), Workspace(folder))
    assert caught.value.where == f"{folder}/tiny.yaml:3: tokenizer.model.target"


def test_a_file_that_changes_while_a_run_begins(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = configure(folder)
    read = tokenizer_models.read_file

    def change_and_read(path: str, where: str | None = None) -> bytes:
        Path(path).write_bytes((folder / "b.model").read_bytes())
        return read(path, where)

    monkeypatch.setattr(tokenizer_models, "read_file", change_and_read)
    with pytest.raises(UserError, match="changed while it was read"):
        local_context(config, Workspace(folder / "home"))
    assert not list((folder / "home/pipelines/tiny").glob("tokenizers/*/*"))
    local_context(config, Workspace(folder / "home"))  # the file does not change any more


def test_a_folder_is_no_model(folder: Path) -> None:
    (folder / "c").mkdir()
    (folder / "c" / "a.model").write_bytes((folder / "a.model").read_bytes())
    with pytest.raises(UserError, match="cannot be read"):
        check_start(configure(folder, "c"), Workspace(folder / "home"))


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_subword_sampling_splits_the_symbols_of_a_unigram_model(folder: Path, kind: str) -> None:
    symbols = {"user_defined_symbols": ["<date>"]}
    (folder / "c.model").write_bytes(train_foreign_model(kind=kind, **symbols))
    head = CONFIG.replace(", protect: {kinds: [numbers]}", "").replace(
        "MODEL", f"MODEL, type: {kind}"
    )
    head = head.replace("{checkpoint", "{subword_sampling: {alpha: 0.1}, checkpoint")
    config = configure(folder, "c.model", head)
    if kind == "bpe":
        assert check_tokenizer_models(config)["tokenizer.model"].type == "bpe"
        return
    with pytest.raises(UserError, match="<date>") as caught:
        check_tokenizer_models(config)
    assert caught.value.where.endswith("yaml:4: training.subword_sampling")
