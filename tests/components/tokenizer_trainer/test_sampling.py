"""Samples of the sentences of one file and of several files."""

from pathlib import Path

import pytest

from regard.components.tokenizer_trainer.sampling import (
    MAX_BYTES,
    CorpusSample,
    FileSampler,
    SentenceCounts,
    join_samples,
    read_sentences,
    sample_sentences,
)
from tests.components.corpora import write_records

ROWS = 300
FILES = 3


@pytest.fixture
def files(tmp_path: Path) -> list[tuple[int, str]]:
    rows = [{"source": [f"number {i}"], "target": [f"Zahl {i}"]} for i in range(ROWS * FILES)]
    return [
        (file, write_records(tmp_path / f"part-{file}.gz", rows[file * ROWS : (file + 1) * ROWS]))
        for file in range(FILES)
    ]


def samples_of(
    folder: Path, files: list[tuple[int, str]], limit: int, seed: int = 0
) -> list[CorpusSample]:
    groups = [["source"], ["target"]]
    sampler = FileSampler(groups, limit, seed, str(folder))
    for job in files:
        sampler(job)
    return [join_samples(str(folder), number, limit) for number in range(len(groups))]


def test_all_sentences_below_the_limit(files, tmp_path):
    sources, targets = samples_of(tmp_path / "samples", files, ROWS * FILES)
    assert list(sources) == [b"number %d" % row for row in range(ROWS * FILES)]
    assert list(targets) == [b"Zahl %d" % row for row in range(ROWS * FILES)]
    assert (sources.counts.read, sources.counts.used) == (ROWS * FILES, ROWS * FILES)


def test_sample_is_from_every_file(files, tmp_path):
    sources, _ = samples_of(tmp_path / "samples", files, 90)
    rows = [int(text.split()[1]) for text in sources]
    assert len(rows) == sources.counts.used == 90
    assert rows == sorted(rows)
    for file in range(FILES):
        # 30 are expected of each, with a standard deviation of 4.
        assert 14 <= sum(1 for row in rows if row // ROWS == file) <= 46


def test_files_below_the_limit_that_exceed_it_together(files, tmp_path):
    """Half of the hashes are above 2**63."""
    sources, _ = samples_of(tmp_path / "samples", files, 2 * ROWS)
    assert len(list(sources)) == sources.counts.used == 2 * ROWS


def test_order_of_workers_does_not_matter(files, tmp_path):
    one, _ = samples_of(tmp_path / "one", files, 50)
    other, _ = samples_of(tmp_path / "other", files[::-1], 50)
    another_seed, _ = samples_of(tmp_path / "another", files, 50, seed=1)
    assert list(one) == list(other) != list(another_seed)


def test_copies_are_sampled_independently() -> None:
    others = [b"sentence %d" % number for number in range(500)]
    sample = sample_sentences([b"same"] * 500 + others, 200, 0, SentenceCounts())
    assert 50 < [sentence for _, sentence in sample].count(b"same") < 150


def test_empty_and_too_long_lines() -> None:
    counts = SentenceCounts()
    sample = sample_sentences(
        [b"", b"  ", b"x" * (MAX_BYTES + 1), b"y" * MAX_BYTES, b"z"], 1, 0, counts
    )
    assert len(sample) == 1
    assert (counts.read, counts.empty, counts.too_long, counts.used) == (5, 2, 1, 1)


def test_blank_sentences_and_joiners_are_counted() -> None:
    counts = SentenceCounts()
    texts = ["\u200b\u3000", "می‌خواهم", "نہیں ‌ ہے", "क्‌ष", "plain", "auf‌lage"]
    sample_sentences([text.encode() for text in texts] + [b"\xff"], 1, 0, counts)
    assert (counts.read, counts.empty, counts.joined) == (7, 2, 3)


def test_read_sentences_in_order(tmp_path: Path) -> None:
    rows = [(["a"], ["b", "c"]), (["d"], []), (["e"], ["f"]), ([""], ["g"])]
    examples = ({"text": one, "summary": other, "image": ["not read"]} for one, other in rows)
    path = write_records(tmp_path / "part.gz", examples)
    sentences = [sentence.decode() for sentence in read_sentences(path, ["text", "summary"])]
    assert sentences == [*"abcdef", "", "g"]
    assert list(read_sentences(path, ["summary"])) == [b"b", b"c", b"f", b"g"]
