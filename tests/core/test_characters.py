"""Blank texts and long runs of combining marks."""

import re
import unicodedata

import pytest
import sentencepiece

from regard.core.characters import MAX_MARKS, is_blank, limit_marks

# Planes 2 to 13, 15 and 16 have ideographs, private characters, and codes without a character.
SAMPLED = (range(0x20000, 0xE0000, 61), range(0xF0000, 0x110000, 61))
CODES = [*range(0xD800), *range(0xE000, 0x20000), *range(0xE0000, 0xF0000)]
CODES += [code for codes in SAMPLED for code in codes]


@pytest.mark.parametrize(
    "text", ["", " ", "\t\n\0", "\u3000\xa0", "\u200b", "\ufeff\u2060", "\ufffd"]
)
def test_a_text_without_visible_characters_is_blank(text):
    assert is_blank(text)
    assert not is_blank(f"{text}.")
    assert not is_blank(f"ا{text}")


def test_letters_marks_digits_punctuation_and_symbols_are_visible():
    # The fillers of Hangul, of Khmer, and the selectors of Mongolian are letters and marks by name.
    hidden = {c for c in map(chr, CODES) if is_blank(c) and unicodedata.category(c)[0] in "LMNPS"}
    names = {unicodedata.name(character).split(" ")[0] for character in hidden}
    assert names <= {
        *("COMBINING", "HANGUL", "HALFWIDTH", "KHMER", "MONGOLIAN", "LOWER", "BRAILLE"),
        *("REPLACEMENT", "VARIATION"),
    }


@pytest.mark.parametrize("rule", ["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"])
def test_a_character_without_tokens_is_blank(rule):
    normalizer = sentencepiece.SentencePieceNormalizer(rule_name=rule, escape_whitespaces=False)
    removed = {c for c in map(chr, CODES) if not normalizer.normalize(c).strip(" ")}
    assert {f"{ord(c):X}" for c in removed if not is_blank(c)} == set()


@pytest.mark.parametrize("marks", ["\u0301\u0316", "\u0f73", "\u0344\u0323", "\uff9e\u0316"])
def test_long_runs_of_marks_are_limited(marks):
    text = f"é a{marks * 40_000} b{marks}"
    limited = limit_marks(text)
    assert limited == f"é a{(marks * MAX_MARKS)[:MAX_MARKS]} b{marks}"
    # The decomposition of a mark has at most two.
    decomposed = unicodedata.normalize("NFKD", limited)
    runs = re.findall("[\u0300-\u036f\u0f71\u0f72\u3099]+", decomposed)
    assert max(map(len, runs)) <= 2 * MAX_MARKS


def test_an_ordinary_text_keeps_its_marks():
    # Vietnamese, Hebrew with points, Thai, Devanagari with a run of vowel signs, and stacked marks.
    texts = ["Tiê\u0301ng Viê\u0323t", "שָׁלוֹם", "ที่นี่", "हिन्दी" * 40, "Z" + "\u0301\u0316" * 15]
    assert [limit_marks(text) for text in texts] == texts
