"""Counter-based random numbers."""

from typing import Any

import keras
import numpy as np
from keras import ops

# The odd constants of the golden ratio and of MurmurHash3's finaliser (Appleby 2008, fmix32).
_GOLDEN, _FIRST, _SECOND = 0x9E3779B9, 0x85EBCA6B, 0xC2B2AE35


def uniform_noise(seed: int, *counters: Any) -> Any:
    """Return uniform noise as a function of integer counters, equal on every backend and device.

    With a stateful generator the samples of a row would depend on the other rows of the batch, and
    on the backend. Here a number is a hash of its counters (Salmon et al. 2011, "Parallel random
    numbers: as easy as 1, 2, 3") in integer operations that are the same everywhere.

    Args:
        seed: selects a sequence.
        counters: integer tensors that broadcast against each other. Put the largest one last: only
            its hash is computed at full size.

    Returns:
        Independent numbers in (0, 1) in the broadcast shape, float32.
    """
    value = _mix(_word(seed & 0xFFFFFFFF) ^ _word(_GOLDEN))
    for counter in counters:
        value = _mix(_wrap(value + ops.cast(counter, "uint32") * _word(_GOLDEN)))
    # The largest integers round to 1, so the result is bounded by the largest float below 1.
    return ops.minimum((ops.cast(value, "float32") + 0.5) * 2.0**-32, 1.0 - 2.0**-24)


def gumbel_noise(seed: int, *counters: Any) -> Any:
    """Return Gumbel noise -log(-log(1 - u)) of the uniform noise u; see ``uniform_noise``."""
    return -ops.log(-ops.log1p(-uniform_noise(seed, *counters)))


def _mix(x: Any) -> Any:
    """Apply MurmurHash3's finaliser, a bijection of 32 bits."""
    x = _wrap(ops.bitwise_xor(x, ops.right_shift(x, _word(16))) * _word(_FIRST))
    x = _wrap(ops.bitwise_xor(x, ops.right_shift(x, _word(13))) * _word(_SECOND))
    return ops.bitwise_xor(x, ops.right_shift(x, _word(16)))


def _wrap(x: Any) -> Any:
    """Return the lowest 32 bits: on PyTorch, Keras stores uint32 as int64."""
    return ops.bitwise_and(x, 0xFFFFFFFF) if keras.backend.backend() == "torch" else x


def _word(value: int) -> Any:
    return ops.convert_to_tensor(np.uint32(value), dtype="uint32")
