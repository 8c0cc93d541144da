"""The replayed sample of older spans, compared with sorting all their rows by hash."""

import hashlib

import pytest

from regard.components.data.fingerprints import fingerprint
from regard.components.data.sources import find_files
from regard.core.errors import UserError
from tests.components.corpora import resolved, table

FILES = {"train": "{SPAN}.tsv", "eval": "fixed.tsv", "test": "fixed.tsv"}


def write(folder, name, rows):
    (folder / name).write_text(table(*rows))


def pairs(start, stop):
    return [(f"sentence {i}", f"Satz {i}") for i in range(start, stop)]


@pytest.fixture
def history(tmp_path):
    """Four spans of 200, 100, 300 and 120 rows, with a fixed test set."""
    rows = {1: pairs(0, 200), 2: pairs(1000, 1100), 3: pairs(2000, 2300), 4: pairs(3000, 3120)}
    for span, own in rows.items():
        write(tmp_path, f"{span}.tsv", own)
    write(tmp_path, "fixed.tsv", pairs(9000, 9020))
    return rows


def sorted_by_hash(rows):
    """All rows in the order of their hashes, computed independently of the code."""

    def digest(row):
        content = "\x1f".join(row).encode()
        return hashlib.blake2b(content, digest_size=8, key=b"replay").digest()

    return sorted(rows, key=digest)


def replayed(out, newest="4"):
    return {
        tuple(record[side].bytes_list.value[0].decode() for side in ("source", "target"))
        for record in out.records("train")
        if record["span"].bytes_list.value[0].decode() != newest
    }


def test_rows_with_the_lowest_hashes_make_up_the_share(history, generate):
    samples = {}
    for share, count in ((0.1, 13), (0.5, 120)):
        assert count == pytest.approx(120 * share / (1 - share), abs=0.5)
        out = generate(f"at-{share}", **FILES, spans={"window": 1, "replay": share})
        samples[share] = replayed(out)
        assert samples[share] == {*sorted_by_hash(history[1] + history[2] + history[3])[:count]}
        assert len(out.rows("train")) == 120 + count
        assert len(out.rows("eval")) == len(out.rows("test")) == 20
    assert samples[0.1] < samples[0.5]


def test_findings_describe_replayed_spans(history, generate):
    out = generate(**FILES, spans={"window": 2, "replay": 0.2})
    one, two, three, four = out.findings["spans"]
    assert ["replayed" in span for span in (one, two, three, four)] == [True, True, False, False]
    assert (one["available"], two["available"]) == (200, 100)
    lowest = sorted_by_hash(history[1] + history[2])[:105]  # a fifth of 525
    counts = [{"train": sum(row in history[span] for row in lowest)} for span in (1, 2)]
    assert [one["rows"], two["rows"]] == counts
    assert out.findings["rows"]["train"] == 525
    assert (out.artifact.span, out.artifact.version) == (4, 0)


def test_evaluation_rows_are_not_replayed(tmp_path, generate):
    for span in (1, 2, 3):
        write(tmp_path, f"{span}.tsv", pairs(0, 400))  # every span has the same sources
    out = generate(
        train="{SPAN}.tsv",
        split={"eval": 0.1, "test": 0.1},
        spans={"window": 1, "replay": 0.5, "test_share": 0.2},
    )
    evaluated = {row[0] for split in ("eval", "test") for row in out.rows(split)}
    trained = {row[0] for row in out.rows("train")}
    assert len(evaluated) > 80
    assert not evaluated & trained
    for split in ("eval", "test"):
        assert {record["span"].bytes_list.value[0] for record in out.records(split)} == {b"3"}
    one, two, _three = out.findings["spans"]
    assert one["available"] == two["available"] == len(trained)
    # The same row in two spans has one hash: both are replayed, or none.
    assert one["rows"] == two["rows"]


def test_skipped_rows_are_counted_once(tmp_path, history, generate):
    write(tmp_path, "2.tsv", [*pairs(0, 50), ["one"]])
    out = generate(**FILES, bad_rows="skip", spans={"window": 1, "replay": 0.1})
    assert out.findings["skipped"] == 1


def test_only_training_files_of_older_spans_are_used(tmp_path, history):
    for span in (1, 2, 3, 4):
        write(tmp_path, f"test-{span}.tsv", pairs(9000, 9005))
    files = {"train": "{SPAN}.tsv", "eval": "test-{SPAN}.tsv", "test": "fixed.tsv"}
    corpus = resolved(tmp_path, **files, spans={"window": 2, "replay": 0.3})
    assert [span.name for span in corpus.spans] == ["1", "2", "3", "4"]
    assert [span.replayed for span in corpus.spans] == [True, True, False, False]
    assert [list(s.files) for s in corpus.spans] == [["train"]] * 2 + [["train", "eval"]] * 2
    groups = find_files(corpus)
    assert [group.replay for group in groups["train"]] == [0.3, 0.3, 0.0, 0.0]
    assert [group.span for group in groups["eval"]] == ["3", "4"]


def test_older_spans_must_be_complete(tmp_path, history):
    for span in (1, 3, 4):
        write(tmp_path, f"{span}.de", pairs(0, 3))
    train = {"source": "{SPAN}.tsv", "target": "{SPAN}.de"}
    with pytest.raises(UserError, match=r"span 2 is incomplete: .*2\.de is missing") as caught:
        resolved(tmp_path, train=train, spans={"window": 1, "replay": 0.1})
    assert "data.spans.exclude" in caught.value.remedy
    corpus = resolved(tmp_path, train=train, spans={"window": 1, "replay": 0.1, "exclude": [2]})
    assert [span.name for span in corpus.spans] == ["1", "3", "4"]


def test_fingerprint_depends_on_share_and_older_rows(tmp_path, history):
    def key(**spans):
        return fingerprint(resolved(tmp_path, **FILES, spans={"window": 2, **spans}))

    assert len({key(), key(replay=0.1), key(replay=0.2)}) == 3
    assert key() == key(window=None, first=3)
    before = key(replay=0.1), key()
    write(tmp_path, "1.tsv", pairs(0, 199))
    assert key(replay=0.1) != before[0]
    assert key() == before[1]
    # Without older spans the share makes no difference, nor in TFX's cache key.
    one, two = (
        resolved(tmp_path, **FILES, spans={"window": 9, "replay": share}) for share in (0.0, 0.3)
    )
    assert one == two
