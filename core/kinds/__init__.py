"""Kinds of features. Each is one class in a module of its own, and one object in this table."""

from collections.abc import Mapping
from typing import Any

from regard.core.features import Feature, Kind
from regard.core.kinds.image import ImageKind
from regard.core.kinds.number import NumberKind
from regard.core.kinds.points import PointsKind
from regard.core.kinds.positions import PositionsKind
from regard.core.kinds.text import TextKind

TEXT = TextKind()
NUMBER = NumberKind()
IMAGE = ImageKind()
POINTS = PointsKind()
POSITIONS = PositionsKind()
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (TEXT, NUMBER, IMAGE, POINTS, POSITIONS)}


def output_kind(value: Any) -> Kind:
    """Return the kind of an output of a model."""
    return next(kind for kind in KINDS.values() if kind.is_output(value))


def feature_from_json(content: Mapping[str, Any]) -> Feature:
    """Restore a feature from ``Feature.to_json``.

    Raises:
        ValueError: There is no such kind.
    """
    if content["kind"] not in KINDS:
        raise ValueError(f"There is no kind {content['kind']!r} of features.")
    tags = tuple(content.get("tags", ()))
    return Feature(**{**content, "kind": KINDS[content["kind"]], "tags": tags})
