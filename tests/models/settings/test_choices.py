"""The choices that the settings allow are those that the code has."""

import typing

import pytest

from regard.models.decoders import DECODERS
from regard.models.encoders import ENCODERS
from regard.models.layers.cells import CELLS
from regard.models.layers.positions import MERGES, POSITIONS
from regard.models.losses import PENALTIES
from regard.models.search import SEARCHES, Search
from regard.models.settings import networks, search
from regard.models.settings.annotations import models_in, type_of
from regard.models.settings.training import AttentionPenaltiesConfig
from regard.models.similarity import COMPARISONS
from regard.models.tasks.search_outputs import create_search
from regard.models.tasks.similarity import description as similarity


def choices(section: type, key: str) -> set[str]:
    return set(typing.get_args(section.model_fields[key].annotation))


def types(union: object) -> set[str]:
    return {str(type_of(section)) for section in models_in(union)}


@pytest.mark.parametrize(
    ("union", "registry"),
    [
        (networks.EncoderConfig, ENCODERS),
        (networks.DecoderConfig, DECODERS),
        (search.SearchConfig, SEARCHES),
    ],
)
def test_types(union: object, registry: typing.Iterable[str]) -> None:
    assert types(union) == set(registry)


def test_positions() -> None:
    assert choices(networks.TransformerEncoderConfig, "positions") == set(POSITIONS)
    assert choices(networks.EmbeddingEncoderConfig, "positions") < set(POSITIONS)
    assert choices(networks.EmbeddingEncoderConfig, "position_merge") == set(MERGES)


def test_cells() -> None:
    assert choices(networks.RecurrentEncoderConfig, "cell") == set(CELLS)


def test_an_encoder_takes_every_option_of_its_section() -> None:
    for section in models_in(networks.EncoderConfig):
        options = section().model_dump(exclude={"type"})
        ENCODERS[str(type_of(section))](9, **options)


@pytest.mark.parametrize("section", models_in(search.SearchConfig))
def test_search_takes_every_option(section: type) -> None:
    assert isinstance(create_search(section()), Search)


def test_penalties() -> None:
    assert set(AttentionPenaltiesConfig.model_fields) == set(PENALTIES)


def test_comparisons() -> None:
    assert choices(similarity.SimilarityModelConfig, "comparison") == set(COMPARISONS)
