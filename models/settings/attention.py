"""The section ``model.attention``: a score and an alignment."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from regard.core.bounds import Size
from regard.core.plugins import PluginTable
from regard.models.settings.base import ByType, PluginSection, Section, name_or_mapping
from regard.models.settings.layer_options import LayerSection, any_of

_LAYERS = Path(__file__).parents[1] / "attention"


class ScoreSection(LayerSection, source=_LAYERS / "scores"):
    """A score. ``models/attention/scores/`` has the layers, their options and class attributes.

    Attributes:
        type: Score type.
    """

    type: str


class AlignmentSection(LayerSection, source=_LAYERS / "alignments"):
    """An alignment, as its layer in ``models/attention/alignments/`` describes it.

    Attributes:
        type: Alignment type.
    """

    type: str

    @property
    def is_reinforced(self) -> bool:
        """Whether the alignment samples in training, so that REINFORCE has to train it."""
        return getattr(self, "training", "") == "reinforce"


SCORES: PluginTable[type[Section]] = PluginTable("regard.scores", ScoreSection.variants, Section)
ALIGNMENTS: PluginTable[type[Section]] = PluginTable(
    "regard.alignments", AlignmentSection.variants, Section
)


class OtherScoreConfig(PluginSection):
    """Stands for the scores of other packages."""

    registry = SCORES


class OtherAlignmentConfig(PluginSection):
    """Stands for the alignments of other packages."""

    registry = ALIGNMENTS


if TYPE_CHECKING:
    ContentScoreConfig = ScoreSection
    ScoreConfig = ScoreSection
    ScoreOption = str | dict[str, Any]
    AlignmentConfig = AlignmentSection
else:
    _SCORES = ScoreSection.variants.values()
    # Scores that depend on the content of the source.
    ContentScoreConfig = any_of([*(x for x in _SCORES if x.reads_content), OtherScoreConfig])
    ScoreConfig = Annotated[
        any_of([*_SCORES, OtherScoreConfig]), ByType("general"), name_or_mapping
    ]
    ScoreOption = ScoreConfig  # as an argument of a layer, by its name or as a mapping
    AlignmentConfig = Annotated[
        any_of([*AlignmentSection.variants.values(), OtherAlignmentConfig]),
        ByType("soft"),
        name_or_mapping,
    ]


class AttentionConfig(Section):
    """A score, an alignment, and what they weigh.

    Attributes:
        score: Score of a query and a key: a name, or a mapping with type. Default: general;
            additive for bahdanau, scaled_dot for transformer.
        alignment: How scores become weights: a name, or a mapping with type.
        values: shared: the source vectors are keys and values; split: their first halves are keys,
            their second halves values (Daniluk 2017, Mino 2017).
    """

    score: ScoreConfig = ScoreSection.create("general")
    alignment: AlignmentConfig = AlignmentSection.create("soft")
    values: Literal["shared", "split"] = "shared"


class DecoderAttentionConfig(AttentionConfig):
    """A score and an alignment, of one or several heads.

    Attributes:
        heads: Number of heads of a recurrent decoder; must divide the width of the encoder. A
            transformer decoder has its own key heads.
    """

    heads: Size = 1

    def to_kwargs(self) -> dict[str, Any]:
        """Return the fields without a default ``heads``, which only a recurrent decoder takes."""
        options = super().to_kwargs()
        return {name: x for name, x in options.items() if name != "heads" or self.heads > 1}
