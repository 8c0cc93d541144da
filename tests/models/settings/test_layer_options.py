"""Sections read from the source of layers."""

import pickle
from typing import Literal

import pytest
from pydantic import ValidationError

from regard.models.attention import ALIGNMENTS, SCORES
from regard.models.layers.pooling import POOLINGS
from regard.models.schedules import SCHEDULES
from regard.models.settings.attention import AlignmentSection, ScoreSection
from regard.models.settings.layer_options import LayerSection, implementations, read_choices
from regard.models.settings.training import ScheduleSection
from regard.models.tasks.similarity.description import PoolingSection

SCALED = '''
from typing import Literal

from regard.models.settings.base import Positive, Size
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


def test_a_name_is_taken_once(tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(SCALED)
    with pytest.raises(ValueError, match=r"two\.py.*'scaled'"):
        read_choices(tmp_path)


def test_implementations_name_module_and_class(tmp_path):
    file = tmp_path / "scaled.py"
    file.write_text(SCALED)
    expected = {"plain": "regard.a.scaled:PlainLayer", "scaled": "regard.a.scaled:ScaledLayer"}
    assert implementations(tmp_path, "regard.a.*") == expected
    assert implementations(file, "regard.a.scaled") == expected


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
