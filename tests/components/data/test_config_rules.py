"""The rules of the section ``data``; see also ``test_plan_agreement`` and the configuration."""

import pytest

from regard.components.data.config_rules import validate_data
from regard.components.data.span_rules import pattern_locations
from regard.core.features import Feature
from regard.core.kinds import TEXT
from tests.components.corpora import CAPTIONED, SCORED, SUMMARISED, TRANSLATION, corpus_of

PAIR = {"source": ["a.en", "{SPAN}.en"], "target": ["a.de", "{SPAN}.de"]}
DATE = "{YYYY}-{MM}-{DD}.tsv"


def problems(features=TRANSLATION, **section):
    corpus = corpus_of("/data", features, **section)
    return [
        (".".join(map(str, problem.path)), problem.message)
        for problem in validate_data(corpus.config, corpus.features)
    ]


def test_pattern_locations():
    corpus = corpus_of("/data", train=PAIR, eval="e.tsv", test=["t.tsv", "t-{SPAN}.tsv"])
    assert [(one.key, one.pattern) for one in pattern_locations(corpus.config)] == [
        ("data.train.source", "{SPAN}.en"),
        ("data.train.target", "{SPAN}.de"),
        ("data.test", "t-{SPAN}.tsv"),
    ]


@pytest.mark.parametrize(
    "section",
    [
        {"train": "a.tsv", "spans": {"window": None, "test_share": 0.0}},
        {"train": PAIR, "spans": {"window": 3, "first": 1, "last": 1, "test_share": 0.5}},
        {"train": DATE, "spans": {"first": "2026-11-20"}},
        {"train": "{SPAN}/{VERSION}/*.tsv", "spans": {"marker": "_SUCCESS"}},
        {"train": "{SPAN}.tsv", "spans": {"window": 1, "replay": 0.2, "exclude": (3, 4)}},
        {"train": "{SPAN}.tsv", "spans": {"marker": "done-{SPAN}"}},
        {"train": "a.TSV.gz", "columns": {"source": 2, "target": 1}},
        {"train": ["a.jsonl", "b.ndjson"], "eval": "e.parquet", "test": "t.tsv"},
        {"train": "a.txt", "format": "tsv", "split": {"by": "target"}},
        {"train": "a.csv", "columns": {"source": "en", "target": 2}, "encoding": "ISO-8859-15"},
        {"train": "a-{SPAN}", "columns": {"source": "en", "target": "fr"}},
        {"train": "a.tsv", "eval": "e.parquet", "test": "t.jsonl", "delimiter": ";"},
        {"train": "a.parquet", "monolingual": ["b.txt"], "encoding": "cp1252"},
        {"train": PAIR, "eval": "e.tsv", "test": "e", "columns": {"source": "a", "target": "b"}},
    ],
)
def test_valid_sections(section):
    assert problems(**section) == []


@pytest.mark.parametrize(
    ("train", "spans", "key", "message"),
    [
        ("a.tsv", {"window": 3}, "spans", "no path in data.train has"),
        ("a.tsv", {"test_share": 0.1}, "spans", "no path in data.train has"),
        ("{SPAN}.tsv", {"first": "2026-11-20"}, "spans.first", "a whole number is expected"),
        (DATE, {"last": 20}, "spans.last", "a date, YYYY-MM-DD, is expected"),
        ("{SPAN}.tsv", {"first": 3, "last": 2}, "spans.first", "is after"),
        (DATE, {"exclude": ["2026-11-20", 9]}, "spans.exclude", "as in the paths; got 9"),
        ("{SPAN}.tsv", {"replay": 0.2}, "spans.replay", "set data.spans.window as well"),
        (
            "{SPAN}.tsv",
            {"marker": "END"},
            "spans.marker",
            "add {SPAN} to its name",
        ),
        ("{SPAN}/{VERSION}.tsv", {"marker": "END"}, "spans.marker", "for example END-{VERSION}"),
        (
            {"source": "{SPAN}-{VERSION}.en", "target": "{SPAN}.de"},
            {"marker": "S-{SPAN}-{VERSION}"},
            "spans.marker",
            "data.train.target has no {VERSION} to fill in S-{SPAN}-{VERSION}",
        ),
        ("{SPAN}.tsv", {"marker": "{span}"}, "spans.marker", "Did you mean {SPAN}?"),
        ("{SPAN}.tsv", {"test_share": 0.9}, "split", "eval, test and spans.test_share take 1 of"),
    ],
)
def test_broken_rules_of_spans(train, spans, key, message):
    check_problem(key, message, train=train, spans=spans)


