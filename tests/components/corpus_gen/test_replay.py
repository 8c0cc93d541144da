"""The sample of older spans, against sorting all their rows by hash."""

from __future__ import annotations

import hashlib
import json
import math
import random

import pytest

from components.corpus_gen import replay
from components.corpus_gen.convert import convert
from components.corpus_gen.fingerprints import fingerprint
from components.corpus_gen.problems import Problems
from components.corpus_gen.sources import resolve
from components.corpus_gen.spans import settled
from components.corpus_gen.survey import survey
from components.errors import UserError
from tests.components.corpus_gen.corpora import TRANSLATION


def write(folder, name, rows):
    (folder / name).write_text("".join(f"{source}\t{target}\n" for source, target in rows))


def pairs(start, stop):
    return [(f"sentence {i}", f"Satz {i}") for i in range(start, stop)]


@pytest.fixture
def history(tmp_path):
    """Four spans of 200, 100, 300 and 120 rows, with a frozen test set."""
    rows = {1: pairs(0, 200), 2: pairs(1000, 1100), 3: pairs(2000, 2300), 4: pairs(3000, 3120)}
    for span, own in rows.items():
        write(tmp_path, f"{span}.tsv", own)
    write(tmp_path, "fixed.tsv", pairs(9000, 9020))
    return rows


SECTION = {"train": "{SPAN}.tsv", "eval": "fixed.tsv", "test": "fixed.tsv"}


def by_hash(rows):
    """All rows in the order of their hashes, computed apart from the code."""

    def place(row):
        digest = hashlib.blake2b("\x1f".join(row).encode(), digest_size=8, key=b"replay")
        return digest.digest()

    return sorted(rows, key=place)


def replayed(out, newest="4"):
    return {
        tuple(record[side].bytes_list.value[0].decode() for side in ("source", "target"))
        for record in out.records("train")
        if record["span"].bytes_list.value[0].decode() != newest
    }


def test_the_rows_with_the_lowest_hashes_make_up_the_share(history, generate):
    samples = {}
    for share in (0.1, 0.25, 0.5):
        out = generate(f"at-{share}", **SECTION, spans={"window": 1, "replay": share})
        wanted = {0.1: 13, 0.25: 40, 0.5: 120}[share]
        assert wanted == pytest.approx(120 * share / (1 - share), abs=0.5)
        samples[share] = replayed(out)
        lowest = by_hash(history[1] + history[2] + history[3])
        assert samples[share] == {*lowest[:wanted]}
        assert len(out.rows("train")) == 120 + wanted
        assert {row[0] for row in out.rows("eval")} == {f"sentence {i}" for i in range(9000, 9020)}
        assert len(out.rows("test")) == 20
    assert samples[0.1] < samples[0.25] < samples[0.5]


def test_it_is_told_of_each_span(tmp_path, history, generate):
    out = generate(**SECTION, spans={"window": 2, "replay": 0.2})
    one, two, three, four = out.findings["spans"]
    assert [one["replayed"], two["replayed"]] == [True, True]
    assert ["replayed" in span for span in (three, four)] == [False, False]
    assert (one["available"], two["available"]) == (200, 100)
    assert list(one["rows"]) == ["train"]
    lowest = by_hash(history[1] + history[2])[:105]  # a fifth of 420 and themselves
    counts = [sum(row in history[span] for row in lowest) for span in (1, 2)]
    assert one["rows"]["train"] == pytest.approx(counts[0], abs=1)
    assert two["rows"]["train"] == pytest.approx(counts[1], abs=1)
    assert sum(out.findings["rows"].values()) == 420 + 40 + sum(
        span["rows"]["train"] for span in (one, two)
    )
    assert (out.artifact.span, out.artifact.version) == (4, 0)
    data = {"root": str(tmp_path), "features": TRANSLATION, **SECTION}
    seen = survey({**data, "spans": {"window": 2, "replay": 0.2}})
    assert seen.rows == out.findings["rows"]
    for told, found in zip(seen.spans, out.findings["spans"], strict=True):
        assert told["rows"].get("train") == found["rows"]["train"]
        assert told.get("available") == found.get("available")


def test_the_files_order_and_spelling_do_not_matter(tmp_path, history, generate):
    spans = {"window": 1, "replay": 0.25}
    first = replayed(generate("first", **SECTION, spans=spans))
    shuffled = history[1] + history[2] + history[3]
    random.Random(1).shuffle(shuffled)
    for span, rows in enumerate((shuffled[:10], shuffled[10:400], shuffled[400:]), 1):
        write(tmp_path, f"{span}.tsv", [(f" {source}", f"{target} ") for source, target in rows])
    again = replayed(generate("again", **SECTION, spans=spans))
    assert {(source.strip(), target.strip()) for source, target in again} == first


def test_of_a_longer_past_the_same_rows_or_fewer(history, generate):
    spans = {"window": 1, "replay": 0.25}
    earlier = replayed(generate("earlier", **SECTION, spans={**spans, "last": 3}), "3")
    later = replayed(generate("later", **SECTION, spans={**spans, "first": 1, "window": 1}))
    old = {*history[1], *history[2]}
    assert later & old < earlier
    assert later - old


