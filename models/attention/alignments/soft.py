"""Soft attention: the softmax of the scores."""

from typing import Any

from keras import ops

from regard.models.attention.alignments.base import Alignment, masked_softmax
from regard.models.serialization import register
from regard.models.tensors import Tensor


@register
class SoftAlignment(Alignment):
    """Softmax of the scores: every unmasked position gets a positive weight.

    Bahdanau et al. 2015, "Neural Machine Translation by Jointly Learning to Align and
    Translate", §3.1; Luong et al. 2015, eq. 7.
    """

    def call(self, scores: Tensor, mask: Tensor = None, **context: Any) -> Tensor:
        return ops.cast(masked_softmax(scores, mask), self.compute_dtype)
