"""A small Transformer, exported as the Trainer does it, and then for CTranslate2."""

import json

import ctranslate2
import numpy as np
import pytest
import sentencepiece

from components.errors import UserError
from components.trainer.export import export, read_pieces, read_tokenizers
from components.trainer.kept import keep
from models import tasks
from models.settings.search import BeamSearch
from pipeline.commands.export import Quantization
from pipeline.exporting import to_ctranslate2
from serving.ctranslate2 import QUANTIZATIONS
from serving.saved_model import IN_MEMORY, load
from tests.models.tasks.exported import TRANSFORMER, config
from tests.models.tasks.tokenizers import write_tokenizers

SOURCES = ["a cat sat", "the dog ran far away from home", "", "the mat"]
SIDE = {**TRANSFORMER, "norm": "pre", "positions": "sinusoidal", "activation": "relu"}
SEARCH = BeamSearch(beam_size=2, max_source_length=20, no_repeat_ngram=3, patience=1.5).model_dump()


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    root = tmp_path_factory.mktemp("registry")
    write_tokenizers(root)
    task = tasks.get("translation")
    settings = {**config(SIDE, SIDE), "search": SEARCH, "task": "translation"}
    settings["training"] = {**settings["training"], "warm_start": None}
    tokenizers = read_tokenizers(root, task.description.text_features)
    pieces = {name: int(t.vocab_size()) for name, t in tokenizers.items()}
    model = task.build(settings["model"], settings["training"], pieces)
    version = root / "models" / "small" / "3"
    export(model, task, settings, tokenizers, version, [{"source": text} for text in SOURCES])
    serialized = read_pieces(root, task.description.text_features)
    keep(version, model, settings, serialized)
    (version / "regard.json").write_text(json.dumps({"config": {"search": SEARCH}}))
    return root / "models"


def test_it_is_written_whole_checked_and_gives_the_same_scores(registry, tmp_path):
    done = to_ctranslate2("small", registry, tmp_path / "fast", "float32")
    assert (done.model, done.rows) == ("small@3", 3)  # nothing has no answer to check with
    assert done.difference < 1e-4
    assert [path.name for path in tmp_path.iterdir()] == ["fast"]
    about = json.loads((done.folder / "regard.json").read_text())
    assert about["model"] == "small@3"
    assert about["translate_batch"] == done.arguments
    rows = json.loads((registry / "small" / "3" / IN_MEMORY).read_text())
    mean = np.mean([rows[i]["answer"]["target_length"] for i in (0, 1, 3)])
    wanted = SEARCH["length_penalty"] * mean / (mean + 5)  # rises there as GNMT's does
    assert done.arguments["patience"] == 1.5
    assert done.arguments["length_penalty"] == pytest.approx(wanted, abs=0.006)
    source = sentencepiece.SentencePieceProcessor(str(done.folder / "source.model"))
    target = sentencepiece.SentencePieceProcessor(str(done.folder / "target.model"))
    translator = ctranslate2.Translator(str(done.folder), intra_threads=1)
    asked = [source.encode(text, out_type=str) for text in SOURCES[:2]]
    found = translator.translate_batch(asked, **done.arguments)
    assert all(target.decode(row.hypotheses[0]) for row in found)
    texts = ["eine Katze", "der Hund lief weit weg"]
    rows = [{"source": a, "target": b} for a, b in zip(SOURCES[:2], texts, strict=True)]
    scores = [answer.score for answer in load(registry / "small" / "3").ask("score", rows)]
    given = [target.encode(text, out_type=str) for text in texts]
    assert len(asked[1]) > SEARCH["max_source_length"]  # it is cut alike
    longest = done.arguments["max_input_length"]
    theirs = translator.score_batch(asked, given, max_input_length=longest)
    np.testing.assert_allclose(scores, [sum(row.log_probs) for row in theirs], atol=1e-3)


def test_the_command_offers_what_there_is():
    assert tuple(kind.value for kind in Quantization) == QUANTIZATIONS


def test_int8_is_smaller(registry, tmp_path):
    exact = to_ctranslate2("small@3", registry, tmp_path / "exact", "float32")
    small = to_ctranslate2(str(registry / "small" / "3"), registry, tmp_path / "small", "int8")
    assert small.size < exact.size
    assert small.difference > exact.difference


def test_only_an_earlier_export_is_replaced_and_only_if_asked(registry, tmp_path):
    folder = tmp_path / "fast"
    folder.mkdir()
    to_ctranslate2("small", registry, folder, "int8")
    before = (folder / "model.bin").stat().st_size
    with pytest.raises(UserError, match="something already"):
        to_ctranslate2("small", registry, folder, "float32")
    assert (folder / "model.bin").stat().st_size == before
    to_ctranslate2("small", registry, folder, "float32", force=True)
    assert (folder / "model.bin").stat().st_size > before
    assert [path.name for path in tmp_path.iterdir()] == ["fast"]


def test_what_is_no_export_stays(registry, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    (tmp_path / "link").symlink_to(registry)
    version = registry / "small" / "3"
    before = sorted(version.rglob("*"))
    for folder, complaint in (
        (tmp_path, "no export of a model"),
        (tmp_path / "thesis.txt", "no folder"),
        (tmp_path / "link", "of the registry"),
        (version, "of the registry"),
        (version / "inside", "of the registry"),
        (registry.parent, "of the registry"),
    ):
        with pytest.raises(UserError, match=complaint):
            to_ctranslate2("small", registry, folder, "float32", force=True)
    assert (tmp_path / "thesis.txt").read_text() == "mine"
    assert sorted(version.rglob("*")) == before


def test_probabilities_that_differ_are_a_mistake_and_leave_nothing(registry, tmp_path):
    path = registry / "small" / "3" / IN_MEMORY
    before = path.read_text()
    answers = json.loads(before)
    answers[0]["answer"]["score"] -= 0.5
    path.write_text(json.dumps(answers))
    try:
        with pytest.raises(RuntimeError, match="log-probability differs by"):
            to_ctranslate2("small", registry, tmp_path / "fast", "float32")
    finally:
        path.write_text(before)
    assert list(tmp_path.iterdir()) == []


def test_what_it_cannot_run_is_told(registry, tmp_path):
    version = tmp_path / "models" / "looking" / "1"
    root = tmp_path
    write_tokenizers(root)
    task = tasks.get("translation")
    sides = {"type": "recurrent", "cell": "gru", "units": 8}, {"type": "luong", "units": 8}
    settings = {**config(*sides), "task": "translation"}
    settings["training"] = {**settings["training"], "warm_start": None}
    tokenizers = read_tokenizers(root, task.description.text_features)
    pieces = {name: int(t.vocab_size()) for name, t in tokenizers.items()}
    model = task.build(settings["model"], settings["training"], pieces)
    export(model, task, settings, tokenizers, version)
    with pytest.raises(UserError, match="tells no names of its weights"):
        to_ctranslate2("looking", tmp_path / "models", tmp_path / "fast", "float32")
    keep(version, model, settings, {})
    with pytest.raises(UserError, match=r"model\.encoder\.type is recurrent.*decoder\.type is luo"):
        to_ctranslate2("looking", tmp_path / "models", tmp_path / "fast", "float32")