def test_what_is_tested_on_is_not_replayed(tmp_path, generate):
    for span in (1, 2, 3):
        write(tmp_path, f"{span}.tsv", pairs(0, 400))  # every month the same sources
    out = generate(
        train="{SPAN}.tsv",
        split={"eval": 0.1, "test": 0.1},
        spans={"window": 1, "replay": 0.5, "test_share": 0.2},
    )
    held = {row[0] for split in ("eval", "test") for row in out.rows(split)}
    trained = {row[0] for row in out.rows("train")}
    assert len(held) > 80
    assert not held & trained
    for split in ("eval", "test"):
        assert {record["span"].bytes_list.value[0] for record in out.records(split)} == {b"3"}
    one, two, _three = out.findings["spans"]
    assert one["available"] == two["available"] == len(trained)
    # The same row in two spans has one hash: both of them or none, but for the last one.
    assert one["rows"]["train"] == pytest.approx(two["rows"]["train"], abs=1)


def test_a_past_that_is_too_short_is_replayed_whole_and_told(tmp_path, generate, monkeypatch):
    from components import events

    monkeypatch.setenv(events.VARIABLE, str(tmp_path / "events.jsonl"))
    write(tmp_path, "1.tsv", pairs(0, 10))
    write(tmp_path, "2.tsv", pairs(100, 200))
    write(tmp_path, "fixed.tsv", pairs(900, 905))
    spans = {"window": 1, "replay": 0.5}
    out = generate(**SECTION, spans=spans)
    assert len(out.rows("train")) == 110
    (told,) = (event["text"] for event, _ in events.read(tmp_path / "events.jsonl"))
    assert told == (
        "data.spans.replay: 0.5 asks for 100 rows of older spans; "
        "there are 10, and all of them are replayed"
    )
    data = {"root": str(tmp_path), "features": TRANSLATION, **SECTION}
    assert survey({**data, "spans": spans}).notes == [told]


def test_before_there_is_a_past_nothing_is_replayed(tmp_path, generate):
    write(tmp_path, "1.tsv", pairs(0, 10))
    write(tmp_path, "fixed.tsv", pairs(900, 905))
    out = generate(**SECTION, spans={"window": 1, "replay": 0.5})
    assert len(out.rows("train")) == 10
    (span,) = out.findings["spans"]
    assert "replayed" not in span


def test_a_file_that_cannot_be_read_is_refused_as_any_other(tmp_path, history, generate):
    (tmp_path / "2.tsv").write_bytes(b"one\teins\n\xff\xff\tzwei\n")
    with pytest.raises(UserError) as caught:
        generate(**SECTION, spans={"window": 1, "replay": 0.1})
    assert caught.value.where == f"{tmp_path}/2.tsv:2"
    (tmp_path / "2.tsv").write_bytes(b"")
    with pytest.raises(UserError) as caught:
        generate(**SECTION, spans={"window": 1, "replay": 0.1})
    assert caught.value.where == f"{tmp_path}/2.tsv"


def test_what_is_skipped_is_counted_once(tmp_path, history, generate):
    write(tmp_path, "2.tsv", pairs(0, 50))
    with open(tmp_path / "2.tsv", "a") as file:
        file.write("one\n")
    out = generate(**SECTION, bad_rows="skip", spans={"window": 1, "replay": 0.1})
    assert out.findings["skipped"] == 1


def test_only_the_files_to_train_on_are_taken_of_an_older_span(tmp_path, history):
    for span in (1, 2, 3, 4):
        write(tmp_path, f"test-{span}.tsv", pairs(9000, 9005))
    data = {"root": str(tmp_path), "features": TRANSLATION, "train": "{SPAN}.tsv"}
    data |= {"eval": "test-{SPAN}.tsv", "test": "fixed.tsv"}
    found = settled({**data, "spans": {"window": 2, "replay": 0.3}})
    taken = found["spans"]["taken"]
    assert [one["name"] for one in taken] == ["1", "2", "3", "4"]
    assert [one.get("replayed", False) for one in taken] == [True, True, False, False]
    assert [list(one["files"]) for one in taken] == [["train"]] * 2 + [["train", "eval"]] * 2
    assert [group.replay for group in resolve(found)["train"]] == [0.3, 0.3, 0.0, 0.0]
    assert [group.span for group in resolve(found)["eval"]] == ["3", "4"]


def test_an_older_span_must_be_whole(tmp_path, history):
    (tmp_path / "2.tsv").rename(tmp_path / "2.en")
    for span in (1, 3, 4):
        (tmp_path / f"{span}.tsv").rename(tmp_path / f"{span}.en")
        write(tmp_path, f"{span}.de", pairs(0, 3))
    data = {"root": str(tmp_path), "features": TRANSLATION}
    data |= {"train": {"source": "{SPAN}.en", "target": "{SPAN}.de"}}
    assert settled({**data, "spans": {"window": 1}})
    with pytest.raises(UserError, match=r"span 2 is not whole: .*2\.de is not there") as caught:
        settled({**data, "spans": {"window": 1, "replay": 0.1}})
    assert "data.spans.without" in caught.value.remedy
    found = settled({**data, "spans": {"window": 1, "replay": 0.1, "without": [2]}})
    assert [one["name"] for one in found["spans"]["taken"]] == ["1", "3", "4"]


