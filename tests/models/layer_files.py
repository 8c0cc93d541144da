"""The source of layers that YAML files can choose."""

SCALED = '''
from typing import Literal

from regard.core.bounds import Positive, Size
from regard.models.serialization import choice


class Base(Layer):
    """A base class.

    Args:
        width: Width
            of the layer.
    """

    is_wide = True

    def __init__(self, width: Size | None = None, **kwargs):
        super().__init__(**kwargs)


@choice("scaled", mode="b")
class ScaledLayer(Base):
    """A scaled layer (Author 2020).

    More about it.

    Args:
        factor: Factor of the scores.
        mode: One of two.
        seed: For Python only.
    """

    limit = max(1, 2)

    def __init__(self, factor: Positive = 3, mode: Literal["a", "b"] = "a", *, seed=0, **kwargs):
        super().__init__(**kwargs)


@choice("plain")
class PlainLayer(Base):
    """A layer with the options of its base class."""
'''
