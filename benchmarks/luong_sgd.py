"""Luong's decoder trained with SGD, as in the paper, instead of Adam.

    PYTHONPATH=benchmarks regard compare configs/compare/multi30k-en-de.yaml --name multi30k-sgd \
      --only luong-dot-feed,luong-general-feed --set training.run_fn=luong_sgd:run_fn \
      --set training.learning_rate=15 --set training.clip_norm=0.33 --set 'training.schedule={
        type: exponential, start_step: 3856, decay_steps: 482, rate: 0.5}'

Luong et al. 2015, §4.1: twelve epochs with dropout, a learning rate of 1 that is halved after every
epoch from the ninth on (here from step 3,856 of 5,964 on, every 482 steps), and gradients of a norm
of at most 5. The paper's loss is the sum over the tokens of a sentence; Regard's is their mean,
which is smaller by the 15 tokens of a caption, so the rate is 15 times and the limit one 15th of
the paper's.
"""

from typing import Any
from unittest import mock

import tensorflow as tf

from regard.components.trainer.backends.tensorflow import Adam, TensorFlowBackend
from regard.components.trainer.run_fn import run_fn as train


class Sgd(Adam):
    """θ ← θ - α g. Adam's moments exist, since checkpoints contain them, and stay zero."""

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Update one weight."""
        rate = tf.cast(learning_rate, variable.dtype)
        self.assign_sub(variable, rate * tf.cast(self.dense(gradient), variable.dtype))


def run_fn(fn_args: Any) -> None:
    """Train and export as Regard does, with SGD."""
    with mock.patch.object(TensorFlowBackend, "adam", return_value=Sgd):
        train(fn_args)
