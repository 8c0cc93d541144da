import pytest

from regard.components.data.text_analysis import (
    count_scripts,
    normalize,
    script_name,
    split_words,
)


@pytest.mark.parametrize(
    ("text", "words"),
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
        ("snake_case '80s rock'n'roll", ["snake_case", "80s", "rock'n'roll"]),
        ("Straße – „übel“ №5 ª²", ["Straße", "übel", "5", "ª²"]),
        (" … ", []),
        ("", []),
    ],
)
def test_split_words(text, words):
    assert split_words(text) == words


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("Straße, 12!", {"Latn": 6}),
        ("мир и war", {"Cyrl": 4, "Latn": 3}),
        ("漢字とカナ", {"Hani": 2, "Hira": 1, "Kana": 2}),
        ("שלום", {"Hebr": 4}),
        ("123 … 👍 \u0301", {}),
        ("", {}),
    ],
)
def test_count_scripts(text, counts):
    assert count_scripts(text) == counts


def test_script_names():
    assert [script_name(code) for code in ("Latn", "Hani", "Cans")] == [
        "Latin",
        "Han",
        "Canadian Aboriginal",
    ]


def test_a_long_run_of_marks_is_normalised_in_linear_time():
    """Sorting the marks of one run took 3.5 s for 40,000; here are a million."""
    text = "a" + "\u0301\u0316" * 500_000
    assert normalize(text) == "á" + "\u0316" * 15 + "\u0301" * 14
    assert len(split_words(f"{text} b")) == 2