def test_the_share_and_the_older_rows_are_content(tmp_path, history):
    data = {"root": str(tmp_path), "features": TRANSLATION, **SECTION}

    def key(**spans):
        return fingerprint({**data, "spans": {"window": 2, **spans}})

    assert len({key(), key(replay=0.1), key(replay=0.2)}) == 3
    assert key() == fingerprint({**data, "spans": {"first": 3}})
    before = key(replay=0.1), key()
    write(tmp_path, "1.tsv", pairs(0, 199))
    assert key(replay=0.1) != before[0]
    assert key() == before[1]
    # Where there is nothing to replay, the share makes no difference, to TFX's key neither.
    alone = [settled({**data, "spans": {"window": 9, "replay": r}}) for r in (0.0, 0.3)]
    assert alone[0] == alone[1]


def test_a_settled_section_is_replayed_as_it_was(tmp_path, history):
    data = {"root": str(tmp_path), "features": TRANSLATION, **SECTION}
    once = settled({**data, "spans": {"window": 1, "replay": 0.25}})
    before = survey(once)
    write(tmp_path, "5.tsv", pairs(5000, 5100))
    assert settled(json.loads(json.dumps(once))) == once
    assert survey(once) == before


def test_as_many_rows_as_are_asked_for_or_all():
    draw = random.Random(7)
    for _ in range(50):
        tallies = {
            group: {draw.randrange(2**16): draw.randint(1, 50) for _ in range(draw.randint(0, 40))}
            for group in "abc"
        }
        others, share = draw.randint(0, 200), draw.choice((0.05, 0.3, 0.7))
        parts = replay.parts(tallies, others, share)
        taken = sum(parts[group].rows(tally) for group, tally in tallies.items())
        available = sum(sum(tally.values()) for tally in tallies.values())
        assert taken == min(available, replay.wanted(others, share))


def test_of_a_past_with_many_rows_in_every_bin_the_share_is_taken():
    tallies = {group: dict.fromkeys(range(2**16), 500) for group in "abc"}
    parts = replay.parts(tallies, 2800, 0.2)
    assert [parts[group].rows(tallies[group]) for group in "abc"] == [233, 233, 234]


def test_a_row_that_stands_there_many_times_gives_its_fair_part(tmp_path, generate):
    often = next(row for row in pairs(5000, 9000) if replay._bin(row) < 300)
    write(tmp_path, "1.tsv", [often] * 700 + pairs(0, 1000))
    write(tmp_path, "2.tsv", pairs(1000, 2000) + [often] * 300)
    write(tmp_path, "3.tsv", pairs(3000, 3400))
    write(tmp_path, "fixed.tsv", pairs(9000, 9005))
    samples = {}
    for share in (0.2, 0.5):
        spans = {"window": 1, "replay": share}
        out = generate(f"at-{share}", **SECTION, spans=spans)
        one, two, _ = out.findings["spans"]
        wanted = {0.2: 100, 0.5: 400}[share]
        taken = one["rows"]["train"] + two["rows"]["train"]
        assert taken == wanted == len(out.rows("train")) - 400
        copies = sum(row[:2] == often for row in out.rows("train"))
        assert copies == math.ceil(1000 * wanted / 3000)  # as many as of the other old rows
        samples[share] = replayed(out, "3")
        seen = survey({"root": str(tmp_path), "features": TRANSLATION, **SECTION, "spans": spans})
        assert [span["rows"]["train"] for span in seen.spans] == [
            span["rows"]["train"] for span in out.findings["spans"]
        ]
        assert not seen.notes
    assert samples[0.2] < samples[0.5]


def test_every_old_row_is_as_likely_as_any_other(tmp_path):
    write(tmp_path, "1.tsv", pairs(0, 5000))
    data = {"root": str(tmp_path), "features": TRANSLATION, "train": "1.tsv"}
    (group,) = resolve(data)["train"]
    found = replay.tally(group, data, None, Problems())
    assert sum(found.values()) == 5000
    parts = [replay.Part((part + 1) * 2**14, {}).rows(found) for part in range(4)]
    assert parts == pytest.approx([1250, 2500, 3750, 5000], abs=120)


def test_a_second_attempt_draws_the_same_rows(tmp_path):
    write(tmp_path, "1.tsv", pairs(0, 1) * 9)
    data = {"root": str(tmp_path), "features": TRANSLATION, "train": "1.tsv"}
    (group,) = resolve(data)["train"]
    (place,) = replay.tally(group, data, None, Problems())
    drawn = replay.Replayed(None, replay.Part(0, {place: 4}))
    (tmp_path / "Split-train").mkdir()
    for _ in range(2):
        assert convert(0, group, data, drawn, str(tmp_path)).rows == {"train": 4}
