"""Suggestions for misspelt names."""

import pytest

from regard.models.suggestions import closest_matches, did_you_mean

CHOICES = ["Trainer", "Pusher", "Predictor"]


@pytest.mark.parametrize(
    ("name", "n", "text"),
    [
        ("trainr", 1, "Did you mean Trainer? "),
        ("predicto", 2, "Did you mean Predictor? "),
        ("usher", 1, "Did you mean Pusher? "),
        ("xyz", 1, ""),
        (3, 1, ""),
    ],
)
def test_did_you_mean(name, n, text):
    assert did_you_mean(name, CHOICES, n) == text


def test_closest_matches_come_first():
    assert closest_matches("train_b", ["train_c", "train_b1"], 2) == ["train_b1", "train_c"]
