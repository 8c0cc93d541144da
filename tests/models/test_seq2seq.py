import keras
import numpy as np
import pytest

from models.decoders import RecurrentDecoder
from models.encoders import RecurrentEncoder
from models.seq2seq import Seq2Seq, shift

SOURCE = np.array([[5, 6, 7, 3], [4, 3, 0, 0]], "int32")
TARGET = np.array([[4, 5, 3, 0], [7, 6, 5, 3]], "int32")


def make(dtype="float32", **settings):
    keras.utils.set_random_seed(2)
    encoder = RecurrentEncoder(9, embedding=6, units=8, dtype=dtype)
    decoder = RecurrentDecoder(
        8, encoder.depth, encoder.final_depth, embedding=6, units=8, dtype=dtype
    )
    model = Seq2Seq(encoder, decoder, dtype=dtype, **settings)
    model.build()
    return model


def test_the_decoder_reads_the_target_one_step_late():
    np.testing.assert_array_equal(shift(TARGET), [[2, 4, 5, 0], [2, 7, 6, 5]])


def test_score_is_the_sum_of_log_probabilities():
    model = make()
    logits = keras.ops.convert_to_numpy(model({"source": SOURCE, "target": TARGET}))
    logp = logits - np.log(np.exp(logits.astype("float64")).sum(-1, keepdims=True))
    expected = [
        sum(logp[row, t, piece] for t, piece in enumerate(TARGET[row]) if piece) for row in range(2)
    ]
    np.testing.assert_allclose(model.score(SOURCE, TARGET), expected, atol=1e-4)


def test_padding_changes_no_score():
    model = make()
    alone = model.score(SOURCE[1:, :2], TARGET[1:])
    np.testing.assert_allclose(model.score(SOURCE, TARGET)[1:], alone, atol=1e-5)


def test_loss_and_metrics_are_means_over_real_pieces():
    model = make(label_smoothing=0.2)
    model.compile(optimizer="sgd")
    results = model.evaluate(
        {"source": SOURCE, "target": TARGET}, batch_size=1, verbose=0, return_dict=True
    )
    total = float(np.sum(model.score(SOURCE, TARGET)))
    assert results["nll"] == pytest.approx(-total / 7, abs=1e-5)
    logits = model({"source": SOURCE, "target": TARGET})
    hits = (keras.ops.convert_to_numpy(logits).argmax(-1) == TARGET) & (TARGET != 0)
    assert results["accuracy"] == pytest.approx(hits.sum() / 7, abs=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_it_learns_by_heart(dtype):
    model = make(dtype)
    model.compile(optimizer=keras.optimizers.Adam(0.03))
    model.fit({"source": SOURCE, "target": TARGET}, epochs=60, verbose=0)
    logits = keras.ops.convert_to_numpy(
        keras.ops.cast(model({"source": SOURCE, "target": TARGET}), "float32")
    )
    np.testing.assert_array_equal(logits.argmax(-1)[TARGET != 0], TARGET[TARGET != 0])
    assert all(w.dtype == "float32" for w in model.trainable_weights)


def test_saved_and_loaded(tmp_path):
    model = make()
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(again.score(SOURCE, TARGET), model.score(SOURCE, TARGET), atol=1e-6)
