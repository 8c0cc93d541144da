"""A small Transformer, exported as the Trainer does it, and then for CTranslate2."""

import json
import shutil
from dataclasses import replace
from types import SimpleNamespace
from unittest import mock

import ctranslate2
import numpy as np
import pytest
import sentencepiece

from regard.components.trainer.export import TRAINING
from regard.core.errors import UserError
from regard.models.settings.search import BeamSearchConfig
from regard.models.tasks.served_model import ServedModule
from regard.models.tasks.text_to_text.served import ServedText
from regard.pipeline.cli.export import export as export_command
from regard.pipeline.deployment.export import to_ctranslate2
from regard.serving.contract import CONTRACT, IN_MEMORY
from regard.serving.saved_model import load
from tests.models.tasks.exported import TRANSFORMER, export_model
from tests.tolerances import assert_close

SOURCES = ["a cat sat", "the dog ran far away from home", "", "the mat"]
SIDE = {**TRANSFORMER, "layers": 1, "norm": "pre", "positions": "sinusoidal", "activation": "relu"}
SEARCH = BeamSearchConfig(
    beam_size=2, max_source_length=20, no_repeat_ngram_size=3, patience=1.5
).model_dump()


# To write all signatures takes long. One gives the stored outputs, the other is compared below.
SIGNATURES = ("align", "score")


def with_few_signatures(text):
    """The served model of a task of texts, without the signatures that no test here uses."""
    served = ServedModule.served_model(text)
    return replace(served, signatures={name: served.signatures[name] for name in SIGNATURES})


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    root = tmp_path_factory.mktemp("registry")
    version = root / "models" / "small" / "3"
    with mock.patch.object(ServedText, "served_model", with_few_signatures):
        export_model(root, version, SIDE, SIDE, SOURCES, search=SEARCH)()
    (version / "regard.json").write_text(json.dumps({"config": {"search": SEARCH}}))
    return root / "models"


def test_an_export_is_verified_and_gives_the_same_scores(registry, tmp_path):
    completed = to_ctranslate2("small", registry, tmp_path / "fast", "float32")
    assert (completed.model, completed.rows) == ("small@3", 3)  # the empty row is not compared
    assert completed.difference < 1e-4
    assert [path.name for path in tmp_path.iterdir()] == ["fast"]
    about = json.loads((completed.folder / "regard.json").read_text())
    assert about["model"] == "small@3"
    assert about["translate_batch"] == completed.arguments
    rows = json.loads((registry / "small" / "3" / IN_MEMORY).read_text())
    mean = np.mean([rows[i]["answer"]["target_length"] for i in (0, 1, 3)])
    expected = SEARCH["length_penalty"] * mean / (mean + 5)  # the same slope as GNMT's penalty
    assert completed.arguments["patience"] == 1.5
    assert completed.arguments["length_penalty"] == pytest.approx(expected, abs=0.006)
    source = sentencepiece.SentencePieceProcessor(str(completed.folder / "source.model"))
    target = sentencepiece.SentencePieceProcessor(str(completed.folder / "target.model"))
    translator = ctranslate2.Translator(str(completed.folder), intra_threads=1)
    requested = [source.encode(text, out_type=str) for text in SOURCES[:2]]
    result = translator.translate_batch(requested, **completed.arguments)
    assert all(target.decode(row.hypotheses[0]) for row in result)
    texts = ["eine Katze", "der Hund lief weit weg"]
    rows = [{"source": a, "target": b} for a, b in zip(SOURCES[:2], texts, strict=True)]
    scores = [answer.score for answer in load(registry / "small" / "3").predict("score", rows)]
    inputs = [target.encode(text, out_type=str) for text in texts]
    assert len(requested[1]) > SEARCH["max_source_length"]  # both truncate it
    longest = completed.arguments["max_input_length"]
    theirs = translator.score_batch(requested, inputs, max_input_length=longest)
    assert_close(scores, [sum(row.log_probs) for row in theirs], roundings=1000)


@pytest.mark.parametrize(("offset", "patience"), [(0.0, "present_length"), (1.0, 2.0)])
def test_the_length_penalty_of_an_imported_model(registry, tmp_path, offset, patience):
    """That of Transformers is a power of the length, as CTranslate2's is."""
    version = shutil.copytree(registry / "small" / "3", tmp_path / "models" / "imported" / "1")
    search = {**SEARCH, "length_penalty": 1.2, "length_offset": offset, "patience": patience}
    (version / "regard.json").write_text(json.dumps({"config": {"search": search}}))
    completed = to_ctranslate2("imported", tmp_path / "models", tmp_path / "fast", "float32")
    rows = json.loads((version / IN_MEMORY).read_text())
    mean = np.mean([rows[i]["answer"]["target_length"] for i in (0, 1, 3)])
    expected = 1.2 * mean / (mean + offset)
    assert completed.arguments["length_penalty"] == pytest.approx(expected, abs=0.006)
    assert completed.arguments.get("patience") == (None if offset == 0 else patience)


