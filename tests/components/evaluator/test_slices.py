from __future__ import annotations

from components.evaluator.slices import Slice, find
from components.evaluator.unknown_words import Vocabulary
from components.seen import key
from models.metrics import Rows

TEXTS = ["one two", "is it?", "three four one two", "five six", "no"]
ROWS = Rows(
    ["x"] * 5, [[text] for text in TEXTS], {"source": TEXTS, "domain": ["b", "a", "b", None, "a"]}
)
KNOWN = Vocabulary(frozenset({"one", "two", "three", "is", "it", "six"}), True)


def found(config, lengths=None, known=None, seen=None):
    slices = find(ROWS, lengths, ["source"], known, seen, config)
    return [(one.title, list(one.rows)) for one in slices]


def test_by_value():
    assert found({"slices": {"by": ["domain"]}}) == [
        ("domain=", [3]),
        ("domain=a", [1, 4]),
        ("domain=b", [0, 2]),
    ]


def test_rare_values_are_one_slice():
    values = [str(number // 2) for number in range(60)] + ["x", "y"]
    rows = Rows(["a"] * 62, [["a"]] * 62, {"domain": values})
    slices = find(rows, None, [], None, None, {"slices": {"by": ["domain"]}})
    assert len(slices) == 31
    assert (slices[-1].name, slices[-1].title) == (None, "domain=(others)")
    assert slices[-1].rows == [60, 61]


def test_by_pattern_of_an_input_or_the_reference():
    patterns = {
        "questions": {"feature": "source", "matches": r"\?$"},
        "numbers": {"feature": "target", "matches": "one|five"},
        "nothing": {"feature": "source", "matches": "zzz"},
    }
    assert found({"slices": {"patterns": patterns}}) == [
        ("pattern=questions", [1]),
        ("pattern=numbers", [0, 2, 3]),
    ]


def test_by_length():
    assert found({"length_buckets": [1, 2]}, lengths=[2, 2, 4, 2, 1]) == [
        ("length=0-1", [4]),
        ("length=2-2", [0, 1, 3]),
        ("length=3+", [2]),
    ]


def test_by_the_share_of_unknown_words():
    config = {"slices": {"oov": [0.0, 0.25, 0.9]}}
    assert found(config, known=KNOWN) == [
        ("oov=0", [0, 1]),
        ("oov=0-0.25", [2]),
        ("oov=0.25-0.9", [3]),
        ("oov=0.9+", [4]),
    ]
    assert found(config) == []
    assert found({"slices": {"oov": None}}, known=KNOWN) == []


def test_by_whether_train_has_the_reference():
    seen = frozenset(map(key, ("no", "five six", "nobody says that")))
    config: dict = {}
    assert found(config, seen=seen) == [("seen=no", [0, 1, 2]), ("seen=yes", [3, 4])]
    assert found(config, seen=frozenset()) == [("seen=no", [0, 1, 2, 3, 4])]
    assert found(config) == []


def test_one_of_several_references_is_enough():
    rows = Rows(["x"] * 2, [["a", " b "], ["c", "d"]], {})
    slices = find(rows, None, [], None, frozenset([key("b")]), {})
    assert [(one.title, list(one.rows)) for one in slices] == [("seen=no", [1]), ("seen=yes", [0])]


def test_a_name_means_one_or_all_of_a_kind():
    one = Slice("domain", "news", [0])
    assert one.called("domain")
    assert one.called("domain=news")
    assert not one.called("news")
    assert not one.called("domain=new")
