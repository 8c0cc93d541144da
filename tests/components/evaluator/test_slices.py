import json

import pytest

from regard.components.data.target_overlap import text_hash
from regard.components.evaluator.slices import (
    Slice,
    length_names,
    length_ranges,
    make_slices,
    read_vocabulary,
    share_names,
    unknown_share,
)
from regard.components.settings.evaluation import EvaluationConfig
from regard.core.errors import UserError
from regard.models.metrics import Rows
from tests.components.evaluator.evaluating import profile

TEXTS = ["one two", "is it?", "three four one two", "five six", "no"]
ROWS = Rows(
    ["x"] * 5, [[text] for text in TEXTS], {"source": TEXTS, "domain": ["b", "a", "b", None, "a"]}
)
VOCABULARY = frozenset({"one", "two", "three", "is", "it", "six"})


def slices_of(config, lengths=None, vocabulary=None, overlap=None):
    section = EvaluationConfig.model_validate_json(json.dumps(config))
    slices = make_slices(ROWS, lengths, ["source"], vocabulary, overlap, section)
    return [(part.title, list(part.rows)) for part in slices]


def test_by_value():
    assert slices_of({"slices": {"by": ["domain"]}}) == [
        ("domain=", [3]),
        ("domain=a", [1, 4]),
        ("domain=b", [0, 2]),
    ]


def test_rare_values_share_a_slice():
    values = [str(number // 2) for number in range(60)] + ["x", "y"]
    rows = Rows(["a"] * 62, [["a"]] * 62, {"domain": values})
    config = EvaluationConfig(slices={"by": ("domain",)})
    slices = make_slices(rows, None, [], None, None, config)
    assert len(slices) == 31
    assert (slices[-1].name, slices[-1].title) == (None, "domain=(others)")
    assert slices[-1].rows == [60, 61]


def test_by_pattern_of_an_input_or_the_reference():
    patterns = {
        "questions": {"feature": "source", "matches": r"\?$"},
        "numbers": {"feature": "target", "matches": "one|five"},
        "nothing": {"feature": "source", "matches": "zzz"},
    }
    assert slices_of({"slices": {"patterns": patterns}}) == [
        ("pattern=questions", [1]),
        ("pattern=numbers", [0, 2, 3]),
    ]


def test_by_length():
    assert slices_of({"length_buckets": [1, 2]}, lengths=[2, 2, 4, 2, 1]) == [
        ("length=0-1", [4]),
        ("length=2-2", [0, 1, 3]),
        ("length=3+", [2]),
    ]


def test_by_the_share_of_unknown_words():
    config = {"slices": {"oov": [0.0, 0.25, 0.9]}}
    assert slices_of(config, vocabulary=VOCABULARY) == [
        ("oov=0", [0, 1]),
        ("oov=0-0.25", [2]),
        ("oov=0.25-0.9", [3]),
        ("oov=0.9+", [4]),
    ]
    assert slices_of(config) == []
    assert slices_of({"slices": {"oov": None}}, vocabulary=VOCABULARY) == []


def test_by_overlap_with_the_training_split():
    overlap = frozenset(map(text_hash, ("no", "five six", "nobody says that")))
    config: dict = {}
    assert slices_of(config, overlap=overlap) == [
        ("target_overlap=no", [0, 1, 2]),
        ("target_overlap=yes", [3, 4]),
    ]
    assert slices_of(config, overlap=frozenset()) == [("target_overlap=no", [0, 1, 2, 3, 4])]
    assert slices_of(config) == []


def test_any_overlapping_reference_counts():
    rows = Rows(["x"] * 2, [["a", " b "], ["c", "d"]], {})
    slices = make_slices(rows, None, [], None, frozenset([text_hash("b")]), EvaluationConfig())
    assert [(part.title, list(part.rows)) for part in slices] == [
        ("target_overlap=no", [1]),
        ("target_overlap=yes", [0]),
    ]


def test_names_match_a_title_or_a_kind():
    part = Slice("domain", "news", [0])
    assert part.matches("domain")
    assert part.matches("domain=news")
    assert not part.matches("news")
    assert not part.matches("domain=new")


WORDS = frozenset({"a", "red", "bike", "我", "Straße"})


@pytest.mark.parametrize(
    ("texts", "share"),
    [
        (["a red bike."], 0.0),
        (["a red, red boat"], 0.25),
        (["我们"], 0.5),
        (["a Straße", "boat here"], 0.5),
        (["", "?!"], 0.0),
    ],
)
def test_unknown_share_of_running_words(texts, share):
    assert unknown_share(texts, WORDS) == share


def test_words_of_all_inputs_are_known(tmp_path):
    profile(tmp_path, {"first": ["a"], "second": ["b"], "target": ["c"]})
    assert read_vocabulary(tmp_path, ["first", "second"]) == {"a", "b"}


def test_uncounted_words_are_not_known(tmp_path):
    assert read_vocabulary(tmp_path, ["source"]) is None
    profile(tmp_path, {"target": ["a"]})
    assert read_vocabulary(tmp_path, ["source"]) is None


def test_an_invalid_profile_is_an_error(tmp_path):
    (tmp_path / "profile.json").write_text("{")
    with pytest.raises(UserError, match="cannot be read") as caught:
        read_vocabulary(tmp_path, ["source"])
    assert "run it again" in caught.value.remedy


def test_names_of_slices_by_length():
    assert length_names([10, 20]) == ["0-10", "11-20", "21+"]
    assert length_ranges([10, 20]) == [(0, 10), (11, 20), (21, None)]
    assert length_names([]) == ["0+"]


@pytest.mark.parametrize(
    ("bounds", "names"),
    [
        ([0.0, 0.1, 0.25], ["0", "0-0.1", "0.1-0.25", "0.25+"]),
        ([0.05], ["0-0.05", "0.05+"]),
        ([0.0], ["0", ">0"]),
        ([0.5, 1.0], ["0-0.5", "0.5-1", "1+"]),
        (
            [0.1234567, 0.12345678],
            ["0-0.1234567", "0.1234567-0.12345678", "0.12345678+"],
        ),
    ],
)
def test_names_of_slices_by_share(bounds, names):
    assert share_names(bounds) == names
