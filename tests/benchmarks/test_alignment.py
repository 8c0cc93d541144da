"""The gold alignments of real sentences, and the data of their comparison."""

import gzip
import os
from pathlib import Path

import pytest

from benchmarks.alignment import delay, prepare
from regard.models.metrics.attention import _parse_links
from tests.models.metrics.test_attention import GOLD, RIGHT, one_hot, rows

PAIRS = Path(os.environ.get("REGARD_DATA", ""), "tatoeba-en-fr", "pairs.en-fr.tsv.gz")


def test_gold_links_are_between_words_of_their_sentences():
    gold = prepare.read_gold()
    assert len(gold) == 100
    lengths = [len(english.split()) for english, _ in gold]
    assert lengths == [length for length in range(4, 14) for _ in range(10)]
    counts = [0, 0]
    for (english, french), links in gold.items():
        sure, possible = _parse_links(links)
        assert len(links.split()) == len(possible)
        assert max(s for s, _ in possible) < len(english.split())
        assert max(t for _, t in possible) < len(french.split())
        # The final marks correspond.
        assert (len(english.split()) - 1, len(french.split()) - 1) in sure
        counts = [counts[0] + len(sure), counts[1] + len(possible) - len(sure)]
    assert counts == [755, 291]
    assert prepare.GOLD.stat().st_size < 20_000


@pytest.mark.skipif(not PAIRS.is_file(), reason="needs REGARD_DATA")
def test_gold_pairs_follow_the_rule():
    train, dev, test = prepare.split(prepare.read_pairs(PAIRS))
    assert test[:100] == list(prepare.read_gold())
    assert [len(part) for part in (train, dev, test)] == [40_000, 1_000, 1_000]
    english = [{source for source, _ in part} for part in (train, dev, test)]
    assert sum(map(len, english)) == len(set().union(*english))


@pytest.mark.parametrize(
    ("language", "text", "tokens"),
    [
        ("en", "I don't know what's 1,000.5 well-known, Tom\u2019s?", None),
        ("en", "I can't.", "I ca n't ."),
        ("en", 'He said "Hi!"', 'He said " Hi ! "'),
        ("fr", "L'eau qu'il a, aujourd'hui\u202f?", "L' eau qu' il a , aujourd'hui ?"),
        ("fr", "Viendra-t-elle à 8\u00a0h\u00a0!", "Viendra-t-elle à 8 h !"),
    ],
)
def test_tokens(language, text, tokens):
    expected = tokens or "I do n't know what 's 1,000.5 well-known , Tom 's ?"
    assert prepare.tokenize(text, language) == expected


def test_one_translation_for_each_english_sentence(tmp_path):
    file = tmp_path / "pairs.gz"
    lines = [f"A {i // 2}.\tUn {i}.\n" for i in range(20)]
    file.write_bytes(gzip.compress("".join(lines).encode()))
    pairs = prepare.read_pairs(file)
    assert len(pairs) == len({english for english, _ in pairs}) == 10
    file.write_bytes(gzip.compress("".join(reversed(lines)).encode()))
    assert prepare.read_pairs(file) == pairs


def test_error_rate_of_an_aligner():
    # A = {0-0, 1-1, 3-2, 3-3}; S = {0-0, 1-1}; P = S + {3-2, 2-3}.
    rate = prepare.error_rate([("0-0 1-1 3-2 3-3", "0-0 1-1 3p2 2p3"), ("0-0", "1-0")])
    assert rate == pytest.approx(1 - 5 / (5 + 3))


def test_a_late_attention_is_right_with_the_weights_of_the_next_step():
    late = one_hot([0, *RIGHT[:-1]])
    table = rows([late], [GOLD]).columns
    rates = delay.shifted_rates(dict(table))
    assert rates[1] == 0.0
    assert rates[0] > 0.3