@pytest.mark.parametrize(
    ("train", "key", "value", "users"),
    [
        ("a.parquet", "encoding", "cp1252", "parallel, tsv, csv, jsonl, tmx"),
        ("a.jsonl", "delimiter", ";", "tsv, csv"),
        ("a.arrow", "header", True, "tsv, csv"),
        ({"source": "a", "target": "b"}, "columns", {"source": "en", "target": "fr"}, None),
    ],
)
def test_a_key_that_the_format_does_not_use_is_refused(train, key, value, users):
    ((path, message),) = problems(train=train, **{key: value})
    assert path == f"data.{key}"
    assert key in message
    assert users is None or message.endswith(users)


@pytest.mark.parametrize("name", ["utf-16", "gb18030", "latin1", "windows-1252", "cp037", "sjis"])
def test_encodings(name):
    assert problems(train="a.csv", encoding=name) == []


def check_problem(key, message, **section):
    ((path, text),) = problems(**section)
    assert (path, message in text) == (f"data.{key}", True), text


UNEQUAL = {"source": ["all.en"], "target": ["{SPAN}.de"]}
UNKNOWN_SIDE = "unknown side. Did you mean target? Choices: source, target"
UNKNOWN_SPLIT = "the split cannot depend on tagret. Did you mean target? Choices: source, target"


@pytest.mark.parametrize(
    ("train", "section", "key", "message"),
    [
        ("{span}.tsv", {}, "train", "Did you mean {SPAN}?"),
        (PAIR | {"target": ["all.de", "b.de"]}, {}, "train.target", "data.train.source"),
        (UNEQUAL, {}, "train.source", "placeholders of data.train.target"),
        ("a.txt", {}, "train", "the file names do not show one format"),
        ("a.parquet.gz", {}, "train", "parquet in gzip is not supported"),
        ("a.arrow.gz", {}, "train", "arrow in gzip is not supported"),
        ("a.tmx", {}, "columns", "tmx files need the language of each side"),
        ("a.tmx", {"columns": {"source": 1, "target": "en"}}, "columns.source", "; got 1"),
        (
            "a.csv",
            {"columns": {"source": 1, "target": "fr"}, "header": False},
            "columns.target",
            "got 'fr'",
        ),
        ("a.csv", {"encoding": "latn-1"}, "encoding", "Did you mean latin1?"),
        ("a.csv", {"encoding": "rot13"}, "encoding", "unknown encoding 'rot13'"),
        ("a.csv", {"encoding": "idna"}, "encoding", "unknown encoding 'idna'"),
        ("a.csv", {"encoding": "a\0"}, "encoding", "unknown encoding"),
        ("a.txt", {"format": "parallel"}, "train", "one path for each side"),
        (PAIR, {"format": "tsv"}, "train", "tsv files hold all sides"),
        ({"source": "a.en"}, {}, "train", "the side target is missing"),
        (PAIR | {"taget": "a"}, {}, "train.taget", UNKNOWN_SIDE),
        ("a.jsonl", {"columns": {"source": "a", "target": 2}}, "columns.target", "; got 2"),
        ("a.tsv", {"split": {"by": "tagret"}}, "split.by", UNKNOWN_SPLIT),
    ],
)
def test_broken_rules(train, section, key, message):
    check_problem(key, message, train=train, **section)


@pytest.mark.parametrize(
    ("features", "by", "choices"),
    [
        ((*SCORED[:2], Feature("other", TEXT, "extra")), "score", "one"),
        ((*SCORED[:2], Feature("other", TEXT, "extra")), "other", "one"),
        ((Feature("title", TEXT, optional=True), *CAPTIONED), "caption", "image"),
        (SUMMARISED, "title", "text"),
    ],
)
def test_features_that_cannot_decide_the_split(features, by, choices):
    ((key, message),) = problems(features, train="a.tsv", split={"by": by})
    assert key == "data.split.by"
    assert message.startswith(f"the split cannot depend on {by}. ")
    assert message.endswith(f"Choices: {choices}")


def test_spans_of_test_must_be_those_of_train():
    files = {"eval": "e.tsv", "test": "{SPAN}.tsv"}
    assert problems(train="a.tsv", **files) == [
        ("data.test", "needs a placeholder in data.train as well")
    ]
    files["test"] = DATE
    assert problems(train="{SPAN}.tsv", **files) == [
        ("data.train", "spans are numbers here, and dates in data.test; use one of them")
    ]
