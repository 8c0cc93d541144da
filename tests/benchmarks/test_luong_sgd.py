import keras
import numpy as np

from benchmarks.luong_sgd import Sgd
from regard.models.trainable_model import LossMean


def test_an_update_is_the_gradient_times_the_rate():
    """Of a norm of at most the limit: here 5 becomes 2.5."""
    weights = [keras.Variable([[1.0, 2.0]]), keras.Variable([3.0])]
    optimizer = Sgd(learning_rate=0.5, global_clipnorm=2.5)
    optimizer.loss_mean = LossMean()
    gradients = [keras.ops.convert_to_tensor(g) for g in ([[0.0, 4.0]], [3.0])]
    optimizer.apply(gradients, weights)
    np.testing.assert_allclose(weights[0], [[1.0, 2.0 - 0.5 * 2.0]], rtol=1e-6)
    np.testing.assert_allclose(weights[1], [3.0 - 0.5 * 1.5], rtol=1e-6)
