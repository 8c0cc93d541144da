"""The language that every decoder speaks, so that every search works with every decoder."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from models.layers.embeddings import TokenEmbedding


class Decoder(keras.layers.Layer):
    """Base of the decoders.

    A *memory* is what an encoder gives: a dictionary with ``values`` ``[batch, source, depth]``,
    ``mask`` ``[batch, source]`` and whatever else an encoder adds. A *state* is a dictionary:
    ``state["memory"]`` is what never changes while decoding, with ``batch`` rows, or one for all;
    ``state["written"]``, where a decoder has it, changes with every step, but keeps ``batch`` rows
    in their order, with what all hypotheses of a row have written side by side; everything else
    has ``batch * hypotheses`` rows and is what a search reorders. A decoder sees from these how
    many hypotheses a row has, so neither is ever copied for them.

    A decoder sets ``embedding``, calls ``make_output`` in its constructor and ``build_output`` in
    ``build``, and gets its logits from ``output_logits``.
    """

    embedding: TokenEmbedding
    tied: bool = False
    # The names of what ``heads`` gives.
    with_heads: tuple[str, ...] = ()

    @property
    def stochastic(self) -> bool:
        """Whether alignments are sampled in training, so that their choice has to be rewarded."""
        return False

    @property
    def copies(self) -> bool:
        """Whether pieces of the source are copied, so that the memory must have its ``ids``."""
        return False

    def use_embedding(self, layer: TokenEmbedding) -> None:
        """Reads its pieces with the vectors of another part of the model, in its own way.

        Raises:
            ValueError: the decoder is built, or the embeddings differ in size.
        """
        if self.built:
            raise ValueError("An embedding can only be shared before the decoder is built.")
        self.embedding.share(layer)

    def get_build_config(self) -> None:
        """Nothing: a decoder that is read back may have to share an embedding before it is built.

        Whatever holds the decoder builds it.
        """

    def make_output(self, vocabulary: int, depth: int, tied: bool) -> None:
        """Makes what gives logits from hidden states ``[..., depth]``.

        Args:
            vocabulary: the number of target pieces.
            depth: the depth of the hidden states.
            tied: take the embeddings as the matrix (Press and Wolf 2017, "Using the Output
                Embedding to Improve Language Models", §2), with a bias of its own.

        Raises:
            ValueError: tied, and the depth is not that of the embeddings.
        """
        self.tied = tied
        if not tied:
            self.logits = keras.layers.Dense(vocabulary, dtype=self.dtype_policy, name="logits")
        elif depth != self.embedding.depth:
            raise ValueError(
                f"Tied embeddings need a decoder whose last layer is as deep as they are, but the "
                f"two have {depth} and {self.embedding.depth}."
            )

    def build_output(self, depth: int) -> None:
        """Makes the weights of the embeddings, if nobody has, and of the output."""
        if not self.embedding.built:
            self.embedding.build()
        if self.tied:
            self.logits_bias = self.add_weight(
                name="logits_bias", shape=(self.embedding.vocabulary,), initializer="zeros"
            )
        else:
            self.logits.build((None, depth))

    @property
    def by_piece(self) -> list[tuple[Any, int]]:
        """The weights with a row for each piece, and which of their axes that is."""
        table = (self.embedding.table, 0)
        if self.tied:
            return [table, (self.logits_bias, 0)]
        return [table, (self.logits.kernel, 1), (self.logits.bias, 0)]

    def output_logits(self, hidden: Any) -> Any:
        """Hidden states ``[..., depth]`` → logits ``[..., vocabulary]``."""
        if not self.tied:
            return self.logits(hidden)
        logits = self.embedding.attend(hidden)
        return logits + ops.cast(self.logits_bias, logits.dtype)

    def start(
        self, memory: dict[str, Any], longest: Any = None, hypotheses: int = 1
    ) -> dict[str, Any]:
        """The state before the first token.

        Args:
            memory: what the encoder gave.
            longest: how many steps there can be at most, for decoders that keep a cache.
            hypotheses: how many a row has that may go on from one another.
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

    def heads(self, tokens: Any, memory: dict[str, Any]) -> dict[str, Any]:
        """Where each head of each layer looks, with teacher forcing; nothing, if there are none.

        Args:
            tokens: as in ``unroll``.
            memory: what the encoder gave.

        Returns:
            Of a Transformer ``cross`` ``[batch, layers, heads, target, source]``, and ``target``
            ``[batch, layers, heads, target, target]``, whose columns are the tokens that were
            read.
        """
        return {}

    def unroll_with_distribution(
        self, tokens: Any, memory: dict[str, Any], training: bool = False
    ) -> tuple[Any, Any, Any]:
        """As ``unroll``, and the distribution that the alignments were drawn from.

        The distribution is ``[batch, target, source]``: the alignments themselves, unless the
        decoder is ``stochastic``.
        """
        logits, alignments = self.unroll(tokens, memory, training=training)
        return logits, alignments, alignments