def test_the_command_prints_how_to_use_the_export(registry, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    export_command("small@3", registry=registry)
    printed = capsys.readouterr().out
    assert "Exported small@3 to small-ctranslate2" in printed
    assert "verified with 3 outputs" in printed
    assert 'ctranslate2.Translator("small-ctranslate2")' in printed
    assert (tmp_path / "small-ctranslate2/model.bin").is_file()


def test_int8_is_smaller(registry, tmp_path):
    exact = to_ctranslate2("small@3", registry, tmp_path / "exact", "float32")
    small = to_ctranslate2(str(registry / "small" / "3"), registry, tmp_path / "small", "int8")
    assert small.size < exact.size
    assert small.difference > exact.difference


def test_int16_is_refused_where_ctranslate2_would_compute_in_8_bits(
    registry, tmp_path, monkeypatch
):
    kinds = {"float32", "int8"}
    monkeypatch.setattr(ctranslate2, "get_supported_compute_types", lambda device: kinds)
    with pytest.raises(UserError, match="of Intel only"):
        to_ctranslate2("small", registry, tmp_path / "fast", "int16")
    assert list(tmp_path.iterdir()) == []


def test_only_an_earlier_export_is_replaced(registry, tmp_path):
    folder = tmp_path / "fast"
    folder.mkdir()
    to_ctranslate2("small", registry, folder, "int8")
    before = (folder / "model.bin").stat().st_size
    with pytest.raises(UserError, match="not empty"):
        to_ctranslate2("small", registry, folder, "float32")
    assert (folder / "model.bin").stat().st_size == before
    to_ctranslate2("small", registry, folder, "float32", force=True)
    assert (folder / "model.bin").stat().st_size > before
    assert [path.name for path in tmp_path.iterdir()] == ["fast"]
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(UserError) as caught:
        to_ctranslate2("small", registry, folder, "int8", force=True)
    assert caught.value.where == str(folder / "notes.txt")
    assert (folder / "notes.txt").read_text() == "mine"


def test_other_folders_are_not_replaced(registry, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    (tmp_path / "link").symlink_to(registry)
    version = registry / "small" / "3"
    before = sorted(version.rglob("*"))
    for folder, complaint in (
        (tmp_path, "does not contain an exported model"),
        (tmp_path / "thesis.txt", "not a folder"),
        (tmp_path / "link", "contains or is part of"),
        (version, "contains or is part of"),
        (version / "inside", "contains or is part of"),
        (registry.parent, "contains or is part of"),
    ):
        with pytest.raises(UserError, match=complaint):
            to_ctranslate2("small", registry, folder, "float32", force=True)
    assert (tmp_path / "thesis.txt").read_text() == "mine"
    assert sorted(version.rglob("*")) == before


def test_different_probabilities_leave_no_export(registry, tmp_path):
    path = registry / "small" / "3" / IN_MEMORY
    before = path.read_text()
    answers = json.loads(before)
    answers[0]["answer"]["score"] -= 0.5
    path.write_text(json.dumps(answers))
    try:
        with pytest.raises(RuntimeError, match="log-probability of a token differs by"):
            to_ctranslate2("small", registry, tmp_path / "fast", "float32")
        answers[0]["answer"]["score"] -= 5.0
        path.write_text(json.dumps(answers))
        with pytest.raises(UserError, match="Use another quantization than int8"):
            to_ctranslate2("small", registry, tmp_path / "fast", "int8")
    finally:
        path.write_text(before)
    assert list(tmp_path.iterdir()) == []


RECURRENT = {"encoder": {"type": "recurrent"}, "decoder": {"type": "luong"}}
UNSUPPORTED = r"model\.encoder\.type is recurrent.*decoder\.type is luo"


@pytest.fixture
def copied(registry, tmp_path):
    """A copy of the registry, whose version a test changes."""
    shutil.copytree(registry, tmp_path / "models")
    return tmp_path / "models"


def test_a_model_without_what_a_warm_start_needs(copied, tmp_path):
    (copied / "small" / "3" / TRAINING).unlink()
    with pytest.raises(UserError, match="small cannot be built again: it is an ensemble"):
        to_ctranslate2("small", copied, tmp_path / "fast", "float32")


def test_unsupported_models_are_refused_by_their_record(copied, tmp_path, monkeypatch):
    """Without TensorFlow and before the weights are read."""
    monkeypatch.setattr("regard.components.trainer.export.RebuiltModel", None)
    record = copied / "small" / "3" / "regard.json"
    record.write_text(json.dumps({"config": {"model": RECURRENT}}))
    with pytest.raises(UserError, match=UNSUPPORTED):
        to_ctranslate2("small", copied, tmp_path / "fast", "float32")


def test_unsupported_models_without_a_record(copied, tmp_path, monkeypatch):
    rebuilt = SimpleNamespace(config=SimpleNamespace(model_settings=RECURRENT))
    monkeypatch.setattr("regard.components.trainer.export.RebuiltModel", lambda *_: rebuilt)
    (copied / "small" / "3" / "regard.json").unlink()
    with pytest.raises(UserError, match=UNSUPPORTED):
        to_ctranslate2("small", copied, tmp_path / "fast", "float32")


def test_a_model_with_a_confidence_is_refused(copied, tmp_path):
    path = copied / "small" / "3" / CONTRACT
    contract = {**json.loads(path.read_text()), "confidence": {"output": "confidence"}}
    path.write_text(json.dumps(contract))
    with pytest.raises(UserError) as raised:
        to_ctranslate2("small", copied, tmp_path / "fast", "float32")
    assert "serving.confidence" in raised.value.remedy
