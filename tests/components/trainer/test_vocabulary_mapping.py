"""Mapping a vocabulary to another one: copied, composed and new tokens."""

import numpy as np
import pytest
import sentencepiece

from regard.components.trainer.vocabulary_mapping import map_vocabulary
from tests.models.tasks.tokenizers import trained
from tests.tolerances import assert_close

OLD = ["a cat sat on the mat", "the dog ran far away from home"]
NEW = [*OLD, "the dogma of cats", "homely mats, xylophones"]


def tokens_of(model):
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(i) for i in range(processor.get_piece_size())]


@pytest.fixture(scope="module")
def models():
    """An old vocabulary of short tokens, and a new one of longer ones."""
    return trained(OLD, vocab_size=30), trained(NEW, vocab_size=60)


def test_each_token_is_copied_composed_or_new(models):
    old, new = models
    mapping, names, old_names = map_vocabulary(old, new), tokens_of(new), tokens_of(old)
    sources = {
        name: [old_names[i] for i in ids] for name, ids in zip(names, mapping.sources, strict=True)
    }
    assert mapping.old_size == len(old_names)
    for name, parts in sources.items():
        if name in old_names:
            assert parts == [name]
        elif parts:
            # The letters of the old vocabulary, without a word mark that the token lacks.
            assert "".join(parts) == "".join(c for c in name if c in old_names), name
        else:
            assert not {*name} & {*old_names}, name
    assert sources["x"] == []
    assert any(len(parts) > 1 for parts in sources.values())
    report = mapping.report()
    assert report["tokens"] == len(names)
    assert report["copied"] == len({*names} & {*old_names})
    assert report["copied"] + report["composed"] + report["new"] == report["tokens"]
    assert report["new"] == sum(not parts for parts in sources.values()) > 0
    assert report["share"] == pytest.approx(report["copied"] / report["tokens"], abs=1e-4)


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_are_copied_averaged_or_kept(models, axis):
    mapping = map_vocabulary(*models)
    random = np.random.default_rng(1)
    table = random.normal(size=(mapping.old_size + 2, 3)).astype("float32")
    fresh = random.normal(size=(len(mapping.sources) + 2, 3)).astype("float32")
    before = fresh.copy()
    if axis:
        rows = mapping.map_rows(table.T, fresh.T, axis).T
    else:
        rows = mapping.map_rows(table, fresh)
    for row, ids in enumerate(mapping.sources):
        if len(ids) == 1:
            np.testing.assert_array_equal(rows[row], table[ids[0]])
        elif ids:
            assert_close(rows[row], table[list(ids)].mean(axis=0))
        else:
            np.testing.assert_array_equal(rows[row], fresh[row])
    np.testing.assert_array_equal(rows[-2:], table[-2:])  # rows of no token
    np.testing.assert_array_equal(fresh, before)


def test_names_of_special_tokens_are_not_text(models):
    """The name of a byte, <0x41>, is unrelated to its letters."""
    new = trained(OLD, vocab_size=290, byte_fallback=True)
    sources = dict(zip(tokens_of(new), map_vocabulary(models[0], new).sources, strict=True))
    assert sources["<0x41>"] == ()
    assert sources["<s>"] == (2,)


def test_a_token_inside_a_word_has_no_word_mark():
    old = trained(["cat at cats"], model_type="char", vocab_size=20)
    new = trained(["cat at cats"], model_type="bpe", vocab_size=12)
    old_names = tokens_of(old)
    texts = {
        name: "".join(old_names[i] for i in ids)
        for name, ids in zip(tokens_of(new), map_vocabulary(old, new).sources, strict=True)
    }
    assert {name: text for name, text in texts.items() if name != text} == {}
    assert "at" in texts
    assert "\u2581cat" in texts
