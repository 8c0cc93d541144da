import gzip
import os
from pathlib import Path

import ftfy
import pytest

from regard.components.data.text_checks import (
    check_texts,
    control_characters,
    dominant_scripts,
    fix_encoding,
)
from tests.components.corpora import checks_of

CHECKS = checks_of(empty_side={}, length_ratio={"ratio": 3.0}, too_long={"characters": 10})


@pytest.mark.parametrize(
    ("row", "names"),
    [
        (("abc", "ab"), []),
        ((" \u3000", "ab"), ["empty_side"]),
        (("ab", "\u200b\ufeff"), ["empty_side"]),
        (("abcd" * 2, "\u200b" * 8), ["empty_side", "length_ratio"]),
        (("ab", "a\u200b"), []),
        (("", "abcd"), ["empty_side", "length_ratio"]),
        (("abc", "a" * 9), []),
        (("abc", "a" * 10), ["length_ratio"]),
        (("漢" * 11, "a" * 9), ["too_long"]),
    ],
)
def test_checks_of_lengths(row, names):
    assert check_texts([[row[0]]], [[row[1]]], CHECKS) == names


@pytest.mark.parametrize(
    ("sides", "names"),
    [
        ([["abc"], ["ab", "a" * 9]], []),  # only the first one counts
        ([["abc"], ["a" * 10, "ab"]], ["length_ratio"]),
        ([["abc"], ["ab", " "]], ["empty_side"]),
        ([["abc"], ["ab", "a" * 11]], ["too_long"]),
        ([["a" * 10]], []),  # a single side has no ratio
        ([["abc"], []], []),  # an optional side is missing
        ([], []),
        ([["a"], ["ab"], ["abcd"]], ["length_ratio"]),
    ],
)
def test_sides_with_several_texts_or_none(sides, names):
    assert check_texts(sides[:-1], sides[-1:], CHECKS) == names


@pytest.mark.parametrize(
    ("inputs", "references", "same"),
    [
        ([["Tom!"]], [["Tom! "]], True),
        ([["Tom!"]], [["tom!"]], False),
        ([["a", "b"]], [["c", "b"]], True),
        ([["a"], ["a"]], [], False),  # both are inputs
        ([["15:10 €"]], [["15:10 €"]], False),  # no letters
        ([[" "]], [[""]], False),
    ],
)
def test_same_sides(inputs, references, same):
    names = check_texts(inputs, references, checks_of(same_sides={}))
    assert names == (["same_sides"] if same else [])


@pytest.mark.parametrize(
    ("text", "controls"),
    [
        ("two\tcolumns\r\nand lines", []),
        ("Stra\u00dfe, caf\u00e9, 漢字, e\u0301", []),
        ("sink\xad.", ["\xad"]),
        ("\ufeffstart", ["\ufeff"]),
        ("a\x07b\x9fc\x7f", ["\x07", "\x9f", "\x7f"]),
        ("\u202eabc\u202c \u200f", ["\u202e", "\u202c", "\u200f"]),
        ("one\rtwo\r\nthree\u2028four\u2029", ["\r", "\u2028", "\u2029"]),
        ("lost \ufffd and private \ue000\U00100000", ["\ufffd", "\ue000", "\U00100000"]),
        ("می\u200cخواهم, क्\u200dष, 👩\u200d🚀", []),
        ("ന്\u200d ന്\u200d, ه\u200d.", []),
        ("a\u200cb, end\u200d, می\u200c", ["\u200c", "\u200d", "\u200c"]),
        ("\U0001f3f4\U000e0067\U000e0062\U000e007f", []),  # a flag
        ("hidden \U000e0067", ["\U000e0067"]),
    ],
)
def test_control_characters(text, controls):
    assert control_characters(text) == controls
    names = check_texts([[text]], [], checks_of(control_characters={}))
    assert names == ["control_characters"] * bool(controls)


@pytest.mark.parametrize(
    ("text", "fixed"),
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
def test_wrong_encoding(text, fixed):
    assert fix_encoding(text) == fixed
    names = check_texts([[text]], [], checks_of(encoding={}))
    assert names == ["encoding"] * (text != fixed)


@pytest.mark.skipif("REGARD_DATA" not in os.environ, reason="real corpora")
@pytest.mark.parametrize(
    "encoding", ["latin-1", "cp1252", "cp1250", "cp1251", "mac-roman", "cp437"]
)
def test_fast_test_misses_nothing_that_ftfy_fixes(encoding):
    path = Path(os.environ["REGARD_DATA"], "multi30k", "train.de.gz")
    fixes = 0
    for line in gzip.decompress(path.read_bytes()).decode().splitlines()[:3000]:
        broken = line.encode().decode(encoding, "replace")
        fixed = ftfy.fix_encoding(broken)
        assert fix_encoding(broken) == fixed
        fixes += fixed != broken
    assert fixes > 500


def test_dominant_scripts():
    assert dominant_scripts({"Latn": 3, "Cyrl": 3, "Grek": 1}) == ["Cyrl", "Latn"]
    assert dominant_scripts({"Latn": 3}) == ["Latn"]
    assert dominant_scripts({}) == []
