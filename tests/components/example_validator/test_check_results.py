import pytest

from regard.components.data.example_rows import ExampleRow
from regard.components.example_validator.check_results import (
    FindingBuilder,
    check_warnings,
    describe,
    failures,
)
from regard.components.example_validator.shard_rows import (
    CheckCounts,
    Shard,
    row_reference,
)
from regard.components.example_validator.target_checks import TargetSettings
from tests.components.corpora import TRANSLATION, checks_of

SHARDS = [Shard(0, "train", "t"), Shard(1, "eval", "e"), Shard(2, "test", "x")]


def findings_of(counts, contents, name, usual_scripts=None, **check):
    builder = FindingBuilder(
        checks_of(**{name: check}),
        SHARDS,
        TRANSLATION,
        TargetSettings("nmt_nfkc").check_context(usual_scripts),
    )
    return builder.findings(counts, contents)


def findings(name, rows_by_shard, limit, action="fail", rows=(100, 10, 10)):
    counts = CheckCounts(rows=dict(enumerate(rows)))
    contents = {}
    for shard, count in rows_by_shard.items():
        for row in range(count):
            ref = row_reference(shard, row)
            counts.add(name, ref)
            contents[ref] = ExampleRow([["a source"], [""]], f"{SHARDS[shard].split}.en", row + 1)
    return findings_of(counts, contents, name, limit=limit, action=action)


def example(name, *rows, **options):
    """The example of one row, or of the second one as a near duplicate of the first."""
    counts = CheckCounts(rows={0: 1, 1: 1})
    counts.add(name, row_reference(len(rows) - 1, 0), 0 if rows[1:] else None)
    usual = {"source": {"Latn"}, "target": {"Latn", "Hani"}}
    contents = {
        row_reference(i, 0): ExampleRow([[source], [target]], f"{i}.tsv", 1)
        for i, (source, target) in enumerate(rows)
    }
    finding = findings_of(counts, contents, name, usual, limit=0.0, action="warn", **options)[name]
    return finding["examples"][0], describe(name, finding)


def test_capped_comparisons_are_reported():
    counts = CheckCounts(rows={0: 1, 1: 1}, capped=1200)
    finding = findings_of(counts, {}, "near_overlap", limit=0.0)["near_overlap"]
    assert finding["capped"] == 1200
    expected = "1,200 rows of train had more than 50 similar candidates"
    assert expected in describe("near_overlap", finding)
    assert "capped" not in findings("overlap", {1: 1}, 0.0)["overlap"]


@pytest.mark.parametrize(
    ("name", "total"),
    [("empty_side", 120), ("duplicates", 100), ("overlap", 20), ("near_overlap", 20)],
)
def test_share_of_examined_rows(name, total):
    finding = findings(name, {1: 6}, 0.5)[name]
    assert (finding["count"], finding["total"]) == (6, total)
    assert finding["share"] == pytest.approx(6 / total)
    assert finding["splits"] == {"eval": 6}


@pytest.mark.parametrize("name", ["overlap", "near_overlap"])
def test_a_leak_names_the_setting_that_removes_it(name):
    text = describe(name, findings(name, {1: 6}, 0.0)[name])
    assert text.endswith(f"`data.checks.{name}: {{action: drop}}` removes the training rows")


def test_limit_may_be_reached_but_not_exceeded():
    assert not findings("empty_side", {0: 12}, 0.1)["empty_side"]["exceeded"]
    assert findings("empty_side", {0: 13}, 0.1)["empty_side"]["exceeded"]


def test_failure_names_check_row_limit_and_key():
    (error,) = failures(findings("empty_side", {0: 12}, 0.01))
    assert error.where == "train.en:1"
    assert "empty_side: 12 of 120 rows (10.00%) have an empty side" in error.message
    assert "the limit is 1.00%" in error.message
    assert "data.checks.empty_side.limit" in error.remedy


def test_warning():
    warned = findings("empty_side", {0: 12}, 0.01, "warn")
    assert not list(failures(warned))
    assert len(check_warnings(warned)) == 1


def test_near_duplicate_shows_both_rows_and_similarity():
    one, other = ("A blond girl sleeps on a couch.", "x"), ("A blond girl sleeps on a  Couch", "y")
    row, text = example("near_overlap", one, other)
    assert (row["where"], row["same_as"]) == ("1.tsv:1", "0.tsv:1")
    assert row["similarity"] == pytest.approx(27 / 28)
    assert "first 1.tsv:1 (same as 0.tsv:1): " in text
    assert " (96% similar). " in text


@pytest.mark.parametrize(
    ("name", "row", "detail"),
    [
        ("encoding", ("ok", "das ist schÃ¶n"), "target should be 'das ist schön'"),
        ("normalization", ("a…", "b…"), "target becomes 'b...', not 'b…'"),
        (
            "encoding",
            ("many words before it: schÃ¶n", ""),
            "source should be '…words before it: schön'",
        ),
        ("control_characters", ("a\u200b\u200b\x07", "b"), "source contains U+200B, U+0007"),
        ("script", ("всё", "漢字"), "source is Cyrillic"),
        ("html_entities", ("a &quot;b&quot;", "c"), "source contains &quot;"),
        ("markup", ("a <b>x</b>", "c</i>"), "target contains </i>"),
        ("tokenization", ("a", "b , c"), "target contains ,"),
        ("same_sides", ("a", "a"), None),
    ],
)
def test_details(name, row, detail):
    row_example, text = example(name, row)
    assert row_example.get("detail") == detail
    assert (f" ({detail})" if detail else repr("a | a")) in text


def test_no_examined_rows():
    assert findings("overlap", {}, 0.0, rows=(5, 0, 0))["overlap"]["share"] == 0
