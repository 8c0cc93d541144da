"""The language that every decoder speaks, so that every search works with every decoder."""

from __future__ import annotations

from typing import Any

import keras


class Decoder(keras.layers.Layer):
    """Base of the decoders.

    A *memory* is what an encoder gives: a dictionary with ``values`` ``[batch, source, depth]``,
    ``mask`` ``[batch, source]`` and whatever else an encoder adds. A *state* is a dictionary:
    ``state["memory"]`` is what never changes while decoding, with ``batch`` rows; everything
    else has ``batch * hypotheses`` rows and is what a search reorders. A decoder sees from the
    two how many hypotheses a row has, so a memory is never copied for them.
    """

    def start(self, memory: dict[str, Any], longest: Any = None) -> dict[str, Any]:
        """The state before the first token.

        Args:
            memory: what the encoder gave.
            longest: how many steps there can be at most, for decoders that keep a cache.
        """
        raise TypeError(f"{type(self).__name__} does not say how decoding starts.")

    def step(self, tokens: Any, state: dict[str, Any]) -> tuple[Any, dict[str, Any], Any]:
        """One step: tokens ``[rows]`` → logits ``[rows, vocabulary]``, state, alignment.

        The alignment is ``[rows, source]``; rows are ``batch * hypotheses``.
        """
        raise TypeError(f"{type(self).__name__} does not say how it takes a step.")

    def unroll(
        self, tokens: Any, memory: dict[str, Any], training: bool = False
    ) -> tuple[Any, Any]:
        """Teacher forcing: tokens ``[batch, target]`` → logits and alignments.

        Logits are ``[batch, target, vocabulary]``, alignments ``[batch, target, source]``; both
        are what ``step`` gives when it is fed the same tokens one by one.
        """
        raise TypeError(f"{type(self).__name__} does not say how it is unrolled.")
