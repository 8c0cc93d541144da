"""The samples of several files are the sample of them all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import tensorflow as tf

from components.tokenizer_trainer.sampling import Sample, Sampler, joined

ROWS = 300
FILES = 3


@pytest.fixture
def files(tmp_path: Path) -> list[tuple[int, str]]:
    return list(enumerate(written(tmp_path)))


def written(folder: Path) -> Iterator[str]:
    for file in range(FILES):
        path = str(folder / f"part-{file}.gz")
        with tf.io.TFRecordWriter(path, "GZIP") as writer:
            for row in range(file * ROWS, (file + 1) * ROWS):
                example = tf.train.Example()
                for name, text in {"source": f"number {row}", "target": f"Zahl {row}"}.items():
                    example.features.feature[name].bytes_list.value.append(text.encode())
                writer.write(example.SerializeToString())
        yield path


def drawn(folder: Path, files: list[tuple[int, str]], limit: int, seed: int = 0) -> list[Sample]:
    groups = [["source"], ["target"]]
    sampler = Sampler(groups, limit, seed, str(folder))
    for job in files:
        sampler(job)
    return [joined(str(folder), number, limit) for number in range(len(groups))]


def test_all_sentences_in_order_where_there_is_room(files, tmp_path):
    sources, targets = drawn(tmp_path / "samples", files, ROWS * FILES)
    assert list(sources) == [b"number %d" % row for row in range(ROWS * FILES)]
    assert list(targets) == [b"Zahl %d" % row for row in range(ROWS * FILES)]
    assert (sources.counts.read, sources.counts.used) == (ROWS * FILES, ROWS * FILES)


def test_as_many_as_are_asked_for_from_every_file(files, tmp_path):
    sources, _ = drawn(tmp_path / "samples", files, 90)
    found = [int(text.split()[1]) for text in sources]
    assert len(found) == sources.counts.used == 90
    assert found == sorted(found)
    for file in range(FILES):
        # 30 are expected of each, with a standard deviation of 4.
        assert 14 <= sum(1 for row in found if row // ROWS == file) <= 46


def test_whoever_comes_first_draws_the_same(files, tmp_path):
    one, _ = drawn(tmp_path / "one", files, 50)
    other, _ = drawn(tmp_path / "other", files[::-1], 50)
    another_seed, _ = drawn(tmp_path / "another", files, 50, seed=1)
    assert list(one) == list(other) != list(another_seed)
