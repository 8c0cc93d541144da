"""The interface of all decoders, so that every search works with every decoder."""

from typing import Any

import keras
from keras import ops

from regard.models.layers.copying import Copying
from regard.models.layers.embeddings import TokenEmbedding
from regard.models.serialization import ConfiguredLayer
from regard.models.tensors import Memory, State, Tensor


class Decoder(ConfiguredLayer):
    """Base class of the decoders.

    A *memory* is the output of an encoder: a dictionary of ``values`` ``[batch, source, depth]``,
    ``mask`` ``[batch, source]`` and whatever else the encoder adds. A *state* is a dictionary:

    - ``state["memory"]`` never changes and has ``batch`` rows, or one row for all;
    - ``state["shared_cache"]``, if there is one, changes with every step but keeps ``batch`` rows
      in their order; it holds the entries of all hypotheses of a row next to each other;
    - everything else has ``batch * hypotheses`` rows and is reordered by a search.

    A decoder infers the number of hypotheses per row from these shapes, so memory and cache are
    never copied per hypothesis.

    A subclass sets ``embedding``, calls ``create_output`` in its constructor and ``build_output``
    in ``build``, and computes its logits with ``output_logits``, or with ``output`` if it can copy.

    Attributes:
        embedding: the embedding of the target tokens.
        copying: mixes copies of source tokens into the logits, or None.
        tied: whether the output layer uses the embedding matrix.
        head_names: the keys of the result of ``heads``.
    """

    embedding: TokenEmbedding
    copying: Copying | None = None
    tied: bool = False
    head_names: tuple[str, ...] = ()

    @property
    def stochastic(self) -> bool:
        """Whether alignments are sampled in training, so that REINFORCE has to train them."""
        return False

    @property
    def copies(self) -> bool:
        """Whether source tokens are copied, so that the memory must contain ``ids``."""
        return self.copying is not None

    def get_build_config(self) -> None:
        """Return None: a loaded decoder may have to share an embedding before it is built.

        The layer that contains the decoder builds it.
        """

    def create_output(self, vocabulary: int, depth: int, tied: bool, copies: bool = False) -> None:
        """Create the layers that map hidden states ``[..., depth]`` to logits.

        Args:
            vocabulary: the size of the target vocabulary.
            depth: the depth of the hidden states.
            tied: use the embedding matrix (Press and Wolf 2017, "Using the Output Embedding to
                Improve Language Models", §2) with a separate bias.
            copies: mix in copies of source tokens (``Copying``).

        Raises:
            ValueError: ``tied``, and ``depth`` differs from the depth of the embeddings.
        """
        self.tied = tied
        if not tied:
            self.logits = keras.layers.Dense(vocabulary, dtype=self.dtype_policy, name="logits")
        elif depth != self.embedding.depth:
            raise ValueError(
                "Tied embeddings must have the depth of the decoder's last layer, but the depths "
                f"are {self.embedding.depth} and {depth}."
            )
        self.copying = Copying(dtype=self.dtype_policy, name="copying") if copies else None

    def build_output(self, depth: int) -> None:
        """Create the weights of the output layer, and of the embedding unless it has some."""
        if not self.embedding.built:
            self.embedding.build()
        if self.tied:
            self.logits_bias = self.add_weight(
                name="logits_bias", shape=(self.embedding.vocabulary,), initializer="zeros"
            )
        else:
            self.logits.build((None, depth))
        if self.copying is not None:
            self.copying.build(None, None, None, (None, None, depth + self.embedding.depth))

    @property
    def vocab_weights(self) -> list[tuple[Any, int]]:
        """The weights with one row per token of the vocabulary, and the axis of those rows."""
        table = (self.embedding.table, 0)
        if self.tied:
            return [table, (self.logits_bias, 0)]
        return [table, (self.logits.kernel, 1), (self.logits.bias, 0)]

    def prepare_output(self) -> State:
        """Return what ``output`` needs of the weights, so that it is computed once per search.

        These are the tied embeddings as columns, ``[1, depth, vocabulary]``. oneDNN multiplies a
        few rows with them in half the time that it takes with the transposed matrix
        (benchmarks/optimization_log.md).
        """
        return {"output_columns": self.embedding.columns()[None]} if self.tied else {}

    def output_logits(self, hidden: Tensor, prepared: State | None = None) -> Tensor:
        """Return the logits of hidden states.

        Args:
            hidden: ``[..., depth]``.
            prepared: what contains the result of ``prepare_output``; by default it is computed.

        Returns:
            ``[..., vocabulary]``.
        """
        if not self.tied:
            return self.logits(hidden)
        columns = (prepared or {}).get("output_columns")
        logits = self.embedding.attend(hidden, None if columns is None else columns[0])
        return logits + ops.cast(self.logits_bias, logits.dtype)

    def output(self, hidden: Tensor, embedded: Tensor, alignment: Tensor, prepared: State) -> Any:
        """Return the logits of hidden states, with copies if there are any.

        Args:
            hidden: ``[batch, target, depth]``, or ``[batch * hypotheses, depth]`` of one step.
            embedded: the embeddings of the previous tokens, of the same shape but for the depth.
            alignment: ``[batch, target, source]``, or ``[batch * hypotheses, source]``.
            prepared: ``state["memory"]``, with the source ``ids`` if the decoder ``copies``.
        """
        logits = self.output_logits(hidden, prepared)
        if self.copying is None:
            return logits
        features, ids = ops.concatenate([hidden, embedded], axis=-1), prepared["ids"]
        if len(hidden.shape) == 3:
            return self.copying(logits, alignment, ids, features)
        parts = (
            ops.reshape(x, (ops.shape(ids)[0], -1, ops.shape(x)[-1]))
            for x in (logits, alignment, features)
        )
        logits, alignment, features = parts
        return flatten_rows(self.copying(logits, alignment, ids, features))

    def start(self, memory: Memory, max_length: Tensor = None, hypotheses: int = 1) -> State:
        """Return the state before the first token.

        Args:
            memory: the output of the encoder.
            max_length: the maximum number of steps, for decoders with a cache.
            hypotheses: the number of hypotheses per row that share the cache.
        """
        raise TypeError(f"{type(self).__name__} does not implement start.")

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State, Tensor]:
        """Decode one token.

        Args:
            tokens: the previous tokens, ``[rows]`` with ``rows = batch * hypotheses``.
            state: the state after them.

        Returns:
            Logits ``[rows, vocabulary]``, the new state, and the alignment ``[rows, source]``.
        """
        raise TypeError(f"{type(self).__name__} does not implement step.")

    def unroll(
        self, tokens: Tensor, memory: Memory, training: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Decode all tokens with teacher forcing.

        Args:
            tokens: the previous tokens, ``[batch, target]``.
            memory: the output of the encoder.
            training: whether dropout and sampled alignments are on.

        Returns:
            Logits ``[batch, target, vocabulary]`` and alignments ``[batch, target, source]``,
            equal to those of ``step`` for the same tokens.
        """
        raise TypeError(f"{type(self).__name__} does not implement unroll.")

    def heads(self, tokens: Tensor, memory: Memory) -> dict[str, Tensor]:
        """Return the attention weights of all heads of all layers, with teacher forcing.

        Args:
            tokens: as in ``unroll``.
            memory: the output of the encoder.

        Returns:
            For a Transformer ``cross`` ``[batch, layers, heads, target, source]`` and ``target``
            ``[batch, layers, heads, target, target]``, whose columns are the previous tokens.
            Empty for other decoders.
        """
        return {}


def flatten_rows(x: Tensor) -> Tensor:
    """Reshape ``[batch, hypotheses, depth]`` to ``[batch * hypotheses, depth]``."""
    return ops.reshape(x, (-1, ops.shape(x)[-1]))
