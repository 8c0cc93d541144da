"""Sections read from the source of layers."""

import pickle
from typing import Literal

import pytest
from pydantic import ValidationError

from regard.models.attention import ALIGNMENTS, SCORES
from regard.models.layers.pooling import POOLINGS
from regard.models.schedules import SCHEDULES
from regard.models.settings.attention import AlignmentSection, ScoreSection
from regard.models.settings.layer_options import LayerSection
from regard.models.settings.training import ScheduleSection
from regard.models.tasks.similarity.description import PoolingSection
from tests.models.layer_files import SCALED


@pytest.fixture
def kind(tmp_path):
    (tmp_path / "scaled.py").write_text(SCALED)

    class TinySection(LayerSection, source=tmp_path):
        """A tiny layer.

        Attributes:
            type: Tiny type.
        """

        type: str

    return TinySection


def test_options_are_the_arguments_up_to_the_star(kind):
    scaled = kind.variants["scaled"]
    assert list(scaled.model_fields) == ["type", "factor", "mode"]
    assert scaled.__doc__ == "A scaled layer (Author 2020)."
    assert scaled.model_fields["type"].annotation == Literal["scaled"]
    assert scaled.model_fields["type"].description == "Tiny type."
    assert scaled.model_fields["factor"].description == "Factor of the scores."
    assert kind.create("scaled").model_dump() == {"type": "scaled", "factor": 3, "mode": "b"}
    assert kind.create("scaled", factor=5).to_kwargs() == {"factor": 5, "mode": "b"}


def test_options_and_attributes_of_a_base_class_are_inherited(kind):
    plain = kind.variants["plain"]
    assert list(plain.model_fields) == ["type", "width"]
    assert plain.model_fields["width"].description == "Width of the layer."
    assert kind.variants["scaled"].is_wide is plain.is_wide is True
    assert not hasattr(kind.variants["scaled"], "limit")  # no literal


@pytest.mark.parametrize(
    "options", [{"factor": 0}, {"factor": "3"}, {"mode": "c"}, {"seed": 1}, {"type": "plain"}]
)
def test_invalid_options_are_refused(kind, options):
    with pytest.raises(ValidationError):
        kind.variants["scaled"].model_validate(options)


def test_sections_survive_pickling():
    section = ScoreSection.create("additive", layers=2)
    copy = pickle.loads(pickle.dumps(section))
    assert copy == section
    assert type(copy) is type(section)
    assert copy.model_fields_set == {"layers"}


@pytest.mark.parametrize(
    ("kind", "table"),
    [
        (ScoreSection, SCORES),
        (AlignmentSection, ALIGNMENTS),
        (PoolingSection, POOLINGS),
        (ScheduleSection, SCHEDULES),
    ],
)
def test_every_layer_is_a_choice_with_texts(kind, table):
    assert list(kind.variants) == sorted(table)
    for section in kind.variants.values():
        for name, field in section.model_fields.items():
            assert field.description, (section, name)
