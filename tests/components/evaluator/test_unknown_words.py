from __future__ import annotations

import pytest

from components.errors import UserError
from components.evaluator.unknown_words import Vocabulary, vocabulary
from tests.components.evaluator.evaluating import profile

KNOWN = Vocabulary(frozenset({"a", "red", "bike", "我", "Straße"}), True)


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
def test_the_share_is_of_the_running_words(texts, share):
    assert KNOWN.unknown(texts) == share


def test_the_words_of_all_inputs_count(tmp_path):
    profile(tmp_path, {"first": ["a"], "second": ["b"], "target": ["c"]})
    found = vocabulary(tmp_path, ["first", "second"])
    assert found == Vocabulary(frozenset({"a", "b"}), True)
    profile(tmp_path, {"first": ["a"]}, complete=False)
    assert not vocabulary(tmp_path, ["first"]).complete


def test_words_that_nobody_has_counted_are_not_known(tmp_path):
    assert vocabulary(tmp_path, ["source"]) is None
    profile(tmp_path, {"target": ["a"]})
    assert vocabulary(tmp_path, ["source"]) is None


def test_a_broken_file_is_told(tmp_path):
    (tmp_path / "profile.json").write_text("{")
    with pytest.raises(UserError, match="cannot be read") as caught:
        vocabulary(tmp_path, ["source"])
    assert "run it again" in caught.value.remedy
