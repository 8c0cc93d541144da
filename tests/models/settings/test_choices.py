"""The choices that the settings allow are those that the code has."""

from __future__ import annotations

import typing

import pytest

from models.attention import ALIGNMENTS, SCORES
from models.decoders import DECODERS
from models.encoders import ENCODERS
from models.layers.cells import CELLS
from models.layers.pooling import POOLINGS
from models.penalties import PENALTIES
from models.search import SEARCHES
from models.settings import attention, decoders, encoders, search
from models.similarity import COMPARISONS
from models.tasks.found import LIMITS
from models.tasks.similarity import settings as similarity
from pipeline.config.annotations import models_in, type_of
from pipeline.config.training import Penalties


def choices(section: type, key: str) -> set[str]:
    return set(typing.get_args(section.model_fields[key].annotation))


def types(union: object) -> set[str]:
    return {str(type_of(section)) for section in models_in(union)}


@pytest.mark.parametrize(
    ("union", "registry"),
    [
        (attention.Score, SCORES),
        (attention.Alignment, ALIGNMENTS),
        (encoders.Encoder, ENCODERS),
        (decoders.Decoder, DECODERS),
        (search.Search, SEARCHES),
    ],
)
def test_types(union: object, registry: typing.Iterable[str]) -> None:
    assert types(union) == set(registry)


def test_cells() -> None:
    assert choices(encoders.RecurrentEncoder, "cell") == set(CELLS)


@pytest.mark.parametrize(
    ("union", "registry"), [(attention.Score, SCORES), (attention.Alignment, ALIGNMENTS)]
)
def test_attention_takes_every_option(union: object, registry: dict[str, type]) -> None:
    """What the YAML can say of a score or an alignment, its class takes; and the default is one."""
    for section in models_in(union):
        options = section().model_dump(exclude={"type"})
        registry[str(type_of(section))](**options)


@pytest.mark.parametrize("section", models_in(search.Search))
def test_search_takes_every_option(section: type) -> None:
    limits = set(LIMITS)
    SEARCHES[str(type_of(section))](**section().model_dump(exclude={"type", *limits}))


def test_penalties() -> None:
    assert set(Penalties.model_fields) == set(PENALTIES)


def test_poolings() -> None:
    assert types(similarity.Pooling) == set(POOLINGS)
    for section in models_in(similarity.Pooling):
        POOLINGS[str(type_of(section))](**section().model_dump(exclude={"type"}))


def test_comparisons() -> None:
    assert choices(similarity.Model, "comparison") == set(COMPARISONS)
