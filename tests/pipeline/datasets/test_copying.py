"""Generated news with unique names."""

import json
import re
from pathlib import Path

import pytest

from regard.core.errors import UserError
from regard.pipeline.datasets import copying
from tests.pipeline.datasets.generated_rows import SPLITS, rows_of

SUMMARY = re.compile(r"([A-Z][a-z]+) ([a-z]+) ([A-Z][a-z]+)")


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copying")
    copying.generate(folder, rows=400)
    return folder


def test_rows_and_files(generated: Path) -> None:
    counts = {split: len(rows_of(generated, split)) for split in SPLITS}
    assert counts == {"train": 340, "eval": 20, "test": 40}
    assert json.loads((generated / "copying.json").read_text()) == {
        "name": "copying", "seed": 17, "rows": counts,
        "files": ["train.jsonl.gz", "test.jsonl.gz", "eval.jsonl.gz", "names.txt"],
    }  # fmt: skip


def test_files_of_the_user_are_not_replaced(tmp_path: Path) -> None:
    mine = tmp_path / "train.jsonl.gz"
    mine.write_bytes(b"mine")
    with pytest.raises(UserError) as info:
        copying.generate(tmp_path, rows=400)
    assert info.value.where == str(mine)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"mine"]


def test_an_earlier_data_set_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "notes").touch()
    for rows in (400, 600):
        copying.generate(tmp_path, rows=rows)
        assert sum(len(rows_of(tmp_path, split)) for split in SPLITS) == rows


def test_summaries_are_correct(generated: Path) -> None:
    for row in rows_of(generated, "train"):
        subject, verb, other = SUMMARY.fullmatch(row["target"]).groups()
        source = row["source"]
        assert source.count(subject) == source.count(other) == 1
        assert verb in copying.VERBS
        assert source[0].isupper()
        passive = f" was {verb} " in source or "It was " in source
        # The subject comes first except in a passive and in "It was X whom Y ...".
        assert (source.index(subject) > source.index(other)) is passive


def test_names_are_unique(generated: Path) -> None:
    names_so_far: set[str] = set()
    for split in SPLITS:
        for row in rows_of(generated, split):
            subject, _, other = SUMMARY.fullmatch(row["target"]).groups()
            assert not {subject, other} & names_so_far
            names_so_far |= {subject, other}
    assert len(names_so_far) == 800
    names = (generated / "names.txt").read_text().splitlines()
    assert len(names) == len(set(names)) == 1200
    assert names_so_far < set(names)
