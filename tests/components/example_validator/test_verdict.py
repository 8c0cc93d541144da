from __future__ import annotations

import pytest

from components.errors import UserError
from components.example_validator.rows import Shard
from components.example_validator.tally import Tally, reference
from components.example_validator.verdict import findings, refuse, sentence

SHARDS = [Shard(0, "train", "t"), Shard(1, "eval", "e"), Shard(2, "test", "x")]


def found(name, counts, limit, action="fail", rows=(100, 10, 10)):
    tally = Tally(rows=dict(enumerate(rows)))
    contents = {}
    for shard, count in counts.items():
        for row in range(count):
            ref = reference(shard, row)
            tally.add(name, ref)
            contents[ref] = (["a source", ""], f"{SHARDS[shard].split}.en", row + 1)
    checks = {name: {"limit": limit, "action": action}}
    return findings(tally, checks, SHARDS, contents)


@pytest.mark.parametrize(
    ("name", "of"), [("empty_side", 120), ("duplicates", 100), ("overlap", 20)]
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
    rows = {0: (["word " * 500, "kurz"], "a.en", 1)}
    finding = findings(tally, {"too_long": {"limit": 0, "action": "warn"}}, SHARDS, rows)
    assert len(sentence("too_long", finding["too_long"])) < 300
