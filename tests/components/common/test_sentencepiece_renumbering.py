"""Renumbered SentencePiece models: their ids, and that they segment and decode as before."""

import functools
import gzip
import os
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.components.common.sentencepiece_models import (
    BYTE,
    CONTROL,
    NORMAL,
    UNIGRAM,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    parse_model_fields,
)
from regard.components.common.sentencepiece_renumbering import SPECIAL_TOKENS, renumber_model
from regard.components.common.tokenizers import create_tokenizers
from regard.components.tokenizer_trainer.sentencepiece_training import parse_model
from regard.models.protected_spans import protection_symbols, symbol
from regard.models.tags import user_symbols
from tests.components.common.sentencepiece_corpora import SENTENCES, TEXTS, train_foreign_model

KINDS = ["unigram", "bpe", "unigram bytes", "bpe bytes"]


@functools.cache
def foreign(kind: str) -> bytes:
    name, _, has_bytes = kind.partition(" ")
    size = 400 if has_bytes else 120
    symbols = ["<date>", "\u2581<x>"]
    return train_foreign_model(
        kind=name, byte_fallback=bool(has_bytes), vocab_size=size, user_defined_symbols=symbols
    )


def load(model: bytes) -> sentencepiece.SentencePieceProcessor:
    return sentencepiece.SentencePieceProcessor(model_proto=model)


def names(model: bytes) -> list[str]:
    return [piece.piece for piece in parse_model_fields(model).pieces]


@functools.cache
def table(kind: str) -> tuple[str, ...]:
    """Every second token of the model, in another order, and tokens that it does not have."""
    ordinary = [text for text in names(foreign(kind)) if text not in SPECIAL_TOKENS]
    absent = ["\u2581madeup", ">>de<<", "q", "\u4f60", "\u4f60\u597d", "ann", "naberg"]
    listed = [*ordinary[::-2], *absent, "\u2581g", "\u2581annabergs"]
    return tuple(dict.fromkeys(listed))


@functools.cache
def processors(kind: str) -> tuple[Any, list[Any]]:
    model = foreign(kind)
    return load(model), [load(renumber_model(model)), load(renumber_model(model, table(kind)))]


def assert_same_segmentation(kind: str, text: str) -> None:
    original, others = processors(kind)
    pieces = original.encode(text, out_type=str)
    decoded = original.decode(original.encode(text))
    for other in others:
        assert other.encode(text, out_type=str) == pieces
        assert other.decode(other.encode(text)) == decoded


@pytest.mark.parametrize("kind", KINDS)
def test_segmentation_and_decoding_stay(kind: str) -> None:
    for text in TEXTS:
        assert_same_segmentation(kind, text)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=200)
@given(data=st.data())
def test_segmentation_and_decoding_of_random_text_stay(kind: str, data: st.DataObject) -> None:
    words = st.sampled_from(["anna", "berg", "<date>", "<x>", " ", "<s>", "\u4f60\u597d", "q"])
    text = "".join(data.draw(st.lists(words | st.text(max_size=3), max_size=20)))
    assert_same_segmentation(kind, text)


@pytest.mark.parametrize("kind", KINDS)
def test_segmentation_of_real_text_stays(kind: str) -> None:
    if not (data := os.environ.get("REGARD_DATA")):
        pytest.skip("REGARD_DATA is not set")
    path = Path(data, "multi30k", "test_2016_flickr.de.gz")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = file.read().splitlines()
    for line in lines:
        assert_same_segmentation(kind, line)
    # A model of this text, whose segmentation is less uniform.
    name, _, has_bytes = kind.partition(" ")
    model = train_foreign_model(lines, name, vocab_size=2000, byte_fallback=bool(has_bytes))
    original, other = load(model), load(renumber_model(model))
    tokens = {*names(model)[300::3], "\u2581Eine", "\u2581Ma", "nnes", "chen"}
    shuffled = load(renumber_model(model, sorted(tokens)))
    pieces = original.encode(lines, out_type=str)
    assert other.encode(lines, out_type=str) == pieces
    assert shuffled.encode(lines, out_type=str) == pieces


