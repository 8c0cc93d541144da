"""The recurrent encoder."""

from typing import Any

from keras import ops

from regard.models.layers.cells import create_cells
from regard.models.layers.dropout import Dropout
from regard.models.layers.embeddings import source_embedding
from regard.models.layers.loops import scan_steps
from regard.models.serialization import ConfiguredLayer, constructor_arguments, register
from regard.models.tensors import Memory, Tensor


@register
class RecurrentEncoder(ConfiguredLayer):
    """A stack of recurrent layers over the source, in one direction or both.

    Bahdanau et al. 2015, §3.2 (bidirectional annotations); Luong et al. 2015, §4 (stacked).
    Padding never changes a state, so padding does not change the result of a row.

    Args:
        vocabulary: the size of the source vocabulary, as in ``source_embedding``.
        dimensions: the number of coordinates of a point.
        embedding: the depth of the embeddings.
        dropout: the dropout rate of the input of every layer and of the memory.
        units: the size of a state in one direction.
        layers: the number of layers.
        bidirectional: read in both directions; the memory has the depth ``2 * units``.
        cell: a name in ``CELLS``.
        residual: add a layer's input to its output if both have the same depth (Wu et al. 2016,
            §3.1).
        reverse: read every row from its last token to its first (Sutskever et al. 2014, §3.3).
            The memory stays in the order of the source.
        scale: multiply the embeddings by the square root of their depth, so that they start with
            variance 1. With smaller inputs attention learns late. Pretrained vectors are not
            scaled.

    Shapes: ids ``[batch, source]``, or points as ``PointEmbedding`` takes
    them → a memory, a dictionary of ``values`` ``[batch, source, depth]``, ``mask`` ``[batch,
    source]`` and ``final_states``, the final states as ``[batch, layers * directions * units]``
    for each tensor of a cell's state, the top layer last.

    Raises:
        ValueError: the cell is unknown.
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
        reverse: bool = False,
        scale: bool = True,
        dimensions: int = 2,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.settings = constructor_arguments(locals())
        policy = self.dtype_policy
        self.directions = 2 if bidirectional else 1
        # Whether each direction reads from the end.
        self.backward = [reverse, not reverse] if bidirectional else [reverse]
        self.embedding = source_embedding(
            vocabulary, embedding, dropout, scale, dimensions, dtype=policy, name="embedding"
        )
        self.cells = create_cells(cell, units, layers, directions=self.directions, dtype=policy)
        self.dropouts = [Dropout(dropout, dtype=policy) for _ in self.cells]

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

    def call(self, ids: Tensor, training: bool = False) -> Memory:
        mask = self.embedding.mask(ids)
        outputs = self.embedding(ids, training=training)
        float_mask = ops.cast(mask[..., None], outputs.dtype)
        finals = []
        for cell, dropout in zip(self.cells, self.dropouts, strict=True):
            inputs = outputs
            outputs, final = self._run(cell, inputs, mask, training)
            outputs = dropout(outputs * float_mask, training=training)
            if self.settings["residual"] and inputs.shape[-1] == self.depth:
                outputs = outputs + inputs * float_mask
            finals.append(final)
        final = [ops.concatenate(parts, axis=-1) for parts in zip(*finals, strict=True)]
        return {"values": outputs, "mask": mask, "final_states": final}

    def _run(
        self, cell: Any, inputs: Tensor, mask: Tensor, training: bool
    ) -> tuple[Tensor, list[Tensor]]:
        """Run all directions of a layer in one loop; return outputs and final states.

        A row that is read from its end starts with its padding, which does not change the state.
        """
        steps = self._by_direction(ops.transpose(inputs, (1, 0, 2)))
        valid = self._by_direction(ops.transpose(mask)[..., None])
        start = cell.start(ops.shape(inputs)[0])

        def step(state: tuple[Tensor, ...], now: list[Tensor]) -> tuple[Tensor, ...]:
            projected, is_valid = now
            advanced = cell.advance(projected, state)
            return tuple(
                ops.where(is_valid > 0.5, new, old)
                for new, old in zip(advanced, state, strict=True)
            )

        last, states = scan_steps(step, start, (cell.project(steps), valid))
        hidden = states[0]  # [source, directions, batch, units]
        outputs = [
            ops.flip(direction, 0) if backward else direction
            for direction, backward in zip(ops.unstack(hidden, axis=1), self.backward, strict=True)
        ]
        outputs = ops.transpose(ops.concatenate(outputs, axis=-1), (1, 0, 2))
        final = [ops.concatenate(ops.unstack(x), axis=-1) for x in last]
        return outputs, final

    def _by_direction(self, steps: Tensor) -> Tensor:
        """Stack ``[source, batch, depth]`` to ``[source, directions, batch, depth]``."""
        return ops.stack([ops.flip(steps, 0) if b else steps for b in self.backward], axis=1)
