"""What makes a training the same again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf


def seed(training: Mapping[str, Any]) -> None:
    """Sets all seeds, and with ``deterministic`` rules out what still depends on chance.

    Then sums are always taken in the same order, whichever thread is done first, for the rest of
    the process.
    """
    keras.utils.set_random_seed(training["seed"])
    if training["deterministic"]:
        tf.config.experimental.enable_op_determinism()
