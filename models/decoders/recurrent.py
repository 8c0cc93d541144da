"""What the recurrent decoders share: layers, their first states, dropout, a look at the memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras import ops

from models.attention.attention import Attention
from models.decoders.base import Decoder
from models.layers.bridge import Bridge
from models.layers.cells import CELLS
from models.layers.copying import Copying
from models.layers.dropouts import NO_DROPS, Dropout, Drops, drawn, sequence_dropout
from models.layers.embeddings import TokenEmbedding
from models.serialization import by_name


class RecurrentDecoder(Decoder):
    """Base of the decoders that are a stack of recurrent layers.

    The first states are a ``Bridge`` from the encoder's last ones. Without attention (Cho et al.
    2014, §2.2) every step gets the encoder's last state of the top layer, or the mean of a memory
    that has none, as its context, and alignments are zero.

    Args:
        vocabulary: the number of target pieces.
        memory_depth: the depth of the memory's values.
        final_depth: the depth of the encoder's final states; 0 where it gives none.
        embedding: the depth of the embeddings.
        dropout: the share dropped of the embeddings, between layers, and before the logits.
        attention: the arguments of ``Attention``; None for a decoder without.
        tied: take the embeddings as the matrix of the logits too.
        units: the size of a state, and of what the logits are computed from.
        layers: the number of layers.
        cell: a name in ``CELLS``.
        residual: add a layer's input to its output wherever the two are equally deep.
        pointer_generator: mix in copies of the source's pieces (``Copying``); both sides must have
            one vocabulary, and there must be attention.
        dropout_type: ``plain``, or ``variational``, which drops the same at all steps, and of the
            states too where they meet their weights (Gal and Ghahramani 2016, §4.2).
        start: ``summary`` for such first states; ``zeros`` to begin with nothing.
        scale: multiply the embeddings by the root of their depth, as in ``RecurrentEncoder``.
        extra: the depth of what the first layer gets at each step beside the embedding.

    Raises:
        ValueError: there is no such cell, dropout type or attention, or no layer; the embeddings
            are tied and not as deep as ``units``; or there is nothing to copy by.
    """

    def __init__(
        self,
        vocabulary: int,
        memory_depth: int,
        final_depth: int,
        embedding: int = 256,
        dropout: float = 0.0,
        attention: dict[str, Any] | None = None,
        tied: bool = False,
        units: int = 256,
        layers: int = 1,
        cell: str = "lstm",
        residual: bool = False,
        dropout_type: str = "plain",
        pointer_generator: bool = False,
        start: str = "summary",
        scale: bool = True,
        *,
        extra: int,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.settings: dict[str, Any] = {
            "vocabulary": vocabulary,
            "memory_depth": memory_depth,
            "final_depth": final_depth,
            "embedding": embedding,
            "dropout": dropout,
            "attention": None if attention is None else dict(attention),
            "tied": tied,
            "units": units,
            "layers": layers,
            "cell": cell,
            "residual": residual,
            "dropout_type": dropout_type,
            "pointer_generator": pointer_generator,
            "start": start,
            "scale": scale,
        }
        policy = self.dtype_policy
        self.units = units
        self.variational = dropout_type == "variational"
        # What is dropped once a sequence, and what at every step of it.
        once, stepwise = (dropout, 0.0) if self.variational else (0.0, dropout)
        self.embedding = TokenEmbedding(
            vocabulary, embedding, stepwise, scale, dtype=policy, name="embedding"
        )
        if start not in ("summary", "zeros"):
            raise ValueError(f"Unknown start {start!r}. Choices: summary, zeros.")
        if layers < 1:
            raise ValueError(f"A recurrent decoder has at least one layer, not {layers}.")
        make = by_name("cell", CELLS, cell)
        self.cells = [
            make(units, extra=0 if i else extra, dtype=policy, name=f"layer_{i}")
            for i in range(layers)
        ]
        # Whether a layer's input is added to its output.
        self.residuals = [residual and (i > 0 or embedding == units) for i in range(layers)]
        self.attention = (
            None if attention is None else Attention(**attention, dtype=policy, name="attention")
        )
        self.bridge = Bridge(
            self.cells[0].state_names,
            units,
            layers,
            memory_depth,
            final_depth,
            zeros=start == "zeros",
            dtype=policy,
            name="bridge",
        )
        self.embedding_dropout = sequence_dropout(once, dropout_type, dtype=policy)
        self.state_dropout = Dropout(once, dtype=policy)
        self.between = Dropout(dropout, dtype=policy)
        self.dropout = sequence_dropout(dropout, dropout_type, dtype=policy)
        self.make_output(vocabulary, units, tied)
        if pointer_generator and attention is None:
            raise ValueError(
                "A decoder copies what it looks at, and without attention it does not."
            )
        self.copying = Copying(dtype=policy, name="copying") if pointer_generator else None

    @property
    def copies(self) -> bool:
        return self.copying is not None

    @property
    def stochastic(self) -> bool:
        return self.attention is not None and self.attention.stochastic

    def build(self, tokens_shape: Any = None) -> None:
        memory_depth = self.settings["memory_depth"]
        depth = self.settings["embedding"]
        for cell in self.cells:
            cell.build((None, depth))
            depth = self.units
        if self.attention is not None:
            self.attention.build((None, None, self.units), (None, None, memory_depth))
        self.bridge.build()
        self.build_output(self.units)
        if self.copying is not None:
            vocabulary = self.settings["vocabulary"]
            features = (None, None, self.units + self.settings["embedding"])
            self.copying.build((None, None, vocabulary), None, None, features)
        self.built = True

    def start(self, memory: dict[str, Any], longest: Any = None) -> dict[str, Any]:
        cells = self.bridge(memory)
        if self.attention is None:
            context = self.bridge.summary(memory)[0][:, -self.settings["memory_depth"] :]
            seen = {"context": context[:, None], "mask": memory["mask"]}
        else:
            seen = self.attention.prepare(memory["values"], memory["mask"])
        if self.copying is not None:
            seen["ids"] = memory["ids"]
        position = ops.cast(ops.zeros_like(cells[0][0][:, 0]), "int32")
        return {"memory": seen, "cells": cells, "position": position}

    def unroll(
        self, tokens: Any, memory: dict[str, Any], training: bool = False
    ) -> tuple[Any, Any]:
        logits, looks = self._unroll(tokens, memory, training)
        return logits, looks[0]

    def unroll_with_distribution(
        self, tokens: Any, memory: dict[str, Any], training: bool = False
    ) -> tuple[Any, Any, Any]:
        logits, looks = self._unroll(tokens, memory, training)
        return logits, looks[0], looks[-1]

    def _unroll(
        self, tokens: Any, memory: dict[str, Any], training: bool
    ) -> tuple[Any, tuple[Any, ...]]:
        """Logits, and what ``_look`` gives for all steps, each ``[batch, target, source]``."""
        raise TypeError(f"{type(self).__name__} does not say how it is unrolled.")

    def _begin(self, memory: dict[str, Any], training: bool) -> dict[str, Any]:
        """The state before the first token, with all random numbers that a loop needs."""
        state = self.start(memory)
        if training and self.attention is not None:
            state["memory"] = self.attention.draw(state["memory"])
        return state

    def _look(
        self, query: Any, seen: dict[str, Any], position: Any = None, training: bool = False
    ) -> tuple[Any, tuple[Any, ...]]:
        """Context ``[batch, target, depth]``, and the alignment ``[batch, target, source]``.

        The alignment comes with the distribution it was drawn from where it is drawn.
        """
        if self.attention is None:
            target = ops.shape(query)[1]
            weights = ops.cast(ops.zeros_like(seen["mask"]), query.dtype)[:, None]
            return ops.repeat(seen["context"], target, axis=1), (ops.repeat(weights, target, 1),)
        context, *looks = self.attention.look(query, seen, position, training)
        return context, tuple(looks if self.stochastic else looks[:1])

    def _unlooked(self, seen: dict[str, Any], dtype: Any) -> tuple[Any, ...]:
        """What ``_look`` gives of one step, in zeros: a loop needs something to start from."""
        nothing = ops.cast(ops.zeros_like(seen["mask"]), dtype)  # [batch, source]
        return (nothing, ops.cast(nothing, "float32")) if self.stochastic else (nothing,)

    def _look_once(
        self, query: Any, seen: dict[str, Any], position: Any, training: bool = False
    ) -> tuple[Any, tuple[Any, ...]]:
        """``_look`` for one query a row or hypothesis: all is ``[rows, depth or source]``."""
        batch = ops.shape(seen["mask"])[0]
        # The hypotheses of a row stand side by side as queries to the row's one memory.
        query = ops.reshape(query, (batch, -1, self.units))
        context, looks = self._look(query, seen, ops.reshape(position, (batch, -1)), training)
        return _flat(context), tuple(_flat(look) for look in looks)

    def _written(self, hidden: Any, embedded: Any, look: Any, seen: dict[str, Any]) -> Any:
        """Logits ``[batch, target, vocabulary]`` of what the output layer reads and looked at."""
        logits = self.output_logits(hidden)
        if self.copying is None:
            return logits
        features = ops.concatenate([hidden, embedded], axis=-1)
        return self.copying(logits, look, seen["ids"], features)

    def _written_once(self, hidden: Any, embedded: Any, look: Any, seen: dict[str, Any]) -> Any:
        """``_written`` of one step: all is ``[rows, depth or source]``."""
        if self.copying is None:
            return self.output_logits(hidden)
        batch = ops.shape(seen["mask"])[0]
        hidden = ops.reshape(hidden, (batch, -1, self.units))
        embedded = ops.reshape(embedded, (batch, -1, self.settings["embedding"]))
        look = ops.reshape(look, (batch, -1, ops.shape(look)[-1]))
        return _flat(self._written(hidden, embedded, look, seen))

    def _inputs(self, tokens: Any, training: bool) -> tuple[Any, Drops]:
        """Embeddings as ``[target, batch, depth]``, and the masks of all steps."""
        embedded = self.embedding(tokens, training=training)
        embedded = ops.transpose(self.embedding_dropout(embedded, training=training), (1, 0, 2))
        return embedded, self._drops(tokens, embedded.dtype, training)

    def _scanned(self, embedded: Any, drops: Drops = NO_DROPS) -> tuple[Any, ...]:
        """What a loop over the steps goes through, in the order in which ``_advance`` takes it."""
        projected = self.cells[0].project(embedded)
        return (projected, *([embedded] if self.residuals[0] else []), *drops.scanned)

    def _advance(
        self, now: Sequence[Any], cells: Any, extra: Any = None, drops: Drops = NO_DROPS
    ) -> tuple[list[tuple[Any, ...]], Any]:
        """All layers by one step: their states, and the output of the last ``[rows, units]``."""
        projected, *masks = now
        output = masks.pop(0) if self.residuals[0] else None
        between = masks or drops.fixed
        new = []
        for i, (cell, state) in enumerate(zip(self.cells, cells, strict=True)):
            if i:
                projected, extra = cell.project(output), None
            keep = drops.states[i] if drops.states else None
            new.append(cell.advance(projected, state, extra, keep))
            below, output = output, new[-1][0]
            if between and i < len(self.cells) - 1:
                output = output * between[i]
            if self.residuals[i]:
                output = output + below
        return new, output

    def _drops(self, tokens: Any, dtype: Any, training: bool) -> Drops:
        if not training or not self.settings["dropout"]:
            return NO_DROPS
        rows = (ops.shape(tokens)[0], self.units)
        if self.variational:
            return Drops(
                fixed=tuple(drawn(self.between, rows, dtype) for _ in self.cells[1:]),
                states=tuple(drawn(self.state_dropout, rows, dtype) for _ in self.cells),
            )
        steps = (ops.shape(tokens)[1], *rows)
        return Drops(scanned=tuple(drawn(self.between, steps, dtype) for _ in self.cells[1:]))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}


def _flat(x: Any) -> Any:
    """``[batch, hypotheses, depth]`` → ``[batch * hypotheses, depth]``."""
    return ops.reshape(x, (-1, ops.shape(x)[-1]))
