"""Layers as their source describes them."""

import pytest

from regard.core.bounds import Positive
from regard.models.attention.alignments.soft import SoftAlignment
from regard.models.attention.scores.products import DotScore, LowRankScore
from regard.models.layer_sources import implementations, read_choices
from tests.models.layer_files import SCALED


def test_a_name_is_taken_once(tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(SCALED)
    with pytest.raises(ValueError, match=r"two\.py.*'scaled'"):
        read_choices(tmp_path)


def test_an_option_without_a_type_is_refused(tmp_path):
    (tmp_path / "scaled.py").write_text(SCALED.replace("factor: Positive = 3", "factor=3"))
    with pytest.raises(ValueError, match="factor"):
        read_choices(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("factor: Positive = 3", "factor: Positive"), "the option factor has no default"),
        (("factor: Positive = 3", "factor: Positive = _FACTOR"), "_FACTOR, is no literal"),
    ],
)
def test_an_option_needs_a_literal_as_its_default(tmp_path, change, message):
    (tmp_path / "scaled.py").write_text(SCALED.replace(*change))
    with pytest.raises(ValueError, match=rf"scaled.py:\d+: ScaledLayer: .*{message}"):
        read_choices(tmp_path)


DERIVED = '''
from regard.models import serialization
from regard.models.attention.alignments.soft import SoftAlignment
from regard.models.attention.scores.products import DotScore, LowRankScore


@serialization.choice("half")
class HalfScore(LowRankScore):
    """Half of it."""


@serialization.choice("double")
class DoubleScore(DotScore):
    """Twice it."""


@serialization.choice("softer")
class SofterAlignment(SoftAlignment):
    """Softer."""
'''


def test_options_and_facts_of_a_base_class_in_another_module_are_inherited(tmp_path):
    (tmp_path / "derived.py").write_text(DERIVED)
    choices = read_choices(tmp_path)
    assert list(choices) == ["double", "half", "softer"]
    assert choices["half"].options["rank"].default == LowRankScore().settings["rank"]
    assert choices["double"].attributes["needs_equal_depths"] is DotScore.needs_equal_depths
    assert choices["softer"].attributes["has_zeros"] is SoftAlignment.has_zeros


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("(LowRankScore)", "(Unknown)"),
        ("(LowRankScore)", "(LowRankScore[int])"),
        ("(LowRankScore)", "(products.LowRankScore)"),
        ("import DotScore, LowRankScore", "import DotScore"),
        ("import DotScore, LowRankScore", "import DotScore, LowRankScores"),
        ("class DoubleScore", "class HalfScore"),
        ('"half")', '"half", factor=2)'),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path, change, message):
    (tmp_path / "derived.py").write_text(DERIVED.replace(change, message))
    with pytest.raises(ValueError, match=r"derived\.py:\d+: .*(HalfScore|half)"):
        read_choices(tmp_path)


def test_a_fact_that_an_instance_computes_is_no_fact_of_the_class(tmp_path):
    method = "    def build(self, *shapes):\n        self.needs_equal_depths = False\n"
    text = DERIVED.replace('    """Twice it."""\n', f'    """Twice it."""\n\n{method}')
    assert text != DERIVED
    (tmp_path / "derived.py").write_text(text)
    assert "needs_equal_depths" not in read_choices(tmp_path)["double"].attributes


def test_the_constructor_is_that_of_the_first_base_class(tmp_path):
    text = DERIVED.replace(
        "class HalfScore(LowRankScore)", "class HalfScore(LowRankScore, LocationScore)"
    )
    text += "\nfrom regard.models.attention.scores.location import LocationScore\n"
    (tmp_path / "derived.py").write_text(text)
    half = read_choices(tmp_path)["half"]
    assert list(half.options) == ["rank"]
    assert half.attributes["reads_content"] is True


def test_a_type_may_be_imported_for_type_checkers_only(tmp_path):
    source = SCALED.replace(
        "from regard.core.bounds import Positive, Size",
        "if TYPE_CHECKING:\n    from regard.core.bounds import Positive, Size",
    )
    assert source != SCALED
    source = source.replace("factor: Positive", "factor: 'Positive'")
    (tmp_path / "scaled.py").write_text(source)
    options = read_choices(tmp_path)["scaled"].options
    assert options["factor"].type is Positive


def test_implementations_name_module_and_class(tmp_path):
    file = tmp_path / "scaled.py"
    file.write_text(SCALED)
    expected = {"plain": "regard.a.scaled:PlainLayer", "scaled": "regard.a.scaled:ScaledLayer"}
    assert implementations(tmp_path, "regard.a.*") == expected
    assert implementations(file, "regard.a.scaled") == expected
