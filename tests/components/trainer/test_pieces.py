"""From one vocabulary to another: what is copied, what is composed, what is new."""

import numpy as np
import pytest
import sentencepiece

from components.trainer.pieces import passage
from tests.models.tasks.tokenizers import trained

OLD = ["a cat sat on the mat", "the dog ran far away from home"]
NEW = [*OLD, "the dogma of cats", "homely mats, xylophones"]


def pieces(model):
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(i) for i in range(processor.get_piece_size())]


@pytest.fixture(scope="module")
def models():
    """An old vocabulary of small pieces, and a new one of larger ones."""
    return trained(OLD, vocab_size=30), trained(NEW, vocab_size=60)


def test_each_piece_comes_from_what_it_was_before(models):
    old, new = models
    found, names, before = passage(old, new), pieces(new), pieces(old)
    made = {name: [before[i] for i in ids] for name, ids in zip(names, found.parts, strict=True)}
    assert found.before == len(before)
    for name, parts in made.items():
        if name in before:
            assert parts == [name]
        elif parts:
            # The letters that the old vocabulary has, and no space that the piece has not.
            letters = "".join(c for c in name if c in before)
            assert "".join(parts) == letters, name
        else:
            assert not {*name} & {*before}, name
    assert made["x"] == []
    assert any(len(parts) > 1 for parts in made.values())
    report = found.report()
    assert report["pieces"] == len(names)
    assert report["copied"] == len({*names} & {*before})
    assert report["copied"] + report["composed"] + report["new"] == report["pieces"]
    assert report["new"] == sum(not parts for parts in made.values()) > 0
    assert report["share"] == pytest.approx(report["copied"] / report["pieces"], abs=1e-4)


def test_rows_are_copied_composed_or_left(models):
    old, new = models
    found = passage(old, new)
    random = np.random.default_rng(1)
    table = random.normal(size=(found.before + 2, 3)).astype("float32")
    fresh = random.normal(size=(len(found.parts) + 2, 3)).astype("float32")
    made = found.rows(table, fresh)
    for row, ids in enumerate(found.parts):
        if len(ids) == 1:
            np.testing.assert_array_equal(made[row], table[ids[0]])
        elif ids:
            np.testing.assert_allclose(made[row], table[list(ids)].mean(axis=0))
        else:
            np.testing.assert_array_equal(made[row], fresh[row])
    np.testing.assert_array_equal(made[-2:], table[-2:])  # beyond the pieces


def test_the_same_vocabulary_is_copied_whole(models):
    found = passage(models[0], models[0])
    table = np.arange(found.before * 2.0).reshape(-1, 2)
    np.testing.assert_array_equal(found.rows(table, np.zeros_like(table)), table)
    assert found.report()["copied"] == found.before


def test_what_is_no_text_is_not_cut(models):
    """The name of a byte, <0x41>, has nothing to do with the signs it is written in."""
    new = trained(OLD, vocab_size=290, byte_fallback=True)
    named = dict(zip(pieces(new), passage(models[0], new).parts, strict=True))
    assert named["<0x41>"] == ()
    assert named["<s>"] == (2,)


def test_a_piece_within_a_word_is_not_taken_for_its_beginning():
    old = trained(["cat at cats"], model_type="char", vocab_size=20)
    new = trained(["cat at cats"], model_type="bpe", vocab_size=12)
    before = pieces(old)
    named = {
        name: "".join(before[i] for i in ids)
        for name, ids in zip(pieces(new), passage(old, new).parts, strict=True)
    }
    assert {name: parts for name, parts in named.items() if name != parts} == {}
    assert "at" in named
    assert "\u2581cat" in named
