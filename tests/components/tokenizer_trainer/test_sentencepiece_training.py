"""Training of SentencePiece models with all settings, and added words."""

import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from regard.components.settings.tokenizer import TokenizerConfig
from regard.components.tokenizer_trainer.sentencepiece_training import (
    TrainedTokenizer,
    VocabularySizeError,
    read_words,
    train_tokenizer,
)
from regard.core.errors import UserError

NAMES = ["anna", "bela", "carla", "dora", "emil", "falk", "gero", "hanna"]
ENDINGS = ["bach", "berg", "burg", "dorf", "feld", "hausen", "heim", "ingen", "stadt", "tal"]
CORPUS = [
    f"{name} goes from {start}{one} to {end}{two} on day {number}".encode()
    for number, name in enumerate(NAMES)
    for start, one in zip(NAMES, ENDINGS, strict=False)
    for end in NAMES
    for two in ENDINGS
]


def train(sentences: Iterable[bytes] = CORPUS, **settings: Any) -> TrainedTokenizer:
    config = TokenizerConfig.model_validate({"vocab_size": 60, **settings})
    return train_tokenizer(sentences, config)


def processor(model: TrainedTokenizer) -> sentencepiece.SentencePieceProcessor:
    return sentencepiece.SentencePieceProcessor(model_proto=model.proto)


@pytest.mark.parametrize("kind", ["unigram", "bpe", "char", "word"])
def test_special_ids_and_round_trip(kind: str) -> None:
    model = processor(train(type=kind, vocab_size=150, vocab_limit="soft"))
    assert [model.pad_id(), model.unk_id(), model.bos_id(), model.eos_id()] == [0, 1, 2, 3]
    text = "anna goes from annabach to emilberg on day 3"
    assert model.decode(model.encode(text)) == text


def test_tokens_are_in_the_order_of_ids() -> None:
    model = train()
    assert len(model.tokens) == 60
    assert [token for token, _ in model.tokens[:4]] == ["<pad>", "<unk>", "<s>", "</s>"]


def test_hard_limit_gives_the_largest_size() -> None:
    with pytest.raises(VocabularySizeError) as caught:
        train(vocab_size=5000, vocab_limit="hard")
    size = caught.value.limit
    assert len(train(vocab_size=size, vocab_limit="hard").tokens) == size


def test_soft_limit_gives_fewer() -> None:
    assert len(train(vocab_size=5000).tokens) < 5000


def test_too_small_size_gives_the_smallest_size() -> None:
    with pytest.raises(VocabularySizeError) as caught:
        train(vocab_size=10)
    size = caught.value.limit + 1
    assert len(train(vocab_size=size, vocab_limit="hard").tokens) == size


def test_user_defined_symbols() -> None:
    model = processor(train(user_defined_symbols=["<date>"]))
    assert "<date>" in model.encode("on <date> anna", out_type=str)


def test_normalization() -> None:
    folding = processor(train(normalization="nfkc_cf"))
    assert folding.encode("ANNA") == folding.encode("anna")
    exact = processor(train(normalization="identity"))
    assert exact.encode("ANNA") != exact.encode("anna")


def test_byte_fallback_keeps_unknown_characters() -> None:
    model = processor(train(vocab_size=340, byte_fallback=True, vocab_limit="soft"))
    assert model.decode(model.encode("anna 東")) == "anna 東"
    without = processor(train())
    assert without.decode(without.encode("anna 東")) != "anna 東"


def test_no_terminal_output(capfd: pytest.CaptureFixture[str]) -> None:
    train()
    with pytest.raises(VocabularySizeError):
        train(vocab_size=5000, vocab_limit="hard")
    assert capfd.readouterr() == ("", "")


def test_split_punctuation() -> None:
    lines = [b"The dog, it ran away. Don't!"] * 5
    words = {"type": "word", "vocab_limit": "soft", "normalization": "nmt_nfkc_cf"}
    original, split = (
        processor(train(lines, **words, punctuation=choice)) for choice in ("keep", "split")
    )
    assert original.encode("THE dog, away.", out_type=str) == ["▁the", "▁dog,", "▁away."]
    expected = ["▁the", "▁dog", "▁,", "▁away", "▁.", "▁don", "▁'", "▁t"]
    assert split.encode("THE dog, away.\u00a0don't", out_type=str) == expected


def test_model_does_not_hold_a_temporary_path() -> None:
    words = {"type": "word", "vocab_limit": "soft", "punctuation": "split"}
    one, other = (train([b"the dog, it ran."], **words).proto for _ in range(2))
    assert one == other
    assert b".tsv" not in one


def test_added_words(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("the 1 2\nAnna 1 2\ncat 1 2\n, 1 2\nhot dog 1 2\nzebra 1 2\nokapi 1 2\n")
    settings = {"type": "word", "vocab_size": 11, "normalization": "nmt_nfkc_cf"}
    model = train([b"the dog saw anna"], **settings, vocab_limit="hard", word_list=str(path))
    tokens = [token for token, _ in model.tokens]
    assert sorted(tokens[4:8]) == ["▁anna", "▁dog", "▁saw", "▁the"]
    assert tokens[8:] == ["▁cat", "▁,", "▁hot"]
    scores = [score for _, score in model.tokens[4:]]
    assert scores == sorted(scores, reverse=True)
    ids = [tokens.index(token) for token in ("▁the", "▁cat", "▁saw")]
    assert processor(model).encode("the cat saw okapi") == [*ids, 1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cat\ndog\nzebra\n", ["cat", "dog", "zebra"]),
        ("cat 0.1 0.2\ndog 1 2\n", ["cat", "dog"]),
        ("2 3\ncat 1 2 3\ndog 4 5 6\n", ["cat", "dog"]),  # word2vec's
        ("42\n43\n", ["42", "43"]),
        ("cat dog\nzebra\n", ["cat", "zebra"]),
    ],
)
@pytest.mark.parametrize("is_gzip", [False, True])
def test_read_words(text: str, words: list[str], is_gzip: bool, tmp_path: Path) -> None:
    path = tmp_path / ("words.txt.gz" if is_gzip else "words.txt")
    path.write_bytes(gzip.compress(text.encode()) if is_gzip else text.encode())
    assert list(read_words(str(path))) == words


def test_missing_word_list(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        list(read_words(str(tmp_path / "none.txt")))
    assert "none.txt" in str(caught.value.where)
