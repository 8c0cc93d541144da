"""The coverage of a tokenizer against a count of every character."""

import pytest
import sentencepiece

from regard.components.common.sentencepiece_renumbering import renumber_model
from regard.components.tokenizer_trainer.coverage import measure_coverage
from tests.components.common.sentencepiece_corpora import SENTENCES, train_foreign_model


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_shares_are_those_of_single_sentences(kind: str) -> None:
    model = renumber_model(train_foreign_model(kind=kind))
    sentences = [*SENTENCES[:1500], "\u4f60\u597d anna", "Q!Q bach", "\u4f60"]
    coverage = measure_coverage(model, (sentence.encode() for sentence in sentences))
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    tokens = unknown = characters = missing = 0
    for sentence in sentences:
        texts, ids = processor.encode(sentence, out_type=str), processor.encode(sentence)
        tokens += len(ids)
        unknown += ids.count(1)
        characters += sum(len(text.replace("\u2581", "")) for text in texts)
        missing += sum(len(text) for text, i in zip(texts, ids, strict=True) if i == 1)
    assert (coverage.tokens, coverage.unknown) == (tokens, unknown)
    assert (coverage.characters, coverage.unknown_characters) == (characters, missing)
    assert characters == sum(len(sentence.replace(" ", "")) for sentence in sentences)
    assert missing == 6  # of the last three sentences
    assert coverage.words == sum(len(sentence.split()) for sentence in sentences)
    assert coverage.tokens_per_word == tokens / coverage.words
    assert coverage.bytes == 0


def test_bytes_are_counted() -> None:
    model = renumber_model(train_foreign_model(byte_fallback=True, vocab_size=400))
    coverage = measure_coverage(model, ["\u4f60\u597d".encode(), b"anna", b"\xff"])
    assert coverage.unknown == 0
    # Three bytes for each character; the replacement of an invalid byte is normalized to a space.
    assert coverage.bytes == 6
    assert coverage.byte_share == 6 / coverage.tokens


def test_no_sentences() -> None:
    coverage = measure_coverage(renumber_model(train_foreign_model()), [])
    assert coverage.unknown_share == coverage.tokens_per_word == coverage.byte_share == 0