@pytest.mark.parametrize("kind", ["char", "word"])
@pytest.mark.parametrize("tokens", [None, ("q", "\u2581unknown", "x")])
def test_models_of_characters_and_words(kind: str, tokens: tuple[str, ...] | None) -> None:
    model = train_foreign_model(kind=kind)
    original, other = load(model), load(renumber_model(model, tokens))
    for text in ["anna goes from unknown to q x", *TEXTS]:
        assert other.encode(text, out_type=str) == original.encode(text, out_type=str)
        assert other.decode(other.encode(text)) == original.decode(original.encode(text))


@pytest.mark.parametrize("kind", KINDS)
def test_tensorflow_text_reads_the_model(kind: str) -> None:
    import tensorflow_text

    original, _ = processors(kind)
    tokenizer = create_tokenizers({"source": renumber_model(foreign(kind), table(kind))})["source"]
    reference = tensorflow_text.SentencepieceTokenizer(foreign(kind))
    ids = tokenizer.tokenize(TEXTS)
    texts = [[piece.decode() for piece in row] for row in tokenizer.id_to_string(ids).to_list()]
    plain = [original.encode_as_ids(text) for text in TEXTS]
    unknown = original.unk_id()
    expected = [
        [SPECIAL_TOKENS[1] if i == unknown else original.id_to_piece(i) for i in row]
        for row in plain
    ]
    assert texts == expected
    decoded = tokenizer.detokenize(ids).numpy().tolist()
    assert decoded == reference.detokenize(reference.tokenize(TEXTS)).numpy().tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens(kind: str) -> None:
    model = renumber_model(foreign(kind))
    fields, before = parse_model_fields(model), parse_model_fields(foreign(kind))
    kinds = [CONTROL, UNKNOWN, CONTROL, CONTROL]
    assert [(p.piece, p.type) for p in fields.pieces[:4]] == list(
        zip(SPECIAL_TOKENS, kinds, strict=True)
    )
    processor = load(model)
    ids = [processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id()]
    assert ids == [0, 1, 2, 3]
    spec = fields.trainer_spec
    assert [spec.pad_id, spec.unk_id, spec.bos_id, spec.eos_id] == ids
    assert (spec.pad_piece, spec.unk_piece, spec.bos_piece, spec.eos_piece) == SPECIAL_TOKENS
    assert spec.vocab_size == len(fields.pieces) == len(before.pieces) + 1
    # unk, bos and eos are the first three tokens of the original.
    assert list(fields.pieces[4:]) == list(before.pieces[3:])


def test_own_names_of_special_tokens() -> None:
    model = train_foreign_model(
        pad_id=5,
        bos_id=-1,
        pad_piece="[PAD]",
        eos_piece="[SEP]",
        unk_piece="[UNK]",
        unk_surface="?!",
        control_symbols=["[MASK]"],
    )
    renumbered = renumber_model(model)
    texts = names(renumbered)
    assert texts[:4] == list(SPECIAL_TOKENS)
    assert "[MASK]" in texts
    assert not {"[PAD]", "[SEP]", "[UNK]"} & set(texts)
    processor = load(renumbered)
    assert processor.decode([1]) == "?!"
    text = "anna [UNK] [SEP] [MASK]"
    assert processor.encode(text, out_type=str) == load(model).encode(text, out_type=str)
    assert renumber_model(renumbered) == renumbered


