from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from components.errors import UserError
from components.predictions import Row
from components.predictor import rows
from models.tasks.features import Feature
from tests import fake_models, fake_tasks


def split(tmp_path: Path, *shards) -> str:
    return str(Path(fake_models.examples(tmp_path, shards).uri, "Split-test"))


def read_rows(folder: str, features) -> list[Row]:
    found = [(path, record) for path in rows.shards(folder) for record in rows.records(path)]
    return [rows.parse(record, features, path) for path, record in found]


def row(**values) -> dict:
    return {"source": "s", "target": "t", **values}


def test_rows_without_a_line_keep_their_order(tmp_path):
    texts = ["b", "a", "c"]
    folder = split(tmp_path, [row(source=text) for text in texts])
    plain = Path(folder, "zz-plain")
    packed = next(Path(folder).glob("*.gz"))
    plain.write_bytes(gzip.decompress(packed.read_bytes()))
    found = read_rows(folder, fake_models.FEATURES)
    order = rows.in_order([(entry.file, entry.line) for entry in found])
    assert [found[place].inputs["source"] for place in order] == texts * 2


def test_numbers_are_those_of_the_files(tmp_path):
    features = [
        Feature("source", "text"),
        Feature("target", "number", role="reference", several=True),
        Feature("weight", "number", role="extra"),
    ]
    (found,) = read_rows(split(tmp_path, [row(target=[4.2, 0.1], weight=1e-7)]), features)
    assert found.references == [4.2, 0.1]
    assert found.extras == {"weight": 1e-7}


def test_what_may_be_missing_is_none(tmp_path):
    features = [
        Feature("source", "text"),
        Feature("target", "text", role="reference", optional=True),
        Feature("points", "points", role="extra", optional=True),
        Feature("tour", "positions", role="extra", optional=True),
    ]
    (found,) = read_rows(split(tmp_path, [row(target=[], points=[], tour=[])]), features)
    assert found.references == []
    assert found.extras == {"points": None, "tour": None}


def test_a_feature_that_is_missing_is_named(tmp_path):
    with pytest.raises(UserError, match=r"no feature 'source' \(they have: caption, target\)"):
        read_rows(split(tmp_path, [{"caption": "a", "target": "b"}]), fake_models.FEATURES)


def test_images_of_some_rows(tmp_path):
    """Numbered as the rows are, whatever order the files have."""
    images = [
        {
            "image": f"image {n}".encode(),
            "image_file": f"{n}",
            "caption": ["c"],
            "file": "f",
            "line": n,
        }
        for n in range(5)
    ]
    folder = split(tmp_path, [images[3], images[0]], [images[4], images[1], images[2]])
    read = read_rows(folder, fake_tasks.CAPTIONING)
    order = rows.in_order([(entry.file, entry.line) for entry in read])
    assert [read[place].paths["image"] for place in order] == ["0", "1", "2", "3", "4"]
    found = rows.read_images(folder, ["image"], [4, 1])
    assert found == {n: {"image": f"image {n}".encode()} for n in (1, 4)}
