import numpy as np
import pytest

from regard.models.encoders import TextConvolutionEncoder
from tests.models.tensors import fill, round_trip, weights_by_name
from tests.tolerances import assert_close

IDS = np.array([[5, 6, 7, 8, 3], [4, 3, 0, 0, 0]], "int32")


def reference(encoder, ids):
    """Gehring et al. 2017, §3.2 and §3.4, for one row without padding, in float64."""
    weights = weights_by_name(encoder)
    table = weights["embedding/table"]
    x = table[ids] * np.sqrt(table.shape[1])
    x = x @ weights["project/kernel"] + weights["project/bias"]
    size = encoder.settings["kernel_size"]
    for i in range(encoder.settings["layers"]):
        kernel = weights[f"layer_{i}/kernel"].reshape(size, len(x[0]), -1)
        padded = np.pad(x, [((size - 1) // 2, size // 2), (0, 0)])
        sums = np.array(
            [np.einsum("kd,kdu->u", padded[t : t + size], kernel) for t in range(len(ids))]
        )
        linear, gate = np.split(sums + weights[f"layer_{i}/bias"], 2, -1)
        x = (x + linear / (1 + np.exp(-gate))) * np.sqrt(0.5)
    return x


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_equals_the_paper(size):
    encoder = TextConvolutionEncoder(10, embedding=3, units=4, layers=2, kernel_size=size)
    encoder.build()
    fill(encoder, np.random.default_rng(2), 0.5)
    values = np.asarray(encoder(IDS)["values"])
    assert_close(values[0], reference(encoder, IDS[0]))
    assert_close(values[1, :2], reference(encoder, IDS[1, :2]))


def test_the_variance_stays_about_the_same_from_layer_to_layer():
    encoder = TextConvolutionEncoder(500, embedding=64, units=64, layers=8, dropout=0.2)
    encoder.build()
    ids = np.random.default_rng(0).integers(4, 500, (4, 40)).astype("int32")
    assert 0.4 < np.var(encoder(ids)["values"]) < 2.5


def test_an_empty_batch_and_the_configuration():
    encoder = TextConvolutionEncoder(10, embedding=3, units=4, layers=1)
    encoder.build()
    assert encoder(np.zeros((0, 5), "int32"))["values"].shape == (0, 5, 4)
    again = round_trip(encoder)
    assert again.get_config() == encoder.get_config()


def test_dropout_keeps_the_copies_of_a_pooled_vector_equal():
    """Else their maximum is never a dropped one, and larger in training than in inference."""
    encoder = TextConvolutionEncoder(10, 3, 0.5, units=4, layers=2, pooling=True)
    encoder.build()
    fill(encoder, np.random.default_rng(2), 0.5)
    ids = np.array([[5, 6, 7, 8, 9, 4, 5, 3]], "int32")
    values = np.asarray(encoder(ids, training=True)["values"])[0]
    for group in (values[:4], values[4:]):
        np.testing.assert_array_equal(group, group[:1].repeat(4, axis=0))
    assert np.abs(values).max() <= 1
