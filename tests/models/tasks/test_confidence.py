"""The output ``confidence`` of exported models."""

import numpy as np
import pytest
import tensorflow as tf

from regard.components.settings.trainer import TrainerConfig
from regard.components.trainer.export import RebuiltModel, export, write_warm_start
from regard.models import tasks
from regard.models.calibration import LogisticModel
from regard.models.tasks.confidence import Calibration, output_features
from regard.serving import saved_model
from tests.models.tasks.exported import build, config, created
from tests.models.tasks.tokenizers import write_tokenizers

SOURCES = ["a cat sat", "the dog ran far away", "", "a"]
MODEL = LogisticModel((1.5, -0.25, -2.0, 0.5), 0.75)
CALIBRATION = Calibration(MODEL, "chrf", 50.0, (1,) * 10, 0.05)


def features_reference(score, alignment):
    """The features of an output, in float64, from its attention without padding."""
    steps, size = alignment.shape
    logarithms = np.log(np.where(alignment > 0, alignment, 1.0))
    entropy = -(alignment * logarithms).sum(axis=1).mean() / np.log(max(size, 2))
    coverage = np.minimum(alignment.sum(axis=0), 1.0).mean()
    return np.array([score / steps, np.log(steps), entropy, coverage])


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    folder = tmp_path_factory.mktemp("confidence")
    write_tokenizers(folder)
    return created(folder, save=False).module


@pytest.fixture(scope="module")
def calibrated(module):
    """The signatures and the contract with a calibration, and those without one."""
    plain = module.served_model()
    module.calibration = CALIBRATION
    yield module.served_model(), plain
    module.calibration = None


def test_features_of_padded_rows():
    generator = np.random.default_rng(0)
    rows = [generator.dirichlet(np.ones(4), 3), generator.dirichlet(np.ones(2), 1), np.ones((2, 1))]
    padded = np.zeros((3, 3, 4))
    for number, row in enumerate(rows):
        padded[number, : row.shape[0], : row.shape[1]] = row
    scores, lengths, sizes = [-3.0, -0.5, -1.0], [3, 1, 2], [4, 2, 1]
    features = output_features(
        tf.constant(scores), tf.constant(lengths), tf.constant(padded, tf.float32), sizes
    )
    expected = [features_reference(score, row) for score, row in zip(scores, rows, strict=True)]
    np.testing.assert_allclose(features, expected, atol=1e-6)


def test_features_of_impossible_and_blank_outputs():
    alignment = tf.zeros((3, 2, 2))  # of a model without attention
    features = output_features(tf.constant([-1e9, np.nan, -1.0]), [2, 1, 1], alignment, [2, 1, 0])
    np.testing.assert_allclose(features[0], [-50, np.log(2), 0, 0], atol=1e-6)
    assert np.isnan(features[1]).all()
    np.testing.assert_allclose(features[2], [-1, 0, 0, 0], atol=1e-6)


def test_confidence_of_both_signatures(calibrated):
    served, _ = calibrated
    outputs = {name: value.numpy() for name, value in served.signatures["align"](SOURCES).items()}
    confidence = served.signatures["serving_default"](tf.constant(SOURCES))["confidence"].numpy()
    np.testing.assert_allclose(confidence, outputs["confidence"], rtol=1e-5)
    assert np.isnan(confidence).tolist() == [False, False, True, False]  # a blank source
    for row in (0, 1, 3):
        target, source = outputs["target_length"][row], outputs["source_length"][row]
        alignment = outputs["alignment"][row, :target, :source].astype(np.float64)
        features = features_reference(outputs["score"][row], alignment)
        assert confidence[row] == pytest.approx(MODEL.probability(features), abs=1e-5)


def test_the_contract_and_other_signatures(calibrated):
    served, plain = calibrated
    entry = {"output": "confidence", "metric": "chrf", "good": 50.0}
    assert served.contract["confidence"] == {**entry, "histogram": [1] * 10, "max_drift": 0.05}
    assert plain.contract["confidence"] is None
    for name, signature in served.contract["signatures"].items():
        outputs = dict(signature["outputs"])
        assert (outputs.pop("confidence", None) == []) == (name in ("serving_default", "align"))
        assert outputs == plain.contract["signatures"][name]["outputs"]


def test_the_reference_of_a_training_row(module):
    ids = module.tokenizers["target"].tokenize(["eine Katze"])[0].numpy()
    assert module.raw_reference({"target_ids": ids}) == "eine Katze"
    assert module.raw_reference({"target_ids": ids[:0]}) == ""


def test_an_export_with_a_calibration(tmp_path, monkeypatch):
    write_tokenizers(tmp_path)
    settings = TrainerConfig(task="translation", **config(), serving={"confidence": {"good": 40}})
    model, tokenizers = build(tmp_path, settings, 3)
    rows, received = [{"source_ids": np.array([4, 5])}], []

    def calibrate(module, calibration_rows, section):
        received.append((list(calibration_rows), section.good))
        return CALIBRATION

    monkeypatch.setattr("regard.components.trainer.export.calibrate", calibrate)
    network = tasks.get_network("translation")
    export(model, network, settings, tokenizers, tmp_path / "m", calibration_rows=iter(rows))
    assert received == [(rows, 40)]
    loaded = saved_model.load(tmp_path / "m")
    short, blank = loaded.predict("serving_default", [{"source": "a cat"}, {"source": " "}])
    assert 0 < short.confidence < 1
    assert blank.confidence is None
    assert loaded.contract["confidence"]["metric"] == "chrf"
    # With another search, the calibration does not hold.
    serialized = {side: (tmp_path / f"{side}.model").read_bytes() for side in tokenizers}
    write_warm_start(tmp_path / "m", model, settings, serialized)
    assert RebuiltModel(tmp_path / "m", "m").served().contract["confidence"] is None
