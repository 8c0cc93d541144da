"""Entropy and coverage of attention."""

import math

import numpy as np
import pytest

from regard.components.common import prediction_table
from regard.components.reporter import attention_statistics
from regard.components.reporter.attention_statistics import measure_attention, normalized_entropy
from tests.components.reporter import sample_runs
from tests.models import reference


def test_normalized_entropy():
    weights = np.array([[0.5, 0.25, 0.25, 0.0], [0.25] * 4, [0, 0, 1, 0], [0, 0, 0, 0]])
    expected = [1.5 * math.log(2) / math.log(4), 1.0, 0.0, 0.0]
    np.testing.assert_allclose(normalized_entropy(weights), expected, atol=1e-12)
    assert normalized_entropy(np.ones((1, 1)))[0] == 0.0


def test_entropy_equals_the_documented_one():
    weights = np.array([0.5, 0.0, 0.3, 0.1])
    expected = reference.normalized_entropy(weights)
    np.testing.assert_allclose(normalized_entropy(weights[None]), [expected])


def test_entropy_does_not_depend_on_the_sum_of_the_weights():
    weights = np.array([[0.2, 0.1, 0.1]])
    np.testing.assert_allclose(normalized_entropy(weights), normalized_entropy(weights * 2.5))


def test_statistics_of_text(facts):
    statistics = measure_attention(facts)
    assert statistics.rows == 20
    assert statistics.unit == "tokens"
    assert statistics.entropy.shape == (40,)
    np.testing.assert_allclose(
        statistics.coverage[:3], [0.8 + 1 / 3, 0.2 + 1 / 3, 1 / 3], atol=1e-6
    )
    assert 0 < statistics.entropy.mean() < 1
    assert statistics.row_count == "40 decoding steps"


@pytest.mark.parametrize(
    ("rows", "text"), [("source_pieces", "40 tokens of source"), ("steps", "40 steps")]
)
def test_the_rows_of_a_model_that_writes_nothing(facts, tmp_path, rows, text):
    with sample_runs.edit(tmp_path, "predictions", "predictions.json") as content:
        content["contract"]["looks"]["rows"] = rows
    assert measure_attention(facts).row_count == text


def test_the_sample_is_spread_over_all_rows(facts, monkeypatch):
    monkeypatch.setattr(attention_statistics, "MAX_ROWS", 6)
    samples = []
    rows_at = prediction_table.rows_at
    monkeypatch.setattr(
        prediction_table, "rows_at", lambda *args: samples.append(args[1]) or rows_at(*args)
    )
    assert measure_attention(facts).rows == 6
    assert samples == [[0, 3, 7, 11, 15, 19]]


def test_statistics_of_points(tmp_path):
    statistics = measure_attention(sample_runs.points_run(tmp_path))
    assert statistics.unit == "points"
    np.testing.assert_allclose(statistics.coverage, 1.0)


def test_images_have_no_coverage(tmp_path):
    assert measure_attention(sample_runs.image_run(tmp_path)).coverage is None


def test_a_model_without_attention(tmp_path):
    assert measure_attention(sample_runs.number_run(tmp_path)) is None
