"""Word alignments of pairs of texts, which guide the attention during training.

The preprocessing imports this module, and not the section ``training``, so that another key of a
training transforms no corpus again.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from regard.core.bounds import Positive, PositiveFloat
from regard.models.settings.base import Section


class AlignmentLinksConfig(Section):
    """Links between the words of source and target.

    Attributes:
        links: Column of data.extra with the links in Pharaoh format, 0-0 1-2: source, then target,
            from 0. Target words without a link are not supervised.
        unit: Unit that links count.
    """

    links: Annotated[str, Field(examples=["links"])]
    unit: Literal["word", "character"] = "word"


class GuidedAlignmentConfig(AlignmentLinksConfig):
    """Supervises the attention with word alignments (Chen 2016, section 3.1; Garg 2019).

    Attributes:
        weight: Weight of the cross-entropy of the attention.
        layer: Decoder layer of a Transformer, from 1; null: the last one.
        head: Attention head of the layer, from 1; null: the mean of all heads.
    """

    weight: PositiveFloat = 0.05
    layer: Positive | None = None
    head: Positive | None = None

    def to_kwargs(self) -> dict[str, Any]:
        """Return what concerns the model as plain values."""
        return self.model_dump(include={"weight", "layer", "head"})
