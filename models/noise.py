"""Random numbers that are a function of what they are for."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras import ops

# The odd constants of the golden ratio and of MurmurHash3's finaliser (Appleby 2008, fmix32).
_GOLDEN, _FIRST, _SECOND = 0x9E3779B9, 0x85EBCA6B, 0xC2B2AE35


def gumbel_noise(seed: int, *counters: Any) -> Any:
    """Gumbel noise for integer counters: the same for the same, on every backend and device.

    A generator with a state would make what a row draws depend on the rows beside it, and each
    backend has its own. Here a number is a hash of what it is for (Salmon et al. 2011, "Parallel
    random numbers: as easy as 1, 2, 3"), in integer operations that are the same everywhere.

    Args:
        seed: what tells one sequence of draws from another.
        counters: integer tensors that broadcast against each other; the last varies fastest, so
            that only its hash is computed at full size.

    Returns:
        Independent numbers -log(-log(u)), u uniform in (0, 1), in the broadcast shape, float32.
    """
    value = _mixed(_word(seed & 0xFFFFFFFF) ^ _word(_GOLDEN))
    for counter in counters:
        value = _mixed(value + ops.cast(counter, "uint32") * _word(_GOLDEN))
    # The greatest float below one bounds the uniform, since the greatest integers round to one.
    uniform = (ops.cast(value, "float32") + 0.5) * 2.0**-32
    return -ops.log(-ops.log1p(-ops.minimum(uniform, 1.0 - 2.0**-24)))


def _mixed(x: Any) -> Any:
    """A bijection of 32 bits in which every bit of the input moves half of those of the output."""
    x = ops.bitwise_xor(x, ops.right_shift(x, _word(16))) * _word(_FIRST)
    x = ops.bitwise_xor(x, ops.right_shift(x, _word(13))) * _word(_SECOND)
    return ops.bitwise_xor(x, ops.right_shift(x, _word(16)))


def _word(value: int) -> Any:
    return ops.convert_to_tensor(np.uint32(value), dtype="uint32")