def test_every_other_field_stays() -> None:
    model = parse_model(
        train_foreign_model(
            normalization_rule_name="nmt_nfkc_cf", byte_fallback=True, vocab_size=400
        )
    )
    model.denormalizer_spec.name = "own"
    model.denormalizer_spec.precompiled_charsmap = b"\0\1\2"
    model.trainer_spec.unk_surface = " ?? "
    # Fields of a later version of SentencePiece: 199 in a token and in the model.
    later = b"\xba\x0c\x03abc"
    model.pieces[5].MergeFromString(later)
    model.MergeFromString(later)
    renumbered = parse_model(renumber_model(model.SerializeToString()))
    expected = type(model)()
    expected.CopyFrom(model)
    spec = expected.trainer_spec
    spec.pad_id, spec.unk_id, spec.bos_id, spec.eos_id = 0, 1, 2, 3
    spec.pad_piece, spec.unk_piece, spec.bos_piece, spec.eos_piece = SPECIAL_TOKENS
    spec.vocab_size = len(model.pieces) + 1
    for message in (expected, renumbered):
        texts = {piece.piece: piece for piece in message.pieces}
        special = [texts.pop(text, None) for text in SPECIAL_TOKENS]
        assert special[1].type == UNKNOWN
        message.ClearField("pieces")
        message.pieces.extend(texts[text] for text in sorted(texts))
    assert renumbered.SerializeToString() == expected.SerializeToString()
    assert later in renumbered.SerializeToString()
    assert renumbered.normalizer_spec.precompiled_charsmap
    assert sum(piece.type == BYTE for piece in renumbered.pieces) == 256


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_gives_the_ids(kind: str) -> None:
    renumbered = parse_model_fields(renumber_model(foreign(kind), table(kind)))
    before = {piece.piece: piece for piece in parse_model_fields(foreign(kind)).pieces}
    end = 4 + len(table(kind))
    lowest = min(piece.score for piece in before.values())
    for text, piece in zip(table(kind), renumbered.pieces[4:end], strict=True):
        if text in before:
            assert piece == before[text]
        elif kind.startswith("unigram"):
            assert (piece.piece, piece.type) == (text, UNUSED)
            assert piece.score < lowest
        else:
            assert (piece.piece, piece.type) == (text, UNUSED) or piece.type == CONTROL
    rest = [text for text in before if text not in {*table(kind), *SPECIAL_TOKENS}]
    assert [piece.piece for piece in renumbered.pieces[end:]] == rest
    processor = load(renumbered.SerializeToString())
    assert processor.decode([4 + table(kind).index("\u2581madeup")]) == "madeup"


def test_bpe_does_not_merge_the_tokens_of_a_table() -> None:
    """An unused piece of BPE that can be merged would make the merge of ``abcd`` possible."""
    model = parse_model_fields(train_foreign_model(kind="bpe"))
    template = next(piece for piece in model.pieces if piece.type == NORMAL)
    del model.pieces[3:]
    for text, score in {"cd": -1.0, "abcd": -2.0, "a": -3.0, "b": -4.0, "\u2581": -5.0}.items():
        piece = model.pieces.add()
        piece.CopyFrom(template)
        piece.piece, piece.score = text, score
    original = load(model.SerializeToString())
    other = load(renumber_model(model.SerializeToString(), ["ab", "xyzxyz", "z"]))
    expected = ["\u2581", "a", "b", "cd", "z"]
    assert original.encode("abcdz", out_type=str) == expected
    assert other.encode("abcdz", out_type=str) == expected
    assert other.id_to_piece(5) == "xyzxyz"
    assert other.is_unused(5)
    assert other.piece_to_id("ab") == other.piece_to_id("z") == 1
    assert other.is_control(4)
    assert other.is_control(6)


@pytest.mark.parametrize("kind", KINDS)
def test_symbols_are_always_one_token(kind: str) -> None:
    own = protection_symbols()
    symbols = ["<date>", *user_symbols(["de"], kind), *own, "anna"]
    model = renumber_model(foreign(kind), symbols=symbols)
    processor = load(model)
    size = len(names(foreign(kind))) + 1
    assert processor.encode("<de> Hannanna", out_type=str)[0] == "\u2581<de>"
    assert "anna" in processor.encode("xannax", out_type=str)
    assert symbol(3) in processor.encode(f"x{symbol(3)}x", out_type=str)
    added = [text for text in symbols if text not in names(foreign(kind))]
    assert names(model)[size:] == added
    fields = parse_model_fields(model)
    types = {piece.piece: (piece.type, piece.score) for piece in fields.pieces}
    assert all(types[text] == (USER_DEFINED, 0.0) for text in symbols)
    assert set(symbols) <= set(fields.trainer_spec.user_defined_symbols)
    # Text without symbols is segmented as before.
    text = "bela goes from doraheim."
    assert processor.encode(text, out_type=str) == load(foreign(kind)).encode(text, out_type=str)


