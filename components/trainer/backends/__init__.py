"""What a training does differently on each backend of Keras.

The loop, its callbacks, the checkpoints and the batches are the same on every backend. A module of
this package has the differences: how batches reach the device, how a function is compiled, how Adam
updates a weight, and which properties of a device can be read.
"""

import functools

import keras

from regard.components.trainer.backends.base import TrainingBackend


@functools.cache
def current_backend() -> TrainingBackend:
    """Return the backend that Keras computes with.

    Raises:
        ValueError: Regard does not train on it.
    """
    name = keras.backend.backend()
    # Each module imports the library of its backend.
    if name == "tensorflow":
        from regard.components.trainer.backends.tensorflow import TensorFlowBackend

        return TensorFlowBackend()
    if name == "jax":
        from regard.components.trainer.backends.jax import JaxBackend

        return JaxBackend()
    raise ValueError(f"Regard trains on TensorFlow and on JAX; KERAS_BACKEND is {name}.")
