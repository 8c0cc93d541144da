"""Suggestions for wrong names."""

import pytest

from regard.core.suggestions import closest_matches, did_you_mean, suggest

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


def test_synonyms_come_before_similar_names():
    synonyms = {"lstm": "recurrent", "batch_size": "batch_tokens"}
    matches = closest_matches("LSTM", ["lstn", "recurrent"], 2, synonyms=synonyms)
    assert matches == ["recurrent", "lstn"]
    choices = ["batch_tokens", "batch_sizes"]
    assert did_you_mean("batch_size", choices, synonyms=synonyms) == "Did you mean batch_tokens? "
    assert did_you_mean("lstm", ["transformer"], synonyms=synonyms) == ""


def test_a_dozen_choices_are_listed():
    assert suggest("x", "abcdefghijkl") == "Choices: a, b, c, d, e, f, g, h, i, j, k, l"


def test_of_more_choices_the_closest_are_listed():
    text = suggest("trainr", [*CHOICES, *"abcdefghij"])
    assert text.startswith("Did you mean Trainer? Choices: Trainer, Pusher, Predictor, ")
    assert text.endswith(" and 8 more")
