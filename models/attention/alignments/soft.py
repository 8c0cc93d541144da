"""The alignment that gives every position some weight."""

from __future__ import annotations

from typing import Any

from keras import ops

from models.attention.alignments.base import Alignment, masked_softmax
from models.serialization import register


@register
class SoftAlignment(Alignment):
    """The softmax of the scores: every unmasked position gets some weight.

    Bahdanau et al. 2015, "Neural Machine Translation by Jointly Learning to Align and
    Translate", §3.1; Luong et al. 2015, eq. 7.
    """

    def call(
        self,
        scores: Any,
        mask: Any = None,
        query: Any = None,
        position: Any = None,
        training: bool = False,
        drawn: Any = None,
    ) -> Any:
        return ops.cast(masked_softmax(scores, mask), self.compute_dtype)
