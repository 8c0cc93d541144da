import keras
import numpy as np
import pytest

from models.layers.dropouts import DROPOUT_TYPES, drawn, sequence_dropout


@pytest.mark.parametrize("kind", DROPOUT_TYPES)
def test_a_sequence_loses_the_same_or_something_new_at_every_step(kind):
    dropout = sequence_dropout(0.5, kind, seed=1)
    dropped = np.asarray(dropout(np.ones((40, 6, 8), "float32"), training=True))
    assert set(np.unique(dropped)) == {0.0, 2.0}
    assert (dropped == dropped[:, :1]).all() == (kind == "variational")
    assert not (dropped == dropped[:1]).all()  # every row has its own
    assert dropped.mean() == pytest.approx(1.0, abs=0.15)
    np.testing.assert_array_equal(dropout(np.ones((2, 3, 4))), np.ones((2, 3, 4)))


def test_a_mask_keeps_the_mean():
    mask = drawn(keras.layers.Dropout(0.25, seed=2), (200, 50), "float32")
    np.testing.assert_allclose(np.unique(mask), [0, 4 / 3], atol=1e-6)
    assert np.mean(mask) == pytest.approx(1.0, abs=0.03)


def test_an_unknown_type_is_refused():
    with pytest.raises(ValueError, match=r"dropout_type 'varied'. Choices: plain, variational"):
        sequence_dropout(0.1, "varied")
