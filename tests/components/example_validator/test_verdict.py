from __future__ import annotations

import pytest

from components.errors import UserError
from components.example_validator.rows import Row, Shard
from components.example_validator.tally import Tally, reference
from components.example_validator.verdict import Judge, refuse, sentence
from models.tasks.features import Feature

PAIR = [Feature("source", "text"), Feature("target", "text", role="reference")]
SHARDS = [Shard(0, "train", "t"), Shard(1, "eval", "e"), Shard(2, "test", "x")]


def found(name, counts, limit, action="fail", rows=(100, 10, 10)):
    tally = Tally(rows=dict(enumerate(rows)))
    contents = {}
    for shard, count in counts.items():
        for row in range(count):
            ref = reference(shard, row)
            tally.add(name, ref)
            contents[ref] = Row([["a source"], [""]], f"{SHARDS[shard].split}.en", row + 1)
    checks = {name: {"limit": limit, "action": action}}
    return Judge(checks, SHARDS, PAIR, {}).findings(tally, contents)


def example(name, *rows, **options):
    """The example that one row gives, or the second as nearly the first."""
    tally = Tally(rows={0: 1, 1: 1})
    tally.add(name, reference(len(rows) - 1, 0), 0 if rows[1:] else None)
    checks = {name: {"limit": 0.0, "action": "warn", **options}}
    usual = {"source": {"Latn"}, "target": {"Latn", "Hani"}}
    contents = {
        reference(i, 0): Row([[source], [target]], f"{i}.tsv", 1)
        for i, (source, target) in enumerate(rows)
    }
    finding = Judge(checks, SHARDS, PAIR, usual).findings(tally, contents)[name]
    return finding["examples"][0], sentence(name, finding)


def test_it_is_told_when_not_all_was_measured():
    tally, checks = Tally(rows={0: 1, 1: 1}, capped=1200), {"limit": 0.0, "action": "warn"}
    finding = Judge({"near_overlap": checks}, SHARDS, PAIR, {}).findings(tally, {})["near_overlap"]
    assert finding["capped"] == 1200
    assert "1,200 rows of train may be like over 50 rows" in sentence("near_overlap", finding)
    assert "capped" not in found("overlap", {1: 1}, 0.0)["overlap"]


@pytest.mark.parametrize(
    ("name", "of"),
    [("empty_side", 120), ("duplicates", 100), ("overlap", 20), ("near_overlap", 20)],
)
def test_shares_are_of_the_rows_a_check_looks_at(name, of):
    finding = found(name, {1: 6}, 0.5)[name]
    assert (finding["count"], finding["of"]) == (6, of)
    assert finding["share"] == pytest.approx(6 / of)
    assert finding["splits"] == {"eval": 6}


def test_a_limit_may_be_reached_but_not_passed():
    assert not found("empty_side", {0: 12}, 0.1)["empty_side"]["exceeded"]
    assert found("empty_side", {0: 13}, 0.1)["empty_side"]["exceeded"]


def test_nothing_to_look_at_is_nothing_found():
    assert found("overlap", {}, 0.0, rows=(5, 0, 0))["overlap"]["share"] == 0


def test_a_refusal_names_check_place_limit_and_key():
    with pytest.raises(UserError) as caught:
        refuse(found("empty_side", {0: 12}, 0.01))
    error = caught.value
    assert error.where == "train.en:1"
    assert "empty_side: 12 of 120 rows (10.00%) have an empty side" in error.message
    assert "the limit is 1.00%" in error.message
    assert "data.checks.empty_side.limit" in error.remedy


def test_a_warning_does_not_refuse():
    refuse(found("empty_side", {0: 12}, 0.01, "warn"))


def test_long_texts_are_shortened():
    tally = Tally(rows={0: 1})
    tally.add("too_long", 0)
    rows = {0: Row([["word " * 500], ["kurz"]], "a.en", 1)}
    checks = {"too_long": {"limit": 0, "action": "warn"}}
    finding = Judge(checks, SHARDS, PAIR, {}).findings(tally, rows)
    assert len(sentence("too_long", finding["too_long"])) < 300


def test_a_near_copy_shows_both_places_and_how_near():
    there, here = ("A blond girl sleeps on a couch.", "x"), ("A blond girl sleeps on a  Couch", "y")
    shown, told = example("near_overlap", there, here)
    assert (shown["where"], shown["same_as"]) == ("1.tsv:1", "0.tsv:1")
    assert shown["similarity"] == pytest.approx(27 / 28)
    assert "first 1.tsv:1 (as 0.tsv:1): " in told
    assert told.endswith("(96% alike)")


@pytest.mark.parametrize(
    ("name", "row", "told"),
    [
        ("encoding", ("ok", "das ist schÃ¶n"), "target would be 'das ist schön'"),
        (
            "encoding",
            ("many words before it: schÃ¶n", ""),
            "source would be '...words before it: schön'",
        ),
        ("control_characters", ("a\u200b\u200b\x07", "b"), "source holds U+200B, U+0007"),
        ("script", ("всё", "漢字"), "source is Cyrillic"),
        ("same_sides", ("a", "a"), None),
    ],
)
def test_what_is_wrong_is_told(name, row, told):
    shown, text = example(name, row, share=0.3)
    assert shown.get("told") == told
    assert text.endswith(f"({told})" if told else repr("a | a"))
