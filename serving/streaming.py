"""Token streaming: how a model's two signatures for it work together.

``stream_start`` takes the input, and ``stream_step`` the state, which is an output of both. Each
step returns one token, until its output ``is_end`` is true; a blank input has ended before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

START, STEP = "stream_start", "stream_step"
TOKEN_OUTPUTS = ("text", "token", "log_probability")


class Stream:
    """The state of one stream.

    Args:
        inputs: the inputs of the model, ``[1]``.
        state_names: the inputs of ``stream_step``.
        output_names: the outputs of ``serving_default``.

    Attributes:
        signature: the signature to run next; "" after the end.
        inputs: its inputs.
        nbytes: the size of the state.
    """

    def __init__(
        self,
        inputs: Mapping[str, Any],
        state_names: Collection[str],
        output_names: Collection[str],
    ):
        self.signature, self.inputs, self.nbytes = START, inputs, 0
        self._state_names, self._output_names = state_names, output_names
        self._values: dict[str, np.ndarray] = {}

    def update(self, outputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Take the outputs of ``signature``, and return what to send.

        Returns:
            The outputs for the next token; at the end also the outputs of ``serving_default``.
            Empty at the start.
        """
        is_start = self.signature == START
        self._values |= outputs
        self.inputs = {name: self._values[name] for name in self._state_names}
        self.nbytes = sum(value.nbytes for value in self.inputs.values())
        self.signature = "" if self._values["is_end"].item() else STEP
        if self.signature:
            names = () if is_start else TOKEN_OUTPUTS
        else:
            names = (*TOKEN_OUTPUTS, *self._output_names)
        return {name: self._values[name] for name in names}
