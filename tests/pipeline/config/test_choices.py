"""The choices of the YAML are those that the code has."""

from __future__ import annotations

import typing

import pytest

from models import tasks
from models.attention import ALIGNMENTS, SCORES
from models.decoders import DECODERS
from models.encoders import ENCODERS
from models.layers.cells import CELLS
from models.metrics import METRICS
from models.search import SEARCHES
from models.tasks import TASKS
from models.tasks.served_text import ServedText
from pipeline.config import attention, model, search
from pipeline.config.annotations import models_in, type_of
from pipeline.config.evaluation import Metric
from pipeline.config.sections import FEATURES, Task


def choices(section: type, key: str) -> set[str]:
    return set(typing.get_args(section.model_fields[key].annotation))


def types(union: object) -> set[str]:
    return {str(type_of(section)) for section in models_in(union)}


@pytest.mark.parametrize(
    ("union", "registry"),
    [
        (attention.Score, SCORES),
        (attention.Alignment, ALIGNMENTS),
        (model.Encoder, ENCODERS),
        (model.Decoder, DECODERS),
        (search.Search, SEARCHES),
    ],
)
def test_types(union: object, registry: typing.Iterable[str]) -> None:
    assert types(union) == set(registry)


def test_cells() -> None:
    assert choices(model.RecurrentEncoder, "cell") == set(CELLS)


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
    limits = set(ServedText.LIMITS)
    SEARCHES[str(type_of(section))](**section().model_dump(exclude={"type", *limits}))


def test_metrics() -> None:
    assert set(typing.get_args(Metric)) == set(METRICS)


@pytest.mark.parametrize("name", sorted(TASKS))
def test_text_features(name: str) -> None:
    assert FEATURES[name] == tasks.get(name).text_features


def test_tasks() -> None:
    assert set(typing.get_args(Task)) == set(TASKS) == set(FEATURES)
