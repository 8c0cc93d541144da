"""The recurrent encoder: one state a source position."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from models.layers.cells import CELLS
from models.layers.embeddings import TokenEmbedding
from models.layers.loops import scan_steps
from models.serialization import by_name, register
from models.vocabulary import PAD


@register
class RecurrentEncoder(keras.layers.Layer):
    """A stack of recurrent layers over the source, in one direction or both.

    Bahdanau et al. 2015, §3.2 (bidirectional annotations); Luong et al. 2015, §4 (stacked).
    Padding never changes a state, so a padded row gives what it gives alone.

    Args:
        vocabulary: the number of source pieces.
        embedding: the depth of the embeddings.
        units: the size of a state in one direction.
        layers: the number of layers.
        bidirectional: read from both ends; the memory is then ``2 * units`` deep.
        cell: a name in ``CELLS``.
        dropout: the share dropped of the input of every layer and of the memory.

    Shapes: ids ``[batch, source]`` → a memory, a dictionary of ``values`` ``[batch, source,
    depth]``, ``mask`` ``[batch, source]`` and ``final_states``, the last states as ``[batch,
    layers * directions * units]`` for each tensor of a cell's state.
    """

    def __init__(
        self,
        vocabulary: int,
        embedding: int = 256,
        units: int = 256,
        layers: int = 1,
        bidirectional: bool = True,
        cell: str = "lstm",
        dropout: float = 0.0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.settings: dict[str, Any] = {
            "vocabulary": vocabulary,
            "embedding": embedding,
            "units": units,
            "layers": layers,
            "bidirectional": bidirectional,
            "cell": cell,
            "dropout": dropout,
        }
        policy = self.dtype_policy
        self.directions = 2 if bidirectional else 1
        self.embedding = TokenEmbedding(
            vocabulary, embedding, dropout, dtype=policy, name="embedding"
        )
        make = by_name("cell", CELLS, cell)
        self.cells = [
            make(units, directions=self.directions, dtype=policy, name=f"layer_{i}")
            for i in range(layers)
        ]
        self.dropouts = [keras.layers.Dropout(dropout, dtype=policy) for _ in range(layers)]

    @property
    def depth(self) -> int:
        """The depth of the memory."""
        return self.directions * int(self.settings["units"])

    @property
    def final_depth(self) -> int:
        """The depth of each tensor of ``final_states``."""
        return self.depth * len(self.cells)

    def build(self, ids_shape: Any = None) -> None:
        self.embedding.build()
        depth = int(self.settings["embedding"])
        for cell in self.cells:
            cell.build((None, depth))
            depth = self.depth
        self.built = True

    def call(self, ids: Any, training: bool = False) -> dict[str, Any]:
        mask = ops.not_equal(ids, PAD)
        outputs = self.embedding(ids, training=training)
        finals = []
        for cell, dropout in zip(self.cells, self.dropouts, strict=True):
            outputs, final = self._run(cell, outputs, mask)
            outputs = dropout(outputs, training=training)
            finals.append(final)
        final = [ops.concatenate(parts, axis=-1) for parts in zip(*finals, strict=True)]
        return {"values": outputs, "mask": mask, "final_states": final}

    def _run(self, cell: Any, inputs: Any, mask: Any) -> tuple[Any, list[Any]]:
        """One layer; all directions run in one loop, the second over the reversed sequence."""
        steps = ops.transpose(inputs, (1, 0, 2))[:, None]  # [source, 1, batch, depth]
        valid = ops.transpose(mask)[:, None, :, None]  # [source, 1, batch, 1]
        if self.directions == 2:
            steps = ops.concatenate([steps, ops.flip(steps, 0)], axis=1)
            valid = ops.concatenate([valid, ops.flip(valid, 0)], axis=1)

        def step(state: tuple[Any, ...], now: list[Any]) -> tuple[Any, Any]:
            projected, real = now
            new = cell.advance(projected, state)
            kept = zip(new, state, strict=True)
            new = tuple(ops.where(real > 0.5, after, before) for after, before in kept)
            return new, new

        start = cell.start(ops.shape(inputs)[0])
        last, states = scan_steps(step, start, (cell.project(steps), valid))
        hidden = states[0]  # [source, directions, batch, units]
        outputs = hidden[:, 0]
        if self.directions == 2:
            outputs = ops.concatenate([outputs, ops.flip(hidden[:, 1], 0)], axis=-1)
        outputs = ops.transpose(outputs, (1, 0, 2)) * ops.cast(mask[..., None], outputs.dtype)
        final = [ops.concatenate([x[d] for d in range(self.directions)], axis=-1) for x in last]
        return outputs, final

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}
