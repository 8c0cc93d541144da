from __future__ import annotations

import pytest

from components.scripts import name, scripts


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Straße, 12!", {"Latn": 6}),
        ("мир и war", {"Cyrl": 4, "Latn": 3}),
        ("漢字とカナ", {"Hani": 2, "Hira": 1, "Kana": 2}),
        ("שלום", {"Hebr": 4}),
        ("123 … 👍 \u0301", {}),
        ("", {}),
    ],
)
def test_letters_are_counted_by_script(text, found):
    assert scripts(text) == found


def test_scripts_have_names():
    assert [name(code) for code in ("Latn", "Hani", "Cans")] == [
        "Latin",
        "Han",
        "Canadian Aboriginal",
    ]
