"""TokenizerTrainer from examples on disk to an artifact."""

import json
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from tfx.types import standard_artifacts

from regard.components.common import events
from regard.components.common.component import Tokenizer
from regard.components.common.errors import UserError
from regard.components.tokenizer_trainer.executor import TokenizerTrainerExecutor
from regard.components.tokenizer_trainer.sampling import MAX_BYTES
from regard.models.tags import user_symbols
from tests.components.corpora import BEAM, write_records

SETTINGS: dict[str, Any] = {"vocab_size": 60, "vocab_limit": "soft", "input_sentence_size": 1000}
ROWS = [(f"number {i} is here", f"hier ist die Zahl {i}") for i in range(200)]


def run(
    folder: Path, rows: list[tuple[str, str]], symbols: list[str] | None = None, **settings: Any
) -> tuple[Path, Tokenizer]:
    for split, pairs in {"train": rows, "test": [("ÖÖÖ", "ÜÜÜ")]}.items():
        path = folder / "examples" / f"Split-{split}" / "data_tfrecord-00000-of-00001.gz"
        write_records(path, ({"source": [one], "target": [other]} for one, other in pairs))
    examples, tokenizer = standard_artifacts.Examples(), Tokenizer()
    examples.uri, tokenizer.uri = str(folder / "examples"), str(folder / "tokenizer")
    examples.split_names = '["train", "test"]'
    context = TokenizerTrainerExecutor.Context(beam_pipeline_args=BEAM, tmp_dir=str(folder / "tmp"))
    config = json.dumps({**SETTINGS, **settings})
    features = json.dumps({"source": symbols or [], "target": []})
    properties = {"config": config, "features": features, "seed": 0, "code": "x"}
    TokenizerTrainerExecutor(context).Do(
        {"examples": [examples]}, {"tokenizer": [tokenizer]}, properties | {"word_list_digest": ""}
    )
    return Path(tokenizer.uri), tokenizer


def tokens_of(path: Path) -> list[str]:
    model = sentencepiece.SentencePieceProcessor(model_proto=path.read_bytes())
    return [model.id_to_piece(i) for i in range(model.get_piece_size())]


def test_one_model_per_side_from_train(tmp_path: Path) -> None:
    folder, artifact = run(tmp_path, ROWS)
    source, target = tokens_of(folder / "source.model"), tokens_of(folder / "target.model")
    assert "Z" in "".join(target)
    assert "Z" not in "".join(source)
    assert not set("ÖÜ") & set("".join(source + target))
    description = json.loads((folder / "tokenizer.json").read_text())
    assert description["ids"] == {"pad": 0, "unk": 1, "bos": 2, "eos": 3}
    assert description["features"]["source"] == {
        "file": "source.model",
        "type": "unigram",
        "tokens": len(source),
        "sentences": 200,
        "too_long": 0,
    }
    assert artifact.get_int_custom_property("target_tokens") == len(target)
    vocabulary = (folder / "source.vocab").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[0] for line in vocabulary] == source
    assert not list(folder.glob(".*"))


def test_shared(tmp_path: Path) -> None:
    folder, _ = run(tmp_path, ROWS, shared=True)
    assert (folder / "source.model").read_bytes() == (folder / "target.model").read_bytes()
    description = json.loads((folder / "tokenizer.json").read_text())
    assert description["shared"] is True
    assert description["features"]["source"]["sentences"] == 400
    assert {"Z", "n"} <= set("".join(tokens_of(folder / "source.model")))


def test_hard_limit_names_both_sides_and_the_key(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"tokenizer\.vocab_size: 8000 is more than") as caught:
        run(tmp_path, ROWS, vocab_size=8000, vocab_limit="hard")
    assert "source at most " in caught.value.message
    assert "target at most " in caught.value.message
    assert "tokenizer.vocab_limit to soft" in (caught.value.remedy or "")
    assert not (tmp_path / "tokenizer" / "source.model").exists()


def test_too_small_a_vocabulary(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"tokenizer\.vocab_size: 8 is less than the characters"):
        run(tmp_path, ROWS, vocab_size=8)


def test_no_text(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"target: the train split has no text \(2 rows"):
        run(tmp_path, [("a b", ""), ("c", " ")], vocab_size=20)


def test_small_corpus_and_too_long_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(log))
    rows = [("a dog", "ein Hund"), ("a cat", "eine Katze"), ("word " * MAX_BYTES, "Wort")]
    folder, _ = run(tmp_path, rows, vocab_size=8000)
    description = json.loads((folder / "tokenizer.json").read_text())["features"]["source"]
    assert (description["sentences"], description["too_long"]) == (2, 1)
    texts = {kind: [] for kind in ("note", "warning", "progress")}
    for event, _ in events.read(log):
        assert event["node"] == "TokenizerTrainer"
        texts[event["kind"]].append(event["text"])
    assert texts["note"][0].startswith(
        f"source: {description['tokens']} tokens from 2 sentences (the"
    )
    assert texts["warning"] == ["source: 1 line of more than 16,384 bytes was skipped"]
    assert "sampling sentences" in texts["progress"]


@pytest.mark.parametrize("shared", [False, True])
def test_symbols_of_a_feature(tmp_path: Path, shared: bool) -> None:
    symbols = user_symbols(["de", "fr"], "unigram")
    folder, _ = run(tmp_path, ROWS, symbols, shared=shared, user_defined_symbols=["<date>"])
    source, target = tokens_of(folder / "source.model"), tokens_of(folder / "target.model")
    assert {*symbols, "<date>"} <= set(source)
    assert set(symbols) & set(target) == (set(symbols) if shared else set())
    assert "<date>" in target
