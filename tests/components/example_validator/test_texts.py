from __future__ import annotations

import gzip
import os
from pathlib import Path

import ftfy
import pytest

from components.example_validator.texts import controls, find, repaired

CHECKS = {
    "empty_side": {},
    "length_ratio": {"ratio": 3.0},
    "too_long": {"characters": 10},
}


@pytest.mark.parametrize(
    ("row", "names"),
    [
        (("abc", "ab"), []),
        ((" \u3000", "ab"), ["empty_side"]),
        (("", "abcd"), ["empty_side", "length_ratio"]),
        (("abc", "a" * 9), []),
        (("abc", "a" * 10), ["length_ratio"]),
        (("漢" * 11, "a" * 9), ["too_long"]),
    ],
)
def test_what_is_found_in_a_row(row, names):
    assert find([[row[0]]], [[row[1]]], CHECKS) == names


@pytest.mark.parametrize(
    ("sides", "names"),
    [
        ([["abc"], ["ab", "a" * 9]], []),  # the first alone counts for the ratio
        ([["abc"], ["a" * 10, "ab"]], ["length_ratio"]),
        ([["abc"], ["ab", " "]], ["empty_side"]),
        ([["abc"], ["ab", "a" * 11]], ["too_long"]),
        ([["a" * 10]], []),  # a single side has no ratio
        ([["abc"], []], []),  # one that is missing, and may be
        ([], []),
        ([["a"], ["ab"], ["abcd"]], ["length_ratio"]),
    ],
)
def test_sides_with_several_texts_or_none(sides, names):
    assert find(sides[:-1], sides[-1:], CHECKS) == names


def test_a_check_that_is_off_finds_nothing():
    assert find([[""]], [["schÃ¶n\u200b" * 100]], {}) == []


@pytest.mark.parametrize(
    ("inputs", "references", "same"),
    [
        ([["Tom!"]], [["Tom! "]], True),
        ([["Tom!"]], [["tom!"]], False),
        ([["a", "b"]], [["c", "b"]], True),
        ([["a"], ["a"]], [], False),  # two sentences that are compared may be equal
        ([["15:10 €"]], [["15:10 €"]], False),  # what has no letters is the same everywhere
        ([[" "]], [[""]], False),
    ],
)
def test_an_input_that_is_its_answer(inputs, references, same):
    found = find(inputs, references, {"same_sides": {}})
    assert found == (["same_sides"] if same else [])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("two\tcolumns\r\nand lines", []),
        ("Stra\u00dfe, caf\u00e9, 漢字, e\u0301", []),
        ("sink\xad.", ["\xad"]),
        ("\ufeffstart", ["\ufeff"]),
        ("a\x07b\x9fc\x7f", ["\x07", "\x9f", "\x7f"]),
        ("\u202eabc\u202c \u200f", ["\u202e", "\u202c", "\u200f"]),
        ("lost \ufffd and private \ue000\U00100000", ["\ufffd", "\ue000", "\U00100000"]),
        ("می\u200cخواهم, क्\u200dष, 👩\u200d🚀", []),
        ("a\u200cb, end\u200d", ["\u200c", "\u200d"]),
        ("\U0001f3f4\U000e0067\U000e0062\U000e007f", []),  # a flag
        ("hidden \U000e0067", ["\U000e0067"]),
    ],
)
def test_characters_that_show_nothing(text, found):
    assert controls(text) == found
    assert find([[text]], [], {"control_characters": {}}) == ["control_characters"] * bool(found)


@pytest.mark.parametrize(
    ("text", "better"),
    [
        ("das ist schÃ¶n", "das ist schön"),
        ("Stalloneâ€™s son", "Stallone’s son"),
        ("President‚Äôs message", "President’s message"),
        ("voilÃ  tout", "voilà tout"),
        ("Das ist schön, ÄÖÜ.", "Das ist schön, ÄÖÜ."),
        ("我有三個蘋果。", "我有三個蘋果。"),
        ("plain", "plain"),
    ],
)
def test_what_was_decoded_by_the_wrong_encoding(text, better):
    assert repaired(text) == better
    assert find([[text]], [], {"encoding": {}}) == ["encoding"] * (text != better)


@pytest.mark.skipif("REGARD_DATA" not in os.environ, reason="real corpora")
@pytest.mark.parametrize(
    "encoding", ["latin-1", "cp1252", "cp1250", "cp1251", "mac-roman", "cp437"]
)
def test_the_quick_look_overlooks_nothing_that_ftfy_repairs(encoding):
    path = Path(os.environ["REGARD_DATA"], "multi30k", "train.de.gz")
    seen = 0
    for line in gzip.decompress(path.read_bytes()).decode().splitlines()[:3000]:
        broken = line.encode().decode(encoding, "replace")
        better = ftfy.fix_encoding(broken)
        assert repaired(broken) == better
        seen += better != broken
    assert seen > 500
