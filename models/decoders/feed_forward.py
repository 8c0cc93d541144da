"""The decoder of Rush et al.: a neural language model of the last tokens and of the source."""

from typing import Any

import keras
from keras import ops

from regard.models.decoders.attending import Alignments, AttendingDecoder
from regard.models.decoders.base import flatten_rows
from regard.models.layers.dropout import Dropout
from regard.models.layers.embeddings import TokenEmbedding
from regard.models.layers.loops import windows
from regard.models.layers.pooling import POOLINGS
from regard.models.serialization import constructor_arguments, register, spec
from regard.models.tensors import Memory, State, Tensor
from regard.models.vocabulary import BOS


@register
class FeedForwardDecoder(AttendingDecoder):
    """A feed-forward language model of the last tokens that also reads the source.

    Rush et al. 2015, "A Neural Attention Model for Abstractive Sentence Summarization", §3, after
    Bengio et al. 2003: ỹ = [E y_{t-C}; ...; E y_{t-1}] (BOS before the first token),
    h = tanh(U ỹ), logits = V h + W enc. The encoders of §3.2 are:

    - attention: enc = Σ p x̄, where p = align(score(ỹ', memory)), ỹ' is ỹ with an embedding G of
      its own, and x̄ is the mean of the 2 Q + 1 neighbours in the memory (the paper divides by Q;
      the factor is one of W). P of the paper is the kernel of the score ``general``.
    - bag of words: without attention, the mean of an ``EmbeddingEncoder``'s memory.
    - convolutional: without attention, the maximum of the memory of a ``TextConvolutionEncoder``
      with ``pooling``.

    Args:
        vocabulary: the size of the target vocabulary.
        memory_depth: the depth of the memory's values.
        final_depth: the depth of the encoder's final states; unused.
        embedding: the depth of the embeddings, E and G.
        dropout: the dropout rate of the embeddings and before the logits.
        attention: as in ``create_attention``, with one head.
        tied: use the embedding matrix as output matrix; then ``embedding`` must be ``units`` plus
            the depth of enc.
        units: the depth of h.
        context_size: C, the number of tokens of the target that a step depends on.
        smoothing: Q, the number of neighbours on each side.
        pooling: a name in ``POOLINGS`` without a guide; enc without attention.
        pointer_generator: mix in copies of source tokens (``Copying``), as ``RecurrentDecoder``.
        scale: multiply the embeddings by the square root of their depth, as ``RecurrentEncoder``.

    Raises:
        ValueError: the attention or the pooling is unknown, the depths of tied embeddings differ,
            or ``pointer_generator`` without attention.
    """

    def __init__(
        self,
        vocabulary: int,
        memory_depth: int,
        final_depth: int = 0,
        embedding: int = 256,
        dropout: float = 0.0,
        attention: dict[str, Any] | None = None,
        tied: bool = False,
        units: int = 256,
        context_size: int = 5,
        smoothing: int = 2,
        pooling: str = "mean",
        pointer_generator: bool = False,
        scale: bool = True,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        attention = None if attention is None else dict(attention)
        self.settings = constructor_arguments(locals())
        policy, sizes = self.dtype_policy, (vocabulary, embedding, dropout, scale)
        self.context_size, self.smoothing = context_size, smoothing
        self.embedding = TokenEmbedding(*sizes, dtype=policy, name="embedding")
        self.hidden = keras.layers.Dense(units, activation="tanh", dtype=policy, name="hidden")
        self.create_attention(memory_depth, attention, pointer_generator)
        if self.attention is None:
            self.pooling = spec("pooling", POOLINGS, pooling, dtype=policy, name="pooling")
            self.context_depth = self.pooling.out_depth(memory_depth)
        else:
            self.query_embedding = TokenEmbedding(*sizes, dtype=policy, name="query_embedding")
        self.dropout = Dropout(dropout, dtype=policy)
        self.create_output(vocabulary, units + self.context_depth, tied, pointer_generator)

    @property
    def vocab_weights(self) -> list[tuple[Any, int]]:
        if self.attention is None:
            return super().vocab_weights
        return [*super().vocab_weights, (self.query_embedding.table, 0)]

    def build(self, tokens_shape: Any = None) -> None:
        memory = (None, None, self.settings["memory_depth"])
        context = (None, None, self.context_size * self.settings["embedding"])
        self.hidden.build(context)
        if self.attention is None:
            self.pooling.build(memory)
        else:
            self.query_embedding.build()
            self.attention.build(context, memory)
        self.build_output(self.settings["units"] + self.context_depth)
        self.built = True

    def fixed_context(self, memory: Memory) -> Tensor:
        return self.pooling(memory["values"], memory["mask"])[0]

    def prepare(self, memory: Memory) -> State:
        prepared, size = super().prepare(memory), self.smoothing
        if self.attention is not None and size:
            padded = ops.pad(prepared["values"], [[0, 0], [size, size], [0, 0]])
            prepared["values"] = sum(windows(padded, 2 * size + 1)) / (2 * size + 1)
        return prepared

    def start(self, memory: Memory, max_length: Tensor = None, hypotheses: int = 1) -> State:
        rows = ops.shape(memory["mask"])[0]
        tokens = ops.full((rows, self.context_size), BOS, dtype="int32")
        position = ops.zeros((rows,), dtype="int32")
        return {"memory": self.prepare(memory), "tokens": tokens, "position": position}

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State, Tensor]:
        prepared, position = state["memory"], state["position"]
        last = ops.cast(tokens[:, None], "int32")
        last = ops.concatenate([state["tokens"][:, 1:], last], axis=1)
        # The hypotheses of a row are several queries to the row's one memory.
        positions = ops.reshape(position, (ops.shape(prepared["mask"])[0], -1))
        logits, alignments = self._decode(last, prepared, positions)
        new_state = {"memory": prepared, "tokens": last, "position": position + 1}
        return flatten_rows(logits), new_state, flatten_rows(alignments[0])

    def _unroll(self, tokens: Tensor, memory: Memory, training: bool) -> tuple[Tensor, Alignments]:
        padding = [[0, 0], [self.context_size - 1, 0]]
        padded = ops.pad(tokens, padding, constant_values=BOS)
        return self._decode(padded, self.prepare(memory), training=training)

    def _decode(
        self, tokens: Tensor, prepared: State, position: Tensor = None, training: bool = False
    ) -> tuple[Tensor, Alignments]:
        """Return the logits and alignments of all windows of tokens ``[rows, length]``.

        Both are ``[batch, windows, ...]``, where ``windows`` are those of all rows of one memory.
        """

        def embed(layer: TokenEmbedding) -> Tensor:
            embedded = windows(layer(tokens, training=training), self.context_size)
            shape = (ops.shape(prepared["mask"])[0], -1, self.context_size * layer.depth)
            return ops.reshape(ops.concatenate(embedded, axis=-1), shape)

        context = embed(self.embedding)
        query = context if self.attention is None else embed(self.query_embedding)
        encoded, alignments = self._attend(query, prepared, position, training)
        hidden = ops.concatenate([self.hidden(context), encoded], axis=-1)
        hidden = self.dropout(hidden, training=training)
        last = context[..., -self.embedding.depth :]
        return self.output(hidden, last, alignments[0], prepared), alignments
