"""The poolings of ``models/layers/pooling.py`` as sections of the YAML file."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from regard.models.settings.base import ByType, name_or_mapping
from regard.models.settings.layer_options import LayerSection, any_of

_POOLINGS = Path(__file__).parents[1] / "layers" / "pooling.py"


class PoolingSection(LayerSection, source=_POOLINGS):
    """A pooling. ``models/layers/pooling.py`` has the layers and their options.

    Attributes:
        type: Pooling type.
    """

    type: str


def _names_without_options() -> Iterator[str]:
    """Yield the poolings that need neither options nor the vector of another sentence."""
    for name, section in PoolingSection.variants.items():
        if section.model_fields.keys() == {"type"} and not section.needs_guide:
            yield name


if TYPE_CHECKING:
    PoolingConfig = PoolingSection
    PoolingName = str
else:
    PoolingConfig = Annotated[
        any_of(PoolingSection.variants.values()), ByType("max"), name_or_mapping
    ]
    PoolingName = Literal[tuple(_names_without_options())]
