"""The dimensions of a search space, from the ranges of a configuration."""

import functools
import typing
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from regard.components.settings.tune import Range, TuneConfig
from regard.components.tuner.space import Dimension, lookup
from regard.models.settings.annotations import models_in


def dimensions(tune: TuneConfig, sections: Any) -> tuple[Dimension, ...]:
    """Return the dimensions of a search.

    Args:
        tune: the section ``tune``.
        sections: an object with the sections ``model`` and ``training``, whose types say which
            numbers are integers.
    """
    ranges = tune.search_space.items()
    return tuple(_dimension(key, range_, sections) for key, range_ in ranges)


def number_type(key: str, sections: Any) -> type | None:
    """Return the type of number that a key takes, float or int; None if it takes none."""
    *path, name = key.split(".")
    owner = functools.reduce(lookup, path, sections)
    annotation = type(owner).model_fields[name].annotation if isinstance(owner, BaseModel) else None
    if models_in(annotation):
        return None
    types = set(_scalar_types(annotation))
    if float in types:
        return float
    return int if int in types else None


def _dimension(key: str, range_: Range, sections: Any) -> Dimension:
    if range_.choice is not None:
        return Dimension(key, choices=list(range_.choice))
    low, high = range_.log or range_.linear or ()
    integer = number_type(key, sections) is int
    return Dimension(key, low, high, range_.step, log=range_.log is not None, integer=integer)


def _scalar_types(annotation: Any) -> Iterator[Any]:
    """Yield the types inside an annotation."""
    parts = typing.get_args(annotation)
    if not parts:
        yield annotation
    for part in parts:
        yield from _scalar_types(part)
