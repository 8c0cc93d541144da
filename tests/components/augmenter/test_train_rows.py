"""The steps that change the train split, without a model."""

import numpy as np
import pytest
import tensorflow as tf

from regard.components.augmenter import train_rows
from regard.components.augmenter.train_rows import dual_cross_entropy, keep_best
from regard.components.common.artifact_files import split_shards
from regard.components.data.example_rows import read_records
from regard.components.settings.augmentation import FilterConfig
from regard.components.settings.trainer import StartingModel
from regard.core.errors import UserError
from tests import fake_models
from tests.fake_models import FEATURES


def row(text, line):
    return {"source": text, "target": f"{text}!", "line": line}


def test_each_model_of_a_filter_has_its_own_tag(tmp_path):
    passes = []

    def score(model_pass, paths):
        passes.append(model_pass)
        return [0.1 * number for number in range(4)]

    source = fake_models.examples(tmp_path / "e", [[row(text, 1) for text in "abcd"]])
    models = {
        f"filter.{key}": StartingModel(model=f"{key}@1", path="", digest="")
        for key in ("forward", "reverse")
    }
    rows = train_rows.TrainRows(score, models, str(tmp_path), FEATURES, [], None)
    config = FilterConfig(
        forward="f@1", reverse="r@2", forward_tag="en-de", reverse_tag="de-en", keep=0.5
    )
    _, text = rows.filter(split_shards(f"{source.uri}/Split-test"), config)
    first, second = passes
    assert (first.tag, first.inputs) == ("en-de", {"source": "source", "target": "target"})
    assert (second.tag, second.inputs) == ("de-en", {"source": "target", "target": "source"})
    assert "by forward@1 with the tag en-de and reverse@1 with the tag de-en, with" in text


def test_dual_cross_entropy_is_that_of_the_paper():
    random = np.random.default_rng(1)
    forward, reverse = random.uniform(0, 9, (2, 50))
    expected = [abs(a - b) + 0.5 * (a + b) for a, b in zip(forward, reverse, strict=True)]
    np.testing.assert_allclose(dual_cross_entropy(forward, reverse), expected)
    assert (dual_cross_entropy(np.array([np.inf, 1]), np.array([np.inf, np.inf])) == np.inf).all()


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.5, [1, 1, 0, 0]), (0.75, [1, 1, 1, 0]), (0.01, [0, 1, 0, 0]), (1.0, [1, 1, 1, 0])],
)
def test_the_first_of_equal_pairs_is_kept(share, expected):
    scores = np.array([2.0, 1.0, 2.0, np.inf])
    assert keep_best(scores, share).tolist() == list(map(bool, expected))


@pytest.mark.parametrize(("share", "count"), [(0.07, 7), (0.14, 14), (0.28, 28), (0.555, 56)])
def test_the_share_is_exact(share, count):
    assert keep_best(np.arange(100.0), share).sum() == count


def test_pairs_without_any_score_are_an_error():
    with pytest.raises(UserError, match="no pair a score"):
        keep_best(np.array([np.inf]), 1.0)


def test_a_rewritten_record_keeps_its_other_features(tmp_path):
    """With the same bytes for the same row, as in files of CorpusGen."""
    rows = fake_models.examples(tmp_path / "e", [[row("abc", 7) | {"domain": "news"}]])
    (path,) = split_shards(f"{rows.uri}/Split-test")
    (record,) = read_records(path)
    changed = train_rows._replace(record, "target", "XY")
    assert changed == train_rows._replace(record, "target", "XY")
    features = tf.train.Example.FromString(changed).features.feature
    assert features["target"].bytes_list.value == [b"XY"]
    assert features["domain"].bytes_list.value == [b"news"]
    assert features["line"].int64_list.value == [7]
