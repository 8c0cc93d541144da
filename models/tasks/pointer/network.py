"""The network of the pointer task."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from keras import ops

from regard.models.decoders.pointer import PointerDecoder
from regard.models.encoders import create_encoder
from regard.models.seq2seq import Seq2Seq
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.greedy_decoding import GreedyDecoder, OutputLimits
from regard.models.tasks.network import Processors, Rows, dtype_policy
from regard.models.tasks.pointer.description import PointerModelConfig
from regard.models.tasks.seq2seq_network import Seq2SeqNetwork
from regard.models.tensors import Tensor
from regard.models.vocabulary import FIRST_POSITION


class PointerNetwork(Seq2SeqNetwork):
    """Points and positions of some of them: sorting, convex hulls, tours and the like."""

    variable_axes = {"source": (1,), "target": (1,)}

    def source_input(self, rows: Rows) -> np.ndarray:
        """Return the points with a mark, ``[batch, n, dimensions + 1]``, see ``mark_points``."""
        flat, counts = rows["points"].to_dense(padding=0), rows["points_length"].values
        # A row without points has no dimensions.
        dimensions = int((rows["points"].lengths // np.maximum(counts, 1)).max())
        points = flat.reshape(len(flat), -1, dimensions)
        mask = np.arange(points.shape[1]) < counts[:, None]
        return np.concatenate([points, mask[:, :, None].astype(points.dtype)], axis=2)

    def batch_decoder(
        self, model: Seq2Seq, processors: Processors, settings: Any, search: Any
    ) -> GreedyDecoder:
        """Return the decoder of positions; the limits of ``search`` do not apply."""
        return GreedyDecoder(model, OutputLimits(_limits, _longest), _positions)

    def build(
        self,
        model: PointerModelConfig,
        training: TrainingConfig,
        vocabulary_sizes: Mapping[str, int],
    ) -> Seq2Seq:
        policy = dtype_policy(training)
        common = {"dropout": model.dropout, "dtype": policy}
        encoder = create_encoder(
            model.encoder, None, embedding=model.width, dimensions=model.dimensions, **common
        )
        decoder = PointerDecoder(
            encoder.depth,
            encoder.final_depth,
            visits=model.visits,
            **model.decoder.to_kwargs(),
            **common,
        )
        seq2seq = Seq2Seq(encoder, decoder, dtype=policy)
        seq2seq.build()
        return seq2seq


def _limits(source: Tensor) -> Tensor:
    """Return the numbers of marked points, and one step for the end, int32 ``[batch]``."""
    return ops.cast(ops.sum(source[:, :, -1], axis=1), "int32") + 1


def _longest(shape: Sequence[int]) -> int:
    return shape[1] + 1


def _positions(ids: np.ndarray) -> list[list[int]]:
    """Return the positions of padded ids ``[batch, length]``."""
    return [[int(i) - FIRST_POSITION for i in row if i >= FIRST_POSITION] for row in ids]
