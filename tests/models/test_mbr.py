"""Minimum Bayes risk decoding: the choice among samples."""

import numpy as np
import pytest
from sacrebleu.metrics import CHRF

from regard.models import mbr
from regard.models.mbr import choose_sample, expected_chrf

SAMPLES = ["ein Hund läuft", "der Hund läuft", "zwei Katzen", "der Hund läuft", "der Hund rennt"]


def test_the_sample_with_the_highest_expected_chrf():
    metric = CHRF()
    utilities = [
        np.mean([metric.sentence_score(text, [other]).score for other in SAMPLES])
        for text in SAMPLES
    ]
    assert choose_sample(SAMPLES) == int(np.argmax(utilities)) == 1
    # A text that is drawn more often counts more.
    assert choose_sample([*SAMPLES, "zwei Katzen", "zwei Katzen", "zwei Katzen"]) == 2


@pytest.mark.parametrize(
    ("samples", "chosen"), [(["a"], 0), (["", ""], 0), (["", "a", "a"], 1), (["x", "y"], 0)]
)
def test_few_and_empty_samples(samples, chosen):
    assert choose_sample(samples) == chosen


def test_many_characters_are_compared_with_an_average(monkeypatch):
    texts, weights = list(dict.fromkeys(SAMPLES)), np.array([0.2, 0.4, 0.2, 0.2])
    exact = expected_chrf(texts, weights)
    monkeypatch.setattr(mbr, "MAX_PAIR_CHARACTERS", 0)
    average = expected_chrf(texts, weights)
    assert not np.allclose(exact, average)
    assert exact.argmax() == average.argmax()
