"""Generated names: new ones in every row, and a summary that can be read off its source."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from components.errors import UserError
from pipeline.datasets import copying

SUMMARY = re.compile(r"([A-Z][a-z]+) ([a-z]+) ([A-Z][a-z]+)")


def rows_of(folder: Path, split: str) -> list[dict[str, str]]:
    with gzip.open(folder / f"{split}.jsonl.gz", "rt") as file:
        return [json.loads(line) for line in file]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copying")
    copying.generate(folder, rows=400)
    return folder


def test_rows_and_files(made: Path) -> None:
    counts = {split: len(rows_of(made, split)) for split in ("train", "eval", "test")}
    assert counts == {"train": 340, "eval": 20, "test": 40}
    assert json.loads((made / "copying.json").read_text()) == {
        "name": "copying", "seed": 17, "rows": counts,
    }  # fmt: skip


def test_a_summary_says_who_did_what_to_whom(made: Path) -> None:
    for row in rows_of(made, "train"):
        subject, verb, other = SUMMARY.fullmatch(row["target"]).groups()
        source = row["source"]
        assert source.count(subject) == source.count(other) == 1
        assert verb in copying.VERBS
        assert source[0].isupper()
        passive = f" was {verb} " in source or "It was " in source
        # Who did it comes first but in a passive and in "It was X whom Y ...".
        assert (source.index(subject) > source.index(other)) is passive


def test_no_name_is_in_two_rows(made: Path) -> None:
    seen: set[str] = set()
    for split in ("train", "eval", "test"):
        for row in rows_of(made, split):
            subject, _, other = SUMMARY.fullmatch(row["target"]).groups()
            assert not {subject, other} & seen
            seen |= {subject, other}
    assert len(seen) == 800
    names = (made / "names.txt").read_text().splitlines()
    assert len(names) == len(set(names)) == 1200
    assert seen < set(names)


def test_the_same_seed_gives_the_same_bytes(made: Path, tmp_path: Path) -> None:
    copying.generate(tmp_path, rows=400)
    for path in made.iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()
    copying.generate(tmp_path, rows=400, seed=18)
    assert rows_of(tmp_path, "test") != rows_of(made, "test")


def test_too_few_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="19 rows are too few"):
        copying.generate(tmp_path, rows=19)
