import pytest

from regard.components.checks import script
from regard.components.checks.base import RowTexts, TextNames
from regard.components.checks.script import usual_scripts
from regard.components.example_validator.shard_rows import CheckCounts, row_reference
from regard.components.example_validator.shard_scan import count_row_scripts, count_unusual_scripts

NAMES = TextNames(["source"], ["target"], ["target"])


@pytest.fixture
def small_corpus(monkeypatch):
    """A corpus of few letters, where each is a larger share."""
    monkeypatch.setattr(script, "USUAL_SHARE", 0.01)


def counts_of(train, rest=()):
    """The counts of a training shard and of another, each row a source and a target."""
    parts = []
    for shard, rows in enumerate((train, rest)):
        counts = CheckCounts(rows={shard: len(rows)})
        for i, (source, target) in enumerate(rows):
            texts = RowTexts(NAMES, {"source": [source], "target": [target]})
            count_row_scripts(counts, row_reference(shard, i), texts, shard == 0)
        parts.append(counts)
    return CheckCounts.total(parts)


def judge(counts):
    return count_unusual_scripts(counts, usual_scripts(counts.letters))


def unusual_rows(counts):
    return judge(counts).examples.get("script", [])


PLAIN = [("good day", "你好")] * 99


@pytest.mark.usefixtures("small_corpus")
def test_script_of_the_other_side_is_unusual():
    assert unusual_rows(counts_of([*PLAIN, ("你好", "good day")], [("да", "你")])) == [
        (99, None),
        (row_reference(1, 0), None),
    ]


@pytest.mark.usefixtures("small_corpus")
def test_row_counts_once():
    counts = counts_of(PLAIN, [("да", "да"), ("好да", "да")])
    assert judge(counts).counts["script"] == {1: 2}


@pytest.mark.usefixtures("small_corpus")
@pytest.mark.parametrize(
    ("target", "is_unusual"),
    [
        ("我有iPhone", False),
        ("我有ваз", True),
        ("我有一个好ваз", True),
        ("我有一个很好的ваз", False),
        ("…", False),
    ],
)
def test_few_letters_of_another_script(target, is_unusual):
    names = [("good day", "我有 iPhone")] * 10
    assert bool(unusual_rows(counts_of([*PLAIN, *names], [("good", target)]))) is is_unusual


@pytest.mark.usefixtures("small_corpus")
def test_other_counts_do_not_change():
    counts = counts_of([*PLAIN, ("да", "да")])
    counts.add("too_long", 7)
    counts.lengths["source"] = {0: [1, 2]}
    counts.capped, counts.overlaps = 3, b"bytes"
    after = judge(counts)
    assert after.counts == {"too_long": {0: 1}, "script": {0: 1}}
    assert (after.rows, after.lengths) == (counts.rows, counts.lengths)
    assert (after.capped, after.overlaps) == (counts.capped, counts.overlaps)


def test_without_train_no_script_is_unusual():
    assert unusual_rows(counts_of([], [("да", "да")])) == []
