"""Generated scenes match their captions."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib import image

from regard.pipeline.datasets import scenes
from tests.pipeline.datasets.generated_rows import SPLITS, rows_of

DIRECTIONS = {"left of": (0, -1), "right of": (0, 1), "above": (1, -1), "below": (1, 1)}


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scenes")
    scenes.generate(folder, rows=120)
    return folder


def test_rows_and_files(generated: Path) -> None:
    counts = {split: len(rows_of(generated, split)) for split in SPLITS}
    assert counts == {"train": 102, "eval": 6, "test": 12}
    assert json.loads((generated / "scenes.json").read_text())["rows"] == counts
    for row in rows_of(generated, "train"):
        assert image.imread(generated / row["image"]).shape[:2] == (64, 64)


def test_pairs_of_test_are_in_no_other_split(generated: Path) -> None:
    pairs = {
        split: {
            frozenset(box["phrase"] for box in json.loads(row["boxes"]))
            for row in rows_of(generated, split)
        }
        for split in SPLITS
    }
    for one, other in itertools.combinations(pairs.values(), 2):
        assert not one & other


def test_colours_are_inside_their_boxes(generated: Path) -> None:
    for row in rows_of(generated, "test"):
        pixels = np.round(image.imread(generated / row["image"])[..., :3] * 255)
        empty = np.ones((64, 64), bool)
        for entry in json.loads(row["boxes"]):
            colour = np.array(scenes.COLOURS[entry["phrase"].split()[0]])
            near = np.abs(pixels - colour).max(-1) < 45
            left, top, right, bottom = (round(edge * 64) for edge in entry["box"])
            assert near[top:bottom, left:right].mean() > 0.3
            empty[top:bottom, left:right] = False
        assert pixels[empty].min() > 150  # the grey background


def test_both_captions_are_true(generated: Path) -> None:
    for row in rows_of(generated, "train"):
        centres = {
            entry["phrase"]: np.array(entry["box"]).reshape(2, 2).mean(0)
            for entry in json.loads(row["boxes"])
        }
        for caption in row["captions"]:
            relation = next(name for name in scenes.OPPOSITES if f" {name} " in caption)
            one, other = (centres[part.split(" ", 1)[1]] for part in caption.split(f" {relation} "))
            axis, sign = DIRECTIONS[relation]
            assert sign * (one - other)[axis] > 0
            assert abs((one - other)[axis]) > abs((one - other)[1 - axis])


def test_captions() -> None:
    scene = scenes.Scene((("orange", "square"), ("red", "cross")), ((10, 30), (50, 33)), (8, 8))
    assert scene.captions == [
        "an orange square left of a red cross",
        "a red cross right of an orange square",
    ]


@pytest.mark.parametrize("form", scenes.FORMS)
def test_shape_mask(form: str) -> None:
    mask = scenes.shape_mask(form, (30, 20), 8)
    rows, columns = np.nonzero(mask)
    assert abs(rows - 20).max() == 8
    assert abs(columns - 30).max() == 8
