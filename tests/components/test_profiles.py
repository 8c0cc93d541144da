from __future__ import annotations

import json
import subprocess
import sys

import pytest

from components import profiles
from components.errors import UserError
from components.profiles import BOUNDS, histogram, read, words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Don't stop, Tom: 3.14!", ["Don't", "stop", "Tom", "3", "14"]),
        ("l’eau d'été", ["l’eau", "d'été"]),
        ("我有3个apple吗？", ["我", "有", "3", "个", "apple", "吗"]),
        ("カタカナ ひらがな", ["カ", "タ", "カ", "ナ", "ひ", "ら", "が", "な"]),
        ("น้ำ", ["น้", "ำ"]),
        ("हिन्दी में लिखा", ["हिन्दी", "में", "लिखा"]),
        ("می\u200cخواهم بروم", ["می\u200cخواهم", "بروم"]),
        ("Он сказал: e\u0301te\u0301", ["Он", "сказал", "\u00e9t\u00e9"]),
        ("\u00e9t\u00e9 e\u0301te\u0301", ["\u00e9t\u00e9"] * 2),
        (" … ", []),
        ("", []),
    ],
)
def test_words_of_a_text(text, found):
    assert words(text) == found


@pytest.mark.parametrize(
    "text", ["snake_case '80s rock'n'roll", "Straße – „übel“ l’eau", "Ωμέγα, Ёлка №5 ª²"]
)
def test_the_quick_way_gives_the_same_words(text):
    assert not profiles._NOT_PLAIN.search(text)
    assert words(text) == profiles._WORD.findall(text)


def test_lengths_fall_between_bounds():
    counts = histogram({0: 1, 5: 2, 6: 4, 7: 8, 5000: 16, 5001: 32})
    assert counts[:3] == [3, 4, 8]
    assert counts[-2:] == [16, 32]
    assert len(counts) == len(BOUNDS) + 1
    assert (BOUNDS[0], BOUNDS[-1]) == (5, 5000)
    assert sorted({*BOUNDS}) == list(BOUNDS)


def test_a_profile_is_read(tmp_path):
    path = tmp_path / "profile.json"
    path.write_text(json.dumps({"rows": 1, "features": {}}))
    assert read(path, "Remove it.")["rows"] == 1


@pytest.mark.parametrize("content", ["{", "[]", '{"features": []}', None])
def test_what_is_no_profile_is_told(tmp_path, content):
    path = tmp_path / "profile.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UserError) as caught:
        read(path, "Remove it.")
    assert (caught.value.where, caught.value.remedy) == (str(path), "Remove it.")


LENGTHS = {"bounds": [5], "counts": [1, 0]}
WORDS = {"total": 1, "distinct": 1, "once": 1, "words": {"a": 1}, "complete": True}


@pytest.mark.parametrize(
    ("entry", "good"),
    [
        ({"lengths": LENGTHS}, True),
        ({**WORDS, "lengths": LENGTHS}, True),
        (WORDS, False),
        ({"total": 1, "lengths": LENGTHS}, False),
        ({**WORDS, "words": ["a"], "lengths": LENGTHS}, False),
        ({"lengths": {"bounds": [5]}}, False),
        ([], False),
    ],
)
def test_every_entry_is_looked_at(tmp_path, entry, good):
    path = tmp_path / "profile.json"
    path.write_text(json.dumps({"features": {"source": entry}}))
    if good:
        assert read(path, "Remove it.")["features"] == {"source": entry}
    else:
        with pytest.raises(UserError, match="no profile"):
            read(path, "Remove it.")


def test_it_is_imported_without_tensorflow():
    code = "import sys, components.profiles, components.drift; print('tensorflow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
