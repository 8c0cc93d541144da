"""Soft attention: the softmax of the scores."""

from typing import Any

from keras import ops

from regard.models.attention.alignments.base import Alignment, masked_softmax
from regard.models.serialization import choice
from regard.models.tensors import Tensor


@choice("soft")
class SoftAlignment(Alignment):
    """Softmax: all source positions get weight.

    Bahdanau et al. 2015, "Neural Machine Translation by Jointly Learning to Align and
    Translate", §3.1; Luong et al. 2015, eq. 7.
    """

    has_zeros = False

    def call(self, scores: Tensor, mask: Tensor = None, **context: Any) -> Tensor:
        return ops.cast(masked_softmax(scores, mask), self.compute_dtype)
