"""The choices of the YAML are those that the code has."""

from __future__ import annotations

import typing

import pytest

from models import tasks
from models.attention import ALIGNMENTS, SCORES
from models.decoders import DECODERS
from models.decoders.recurrent import PATHS
from models.encoders import ENCODERS
from models.layers.cells import CELLS
from models.metrics import METRICS
from models.search import SEARCHES
from models.tasks import TASKS
from pipeline.config import model
from pipeline.config.evaluation import Metric
from pipeline.config.sections import FEATURES, Task


def choices(section: type, key: str) -> set[str]:
    return set(typing.get_args(section.model_fields[key].annotation))


@pytest.mark.parametrize(
    ("section", "key", "registry"),
    [
        (model.Attention, "score", SCORES),
        (model.Attention, "alignment", ALIGNMENTS),
        (model.RecurrentEncoder, "type", ENCODERS),
        (model.RecurrentEncoder, "cell", CELLS),
        (model.RecurrentDecoder, "type", DECODERS),
        (model.RecurrentDecoder, "cell", CELLS),
        (model.RecurrentDecoder, "path", PATHS),
    ],
)
def test_model(section: type, key: str, registry: typing.Iterable[str]) -> None:
    assert choices(section, key) == set(registry)


def test_searches() -> None:
    classes = (model.GreedySearch, model.BeamSearch)
    assert set().union(*(choices(section, "type") for section in classes)) == set(SEARCHES)


def test_metrics() -> None:
    assert set(typing.get_args(Metric)) == set(METRICS)


@pytest.mark.parametrize("name", sorted(TASKS))
def test_text_features(name: str) -> None:
    assert FEATURES[name] == tasks.get(name).text_features


def test_tasks() -> None:
    assert set(typing.get_args(Task)) == set(TASKS) == set(FEATURES)
