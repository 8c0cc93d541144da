"""The recurrent encoder: one state a source position."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from models.layers.cells import CELLS
from models.layers.dropouts import Dropout, drawn, sequence_dropout
from models.layers.embeddings import source_embedding
from models.layers.loops import scan_steps
from models.serialization import by_name, register


@register
class RecurrentEncoder(keras.layers.Layer):
    """A stack of recurrent layers over the source, in one direction or both.

    Bahdanau et al. 2015, §3.2 (bidirectional annotations); Luong et al. 2015, §4 (stacked).
    Padding never changes a state, so a padded row gives what it gives alone.

    Args:
        vocabulary: the number of source pieces; None for an encoder of points.
        embedding: the depth of the embeddings.
        dropout: the share dropped of the input of every layer and of the memory.
        units: the size of a state in one direction.
        layers: the number of layers.
        bidirectional: read from both ends; the memory is then ``2 * units`` deep.
        cell: a name in ``CELLS``.
        residual: add a layer's input to its output wherever the two are equally deep (Wu et al.
            2016, §3.1).
        dropout_type: ``plain``, or ``variational``, which drops the same of all positions, and of
            the states too where they meet their weights (Gal and Ghahramani 2016, §4.2).
        reverse: read every row from its last piece to its first (Sutskever et al. 2014, §3.3).
            The memory stays in the order of the source.
        scale: multiply the embeddings by the root of their depth, so that they begin with a
            variance of one: of smaller ones a cell says next to nothing at first, and what looks
            at it learns late where to look. Vectors that others have trained stay as they are.

    Shapes: ids ``[batch, source]``, or points ``[batch, source, 3]`` as ``PointEmbedding`` takes
    them → a memory, a dictionary of ``values`` ``[batch, source, depth]``, ``mask`` ``[batch,
    source]`` and ``final_states``, the last states as ``[batch, layers * directions * units]``
    for each tensor of a cell's state, the top layer last.

    Raises:
        ValueError: there is no such cell or dropout type, or no layer.
    """

    def __init__(
        self,
        vocabulary: int | None,
        embedding: int = 256,
        dropout: float = 0.0,
        units: int = 256,
        layers: int = 1,
        bidirectional: bool = True,
        cell: str = "lstm",
        residual: bool = False,
        dropout_type: str = "plain",
        reverse: bool = False,
        scale: bool = True,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.settings: dict[str, Any] = {
            "vocabulary": vocabulary,
            "embedding": embedding,
            "dropout": dropout,
            "units": units,
            "layers": layers,
            "bidirectional": bidirectional,
            "cell": cell,
            "residual": residual,
            "dropout_type": dropout_type,
            "reverse": reverse,
            "scale": scale,
        }
        policy = self.dtype_policy
        self.directions = 2 if bidirectional else 1
        # Which of the directions read from the end.
        self.backwards = [reverse, not reverse][: self.directions]
        self.variational = dropout_type == "variational"
        self.embedding = source_embedding(
            vocabulary,
            embedding,
            0.0 if self.variational else dropout,
            scale,
            dtype=policy,
            name="embedding",
        )
        if layers < 1:
            raise ValueError(f"A recurrent encoder has at least one layer, not {layers}.")
        make = by_name("cell", CELLS, cell)
        self.cells = [
            make(units, directions=self.directions, dtype=policy, name=f"layer_{i}")
            for i in range(layers)
        ]
        # Behind the embedding, where that does not drop by itself, and behind every layer.
        self.dropouts = [
            sequence_dropout(dropout, dropout_type, dtype=policy)
            for _ in range(layers + self.variational)
        ]
        self.state_dropout = Dropout(dropout if self.variational else 0.0, dtype=policy)

    @property
    def depth(self) -> int:
        """The depth of the memory."""
        return self.directions * int(self.settings["units"])

    @property
    def final_depth(self) -> int:
        """The depth of each tensor of ``final_states``."""
        return self.depth * len(self.cells)

    def build(self, ids_shape: Any = None) -> None:
        if not self.embedding.built:
            self.embedding.build()
        depth = int(self.settings["embedding"])
        for cell in self.cells:
            cell.build((None, depth))
            depth = self.depth
        self.built = True

    def call(self, ids: Any, training: bool = False) -> dict[str, Any]:
        mask = self.embedding.mask(ids)
        outputs = self.embedding(ids, training=training)
        dropouts = iter(self.dropouts)
        if self.variational:
            outputs = next(dropouts)(outputs, training=training)
        real = ops.cast(mask[..., None], outputs.dtype)
        finals = []
        for cell, dropout in zip(self.cells, dropouts, strict=True):
            inputs = outputs
            outputs, final = self._run(cell, inputs, mask, training)
            outputs = dropout(outputs * real, training=training)
            if self.settings["residual"] and inputs.shape[-1] == self.depth:
                outputs = outputs + inputs * real
            finals.append(final)
        final = [ops.concatenate(parts, axis=-1) for parts in zip(*finals, strict=True)]
        return {"values": outputs, "mask": mask, "final_states": final}

    def _run(self, cell: Any, inputs: Any, mask: Any, training: bool) -> tuple[Any, list[Any]]:
        """One layer; all directions run in one loop, each over the sequence in its order.

        A row read from its end meets its padding first, which leaves the state as it was.
        """
        steps = self._ordered(ops.transpose(inputs, (1, 0, 2)))
        valid = self._ordered(ops.transpose(mask)[..., None])
        start = cell.start(ops.shape(inputs)[0])
        keep = None
        if training and self.variational:
            keep = drawn(self.state_dropout, ops.shape(start[0]), start[0].dtype)

        def step(state: tuple[Any, ...], now: list[Any]) -> tuple[Any, Any]:
            projected, real = now
            new = cell.advance(projected, state, keep=keep)
            kept = zip(new, state, strict=True)
            new = tuple(ops.where(real > 0.5, after, before) for after, before in kept)
            return new, new

        last, states = scan_steps(step, start, (cell.project(steps), valid))
        hidden = states[0]  # [source, directions, batch, units]
        outputs = [
            ops.flip(hidden[:, d], 0) if backward else hidden[:, d]
            for d, backward in enumerate(self.backwards)
        ]
        outputs = ops.transpose(ops.concatenate(outputs, axis=-1), (1, 0, 2))
        final = [ops.concatenate([x[d] for d in range(self.directions)], axis=-1) for x in last]
        return outputs, final

    def _ordered(self, steps: Any) -> Any:
        """``[source, batch, depth]`` → ``[source, directions, batch, depth]``, as each reads."""
        return ops.stack([ops.flip(steps, 0) if b else steps for b in self.backwards], axis=1)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}
