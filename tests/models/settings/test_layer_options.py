"""Sections read from the source of layers."""

import inspect
import pickle
from typing import Literal

import pytest
from pydantic import ValidationError

from regard.models.attention import ALIGNMENTS, SCORES
from regard.models.layers.pooling import POOLINGS
from regard.models.schedules import SCHEDULES
from regard.models.settings.attention import AlignmentSection, ScoreSection
from regard.models.settings.layer_options import LayerSection
from regard.models.settings.networks import PoolingSection
from regard.models.settings.training import ScheduleSection
from regard.models.tasks.similarity.description import SimilarityModelConfig
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
    "score", [ScoreSection.create("dot"), ScoreSection.create("low_rank", rank=3)]
)
def test_a_section_in_a_section_survives_pickling(score):
    pooling = PoolingSection.create("top_down", score=score)
    copy = pickle.loads(pickle.dumps(SimilarityModelConfig(pooling=pooling)))
    assert copy.pooling == pooling
    assert type(copy.pooling.score) is type(score)


def test_an_unknown_layer_is_refused_with_a_suggestion():
    with pytest.raises(ValueError, match=r"'additve'.*Did you mean additive"):
        ScoreSection.create("additve")


def test_an_unknown_type_is_named_with_its_file(tmp_path):
    (tmp_path / "scaled.py").write_text(SCALED.replace("factor: Positive", "factor: Integer"))
    with pytest.raises(ValueError, match=r"scaled\.py: ScaledLayer: the type of factor, Integer"):

        class TinySection(LayerSection, source=tmp_path):
            type: str


SCORE_NAMES = "additive concat cosine dot general location low_rank scaled_dot"
ALIGNMENT_NAMES = "hard local_m local_p soft sparsemax thresholded top_k"
POOLING_NAMES = "gate max mean mean_max self_attention top_down"
SCHEDULE_NAMES = "constant cosine exponential inverse_sqrt"


@pytest.mark.parametrize(
    ("kind", "table", "names"),
    [
        (ScoreSection, SCORES, SCORE_NAMES),
        (AlignmentSection, ALIGNMENTS, ALIGNMENT_NAMES),
        (PoolingSection, POOLINGS, POOLING_NAMES),
        (ScheduleSection, SCHEDULES, SCHEDULE_NAMES),
    ],
)
def test_sections_are_what_python_knows_of_the_layers(kind, table, names):
    assert list(kind.variants) == sorted(table) == names.split()
    for name, section in kind.variants.items():
        layer = table[name]
        own = section.model_fields
        assert all(field.description for field in own.values()), section
        parameters = inspect.signature(layer.__init__).parameters.values()
        options = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "self"]
        assert {"type", *(option.name for option in options)} == own.keys()
        facts = vars(section).keys() & set(dir(layer)) - set(dir(LayerSection))
        assert {fact: getattr(layer, fact) for fact in facts} == {
            fact: getattr(section, fact) for fact in facts
        }


@pytest.mark.parametrize(
    ("kind", "table"),
    [(ScoreSection, SCORES), (AlignmentSection, ALIGNMENTS), (PoolingSection, POOLINGS)],
)
def test_a_layer_takes_every_option_of_its_section(kind, table):
    for name, section in kind.variants.items():
        table[name](**section().to_kwargs())
