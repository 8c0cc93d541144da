"""The settings reach SentencePiece, and its refusals come back with their numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from components.tokenizer_trainer.sentencepiece_model import (
    Trained,
    VocabularyTooLarge,
    VocabularyTooSmall,
    train,
)

NAMES = ["anna", "bela", "carla", "dora", "emil", "falk", "gero", "hanna"]
ENDINGS = ["bach", "berg", "burg", "dorf", "feld", "hausen", "heim", "ingen", "stadt", "tal"]
CORPUS = [
    f"{name} goes from {start}{one} to {end}{two} on day {number}".encode()
    for number, name in enumerate(NAMES)
    for start, one in zip(NAMES, ENDINGS, strict=False)
    for end in NAMES
    for two in ENDINGS
]
SETTINGS: dict[str, Any] = {
    "type": "unigram",
    "vocab_size": 60,
    "character_coverage": 1.0,
    "vocab_limit": "hard",
    "normalization": "nmt_nfkc",
    "punctuation": "keep",
    "words": None,
    "special_pieces": [],
    "byte_fallback": False,
}


def processor(model: Trained) -> sentencepiece.SentencePieceProcessor:
    return sentencepiece.SentencePieceProcessor(model_proto=model.proto)


@pytest.mark.parametrize("kind", ["unigram", "bpe", "char", "word"])
def test_special_ids_and_round_trip(kind: str) -> None:
    model = processor(
        train(CORPUS, {**SETTINGS, "type": kind, "vocab_size": 150, "vocab_limit": "soft"})
    )
    assert [model.pad_id(), model.unk_id(), model.bos_id(), model.eos_id()] == [0, 1, 2, 3]
    text = "anna goes from annabach to emilberg on day 3"
    assert model.decode(model.encode(text)) == text


def test_pieces_are_listed_by_id() -> None:
    model = train(CORPUS, SETTINGS)
    assert len(model.pieces) == 60
    assert [piece for piece, _ in model.pieces[:4]] == ["<pad>", "<unk>", "<s>", "</s>"]


def test_the_same_input_gives_the_same_bytes() -> None:
    assert train(CORPUS, SETTINGS).proto == train(iter(CORPUS), SETTINGS).proto


def test_hard_limit_names_a_number_that_then_works() -> None:
    with pytest.raises(VocabularyTooLarge) as caught:
        train(CORPUS, {**SETTINGS, "vocab_size": 5000})
    most = caught.value.most
    assert len(train(CORPUS, {**SETTINGS, "vocab_size": most}).pieces) == most


def test_soft_limit_gives_fewer() -> None:
    assert len(train(CORPUS, {**SETTINGS, "vocab_size": 5000, "vocab_limit": "soft"}).pieces) < 5000


def test_too_small_names_what_is_needed() -> None:
    with pytest.raises(VocabularyTooSmall) as caught:
        train(CORPUS, {**SETTINGS, "vocab_size": 10})
    least = caught.value.least
    assert len(train(CORPUS, {**SETTINGS, "vocab_size": least + 1}).pieces) == least + 1


def test_special_pieces_stay_whole() -> None:
    model = processor(train(CORPUS, {**SETTINGS, "special_pieces": ["<date>"]}))
    assert "<date>" in model.encode("on <date> anna", out_type=str)


def test_normalization() -> None:
    folding = processor(train(CORPUS, {**SETTINGS, "normalization": "nfkc_cf"}))
    assert folding.encode("ANNA") == folding.encode("anna")
    exact = processor(train(CORPUS, {**SETTINGS, "normalization": "identity"}))
    assert exact.encode("ANNA") != exact.encode("anna")


def test_byte_fallback_keeps_unknown_characters() -> None:
    settings = {**SETTINGS, "vocab_size": 340, "byte_fallback": True, "vocab_limit": "soft"}
    model = processor(train(CORPUS, settings))
    assert model.decode(model.encode("anna 東")) == "anna 東"
    without = processor(train(CORPUS, SETTINGS))
    assert without.decode(without.encode("anna 東")) != "anna 東"


def test_a_corpus_of_three_lines() -> None:
    lines = [b"a small dog", b"a cat", b"the house"]
    model = train(lines, {**SETTINGS, "vocab_size": 8000, "vocab_limit": "soft"})
    assert 4 < len(model.pieces) < 50


def test_says_nothing_on_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    train(CORPUS, SETTINGS)
    with pytest.raises(VocabularyTooLarge):
        train(CORPUS, {**SETTINGS, "vocab_size": 5000})
    assert capfd.readouterr() == ("", "")


def test_punctuation_becomes_words_of_its_own() -> None:
    lines = [b"The dog, it ran away. Don't!"] * 5
    words = {"type": "word", "vocab_limit": "soft", "normalization": "nmt_nfkc_cf"}
    kept, split = (
        processor(train(lines, {**SETTINGS, **words, "punctuation": choice}))
        for choice in ("keep", "split")
    )
    assert kept.encode("THE dog, away.", out_type=str) == ["▁the", "▁dog,", "▁away."]
    expected = ["▁the", "▁dog", "▁,", "▁away", "▁.", "▁don", "▁'", "▁t"]
    assert split.encode("THE dog, away.\u00a0don't", out_type=str) == expected


def test_the_same_sentences_give_the_same_bytes() -> None:
    words = {"type": "word", "vocab_limit": "soft", "punctuation": "split"}
    one, other = (train([b"the dog, it ran."], {**SETTINGS, **words}).proto for _ in range(2))
    assert one == other
    assert b".tsv" not in one


def test_words_are_added_up_to_the_size(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("the 1 2\nAnna 1 2\ncat 1 2\n, 1 2\nhot dog 1 2\nzebra 1 2\nokapi 1 2\n")
    words = {
        "type": "word",
        "vocab_limit": "hard",
        "normalization": "nmt_nfkc_cf",
        "words": str(path),
        "vocab_size": 11,
    }
    model = train([b"the dog saw anna"], {**SETTINGS, **words})
    pieces = [piece for piece, _ in model.pieces]
    assert sorted(pieces[4:8]) == ["▁anna", "▁dog", "▁saw", "▁the"]
    assert pieces[8:] == ["▁cat", "▁,", "▁hot"]
    assert [score for _, score in model.pieces[4:]] == sorted(
        (score for _, score in model.pieces[4:]), reverse=True
    )
    assert processor(model).encode("the cat saw okapi") == [
        pieces.index("▁the"),
        pieces.index("▁cat"),
        pieces.index("▁saw"),
        1,
    ]
