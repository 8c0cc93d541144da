"""Where a section names spans, and what is wrong with that."""

from __future__ import annotations

import pytest

from components.corpus_gen.span_paths import fixed, mistakes, places

PAIR = {"source": ["a.en", "{SPAN}.en"], "target": ["a.de", "{SPAN}.de"]}


def test_patterns_are_found_with_their_keys():
    found = places({"train": PAIR, "eval": "e.tsv", "test": ["t.tsv", "t-{SPAN}.tsv"]})
    assert [(place.key, place.pattern) for place in found] == [
        ("data.train.source", "{SPAN}.en"),
        ("data.train.target", "{SPAN}.de"),
        ("data.test", "t-{SPAN}.tsv"),
    ]


def test_what_is_no_pattern_belongs_to_every_run():
    assert fixed(PAIR) == {"source": ["a.en"], "target": ["a.de"]}
    assert fixed({"source": "{SPAN}.en", "target": "{SPAN}.de"}) is None
    assert fixed("a.tsv") == ["a.tsv"]
    assert fixed("{SPAN}.tsv") is None


@pytest.mark.parametrize(
    "section",
    [
        {"train": "a.tsv", "spans": {"window": None, "test_share": 0.0}},
        {"train": PAIR, "spans": {"window": 3, "first": 1, "last": 1, "test_share": 0.5}},
        {"train": "{YYYY}-{MM}-{DD}.tsv", "spans": {"first": "2026-11-20"}},
        {"train": "{SPAN}/{VERSION}/*.tsv", "spans": {"marker": "_SUCCESS"}},
        {"train": "{SPAN}.tsv", "spans": {"window": 1, "replay": 0.2, "without": (3, 4)}},
        {"train": "{SPAN}.tsv", "test": "t.tsv", "spans": {"marker": "done-{SPAN}"}},
    ],
)
def test_right_sections(section):
    assert list(mistakes(section)) == []


@pytest.mark.parametrize(
    ("section", "key", "told"),
    [
        ({"train": "{span}.tsv"}, "data.train", "did you mean {SPAN}?"),
        ({"train": "a.tsv", "test": "{SPAN}.tsv"}, "data.test", "follows the spans of data.train"),
        (
            {"train": {"source": "{SPAN}.en", "target": "all.de"}},
            "data.train.target",
            "all sides need the placeholders of data.train.source",
        ),
        (
            {"train": {"source": ["all.en"], "target": ["{SPAN}.de"]}},
            "data.train.source",
            "all sides need the placeholders of data.train.target",
        ),
        (
            {"train": "{SPAN}.tsv", "test": "{YYYY}-{MM}-{DD}.tsv"},
            "data.train",
            "numbers here, and dates in data.test",
        ),
        ({"train": "a.tsv", "spans": {"window": 3}}, "data.spans", "no path in data.train has"),
        ({"train": "a.tsv", "spans": {"test_share": 0.1}}, "data.spans", "no path in data.train"),
        (
            {"train": "{SPAN}.tsv", "spans": {"first": "2026-11-20"}},
            "data.spans.first",
            "a whole number is expected",
        ),
        (
            {"train": "{YYYY}{MM}{DD}.tsv", "spans": {"last": 20}},
            "data.spans.last",
            "a date, YYYY-MM-DD, is expected",
        ),
        (
            {"train": "{SPAN}.tsv", "spans": {"first": 3, "last": 2}},
            "data.spans.first",
            "is after data.spans.last",
        ),
        (
            {"train": "{YYYY}-{MM}-{DD}.tsv", "spans": {"without": ["2026-11-20", 9]}},
            "data.spans.without",
            "a date, YYYY-MM-DD, is expected, as in the paths; 9 was given",
        ),
        (
            {"train": "{SPAN}.tsv", "spans": {"replay": 0.2, "window": None}},
            "data.spans.replay",
            "give data.spans.window too",
        ),
        (
            {"train": "a.tsv", "spans": {"replay": 0.2, "window": 1}},
            "data.spans",
            "no path in data.train has",
        ),
        (
            {"train": "{SPAN}.tsv", "spans": {"marker": "_SUCCESS"}},
            "data.spans.marker",
            "put {SPAN} into its name, such as _SUCCESS-{SPAN}",
        ),
        (
            {"train": "{SPAN}/{VERSION}.tsv", "spans": {"marker": "_SUCCESS"}},
            "data.spans.marker",
            "such as _SUCCESS-{VERSION}",
        ),
        (
            {
                "train": {"source": "{SPAN}-{VERSION}.en", "target": "{SPAN}.de"},
                "spans": {"marker": "S-{SPAN}-{VERSION}"},
            },
            "data.spans.marker",
            "data.train.target has no {VERSION}, which S-{SPAN}-{VERSION} would be named by",
        ),
        (
            {"train": "{SPAN}.tsv", "spans": {"marker": "{span}"}},
            "data.spans.marker",
            "did you mean {SPAN}?",
        ),
    ],
)
def test_what_cannot_be_is_told_with_its_key(section, key, told):
    ((path, message),) = mistakes(section)
    assert (".".join(path), told in message) == (key, True), message
