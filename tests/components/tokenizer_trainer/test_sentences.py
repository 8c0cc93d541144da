"""Every text in order; at most so many, the same for the same input, and not only the head."""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf

from components.tokenizer_trainer.sentences import LONGEST, Counts, read, sample


def _corpus(rows: int) -> list[bytes]:
    return [f"sentence {number}".encode() for number in range(rows)]


def texts(drawn: list[tuple[int, bytes]]) -> list[bytes]:
    return [sentence for _, sentence in drawn]


def test_everything_in_order_below_the_limit() -> None:
    counts = Counts()
    assert texts(sample(_corpus(100), 100, 0, counts)) == _corpus(100)
    assert (counts.read, counts.used, counts.empty, counts.long) == (100, 100, 0, 0)


def test_exactly_the_limit_from_everywhere() -> None:
    counts = Counts()
    corpus = _corpus(10000)
    kept = texts(sample(iter(corpus), 1000, 0, counts))
    assert len(kept) == counts.used == 1000
    places = [corpus.index(sentence) for sentence in kept]
    assert places == sorted(places)
    for tenth in range(10):
        # 100 are expected of each tenth, with a standard deviation of 9.
        assert 60 <= sum(1 for place in places if place // 1000 == tenth) <= 140


def test_deterministic_and_drawn_by_the_seed() -> None:
    one, two, other = (sample(_corpus(500), 50, seed, Counts()) for seed in (1, 1, 2))
    assert one == two
    assert one != other


def test_copies_of_a_sentence_are_not_drawn_all_or_none() -> None:
    kept = texts(sample([b"same"] * 500 + _corpus(500), 200, 0, Counts()))
    assert 50 < kept.count(b"same") < 150


def test_empty_and_very_long_lines_are_counted_and_left_out() -> None:
    counts = Counts()
    kept = sample([b"", b"  ", b"x" * (LONGEST + 1), b"y" * LONGEST, b"z"], 1, 0, counts)
    assert len(kept) == 1
    assert (counts.read, counts.empty, counts.long, counts.used) == (5, 2, 1, 1)


def test_every_text_of_every_row_in_order(tmp_path: Path) -> None:
    rows = [(["a"], ["b", "c"]), (["d"], []), (["e"], ["f"]), ([""], ["g"])]
    path = str(tmp_path / "part.gz")
    with tf.io.TFRecordWriter(path, "GZIP") as writer:
        for row in rows:
            example = tf.train.Example()
            for name, found in zip(("text", "summary"), row, strict=True):
                kept = example.features.feature[name].bytes_list
                kept.SetInParent()
                kept.value.extend(text.encode() for text in found)
            example.features.feature["image"].bytes_list.value.append(b"not read")
            writer.write(example.SerializeToString())
    assert list(read(path, ["text", "summary"])) == list(map(str.encode, [*"abcdef", "", "g"]))
    assert list(read(path, ["summary"])) == [b"b", b"c", b"f", b"g"]