def test_a_symbol_takes_the_id_of_the_table() -> None:
    model = renumber_model(foreign("unigram"), [">>de<<", "b"], [">>de<<"])
    assert ">>de<<" in load(model).encode(">>de<< anna", out_type=str)
    assert load(model).piece_to_id(">>de<<") == 4


@pytest.mark.parametrize(
    ("tokens", "symbols", "culprit"),
    [
        (["a", "b", "a"], [], "'a'"),
        (["a", "<pad>"], [], "'<pad>'"),
        (["<s>"], [], "'<s>'"),
        (["<unk>"], [], "'<unk>'"),
        (["a", ""], [], "empty"),
        (["a\0"], [], "zero"),
        (None, ["<x>", "<x>"], "'<x>'"),
        (None, ["</s>"], "'</s>'"),
        (None, [""], "empty"),
        (None, ["<0x41>"], "'<0x41>'"),
    ],
)
def test_clashing_names(tokens: list[str] | None, symbols: list[str], culprit: str) -> None:
    with pytest.raises(ValueError, match=culprit):
        renumber_model(foreign("bpe bytes"), tokens, symbols)


@pytest.mark.parametrize("text", ["<pad>", "<s>", "anna"])
def test_an_ordinary_piece_with_a_special_or_repeated_name(text: str) -> None:
    model = parse_model_fields(foreign("unigram"))
    model.pieces.add(piece="anna")
    model.pieces.add(piece=text)
    with pytest.raises(ValueError, match=text):
        renumber_model(model.SerializeToString())


def test_models_without_a_single_unknown_piece() -> None:
    model = parse_model_fields(foreign("unigram"))
    model.pieces[0].type = CONTROL
    with pytest.raises(ValueError, match="0 unknown"):
        renumber_model(model.SerializeToString())
    with pytest.raises(ValueError, match="0 unknown"):
        renumber_model(b"")


@pytest.mark.parametrize("content", [b"<!DOCTYPE html><html>", b"<unk>\t0\n<s>\t0\n", b"\x0a\xff"])
def test_other_files(content: bytes) -> None:
    with pytest.raises(ValueError):
        renumber_model(content)


def test_invalid_utf8_in_a_piece() -> None:
    with pytest.raises(ValueError):
        renumber_model(foreign("unigram") + b"\x0a\x03\x0a\x01\xff")


def test_odd_names_stay() -> None:
    """Control characters, spaces and long names."""
    model = parse_model_fields(foreign("unigram"))
    odd = ["\x01\n", "a b", "x" * 5000, "\ud7ff", "\U0010ffff"]
    for text in odd:
        model.pieces.add(piece=text, score=-20.0)
    renumbered = renumber_model(model.SerializeToString())
    assert names(renumbered)[-len(odd) :] == odd
    original, other = load(model.SerializeToString()), load(renumbered)
    for text in ["a\x01\nb", "x" * 5001, *SENTENCES[:3]]:
        assert other.encode(text, out_type=str) == original.encode(text, out_type=str)


def test_a_model_with_only_the_unknown_piece_and_another() -> None:
    model = parse_model_fields(foreign("unigram"))
    del model.pieces[1:]
    model.pieces.add(piece="a", score=-1.0)
    renumbered = load(renumber_model(model.SerializeToString()))
    assert renumbered.get_piece_size() == 5
    assert renumbered.encode("aab") == [1, 4, 4, 1]
    assert parse_model_fields(model.SerializeToString()).trainer_spec.model_type == UNIGRAM
