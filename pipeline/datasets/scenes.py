"""Generated scenes: images of two coloured shapes, with captions and bounding boxes.

The content of every image is known, so captions and attention can be checked word by word. The
test split contains pairs of shapes that never occur together in training.
"""

import io
import itertools
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regard.core.files import atomic_write
from regard.pipeline.datasets.dataset_files import (
    Progress,
    prepare_folder,
    split_rows,
    write_dataset,
)

SIDE = 64  # pixels
COLOURS = {
    "red": (210, 45, 40),
    "green": (45, 160, 60),
    "blue": (45, 80, 205),
    "yellow": (235, 210, 50),
    "purple": (140, 60, 170),
    "orange": (240, 140, 30),
}
FORMS = ("circle", "square", "triangle", "cross")
RADII = (7, 11)  # minimum and maximum of a shape, in pixels
# Minimum ratio of the distances along the axis of the relation and along the other axis.
MIN_RATIO = 1.5
FRACTIONS = {"test": 0.1, "eval": 0.05}
OPPOSITES = {"left of": "right of", "right of": "left of", "above": "below", "below": "above"}

Shape = tuple[str, str]  # colour and form


@dataclass(frozen=True)
class Scene:
    """Two shapes, with their centres and radii in pixels."""

    shapes: tuple[Shape, Shape]
    centres: tuple[tuple[int, int], tuple[int, int]]  # column, row
    radii: tuple[int, int]

    @property
    def relation(self) -> str:
        """The position of the first shape relative to the second."""
        (x, y), (u, v) = self.centres
        if abs(x - u) > abs(y - v):
            return "left of" if x < u else "right of"
        return "above" if y < v else "below"

    @property
    def captions(self) -> list[str]:
        """The two true captions."""
        first, second = (" ".join(shape) for shape in self.shapes)
        return [
            f"{_a(first)} {self.relation} {_a(second)}",
            f"{_a(second)} {OPPOSITES[self.relation]} {_a(first)}",
        ]

    @property
    def boxes(self) -> list[dict[str, object]]:
        """The phrase and the box of each shape: left, top, right, bottom from 0 to 1."""
        boxes: list[dict[str, object]] = []
        for shape, (x, y), radius in zip(self.shapes, self.centres, self.radii, strict=True):
            edges = (x - radius, y - radius, x + radius + 1, y + radius + 1)
            box = [round(edge / SIDE, 4) for edge in edges]
            boxes.append({"phrase": " ".join(shape), "box": box})
        return boxes


def generate(
    directory: str | Path, rows: int = 12_000, seed: int = 17, progress: Progress | None = None
) -> dict[str, int]:
    """Write PNG images, and ``<split>.jsonl.gz``.

    A line contains ``image`` (a relative path), ``captions`` (two true ones) and ``boxes`` (JSON
    text with the box of each shape). A tenth of all pairs of shapes occurs only in test, and a
    twentieth only in eval.

    Args:
        directory: created if missing; files of earlier scenes are replaced.
        rows: the images of all splits; test gets a tenth and eval a twentieth.
        seed: equal seeds give equal bytes.
        progress: receives the fraction that is done.

    Raises:
        UserError: there are too few rows, or a file exists and is not one of earlier scenes.
    """
    directory = Path(directory)
    counts = split_rows(rows, FRACTIONS)
    folders = ["images/"]
    names = [f"{split}.jsonl.gz" for split in counts]
    prepare_folder("scenes", directory, names + folders)
    rng = random.Random(seed)
    pairs = _pairs(rng)

    def lines(split: str) -> Iterator[str]:
        for number, scene in enumerate(_scenes(pairs[split], counts[split], rng)):
            name = f"images/{split}/{number:06d}.png"
            atomic_write(directory / name, _png(draw(scene, rng.getrandbits(32))))
            record = {"image": name, "captions": scene.captions, "boxes": json.dumps(scene.boxes)}
            yield json.dumps(record)

    files = {f"{split}.jsonl.gz": lines(split) for split in counts}
    pair_counts = {split: len(members) for split, members in pairs.items()}
    return write_dataset(
        "scenes",
        directory,
        seed,
        counts,
        files,
        progress,
        folders=folders,
        pairs=pair_counts,
        side=SIDE,
    )


def draw(scene: Scene, seed: int = 0) -> np.ndarray:
    """Return the image of a scene on noisy grey, uint8 ``[SIDE, SIDE, 3]``."""
    noise = np.random.default_rng(seed)
    pixels = noise.normal(225.0, 4.0, (SIDE, SIDE, 3)) + noise.normal(0.0, 6.0, 3)
    parts = zip(scene.shapes, scene.centres, scene.radii, strict=True)
    for (colour, form), centre, radius in parts:
        paint = np.array(COLOURS[colour]) + noise.normal(0.0, 8.0, 3)
        mask = shape_mask(form, centre, radius)
        pixels[mask] = paint + noise.normal(0.0, 5.0, (int(mask.sum()), 3))
    # Steps of four are invisible and halve the size of the file.
    return np.clip(pixels, 0, 255).astype(np.uint8) & 0xFC


def _a(name: str) -> str:
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def shape_mask(form: str, centre: tuple[int, int], radius: int) -> np.ndarray:
    """Return the pixels that a shape covers, bool ``[SIDE, SIDE]``."""
    rows, columns = np.mgrid[:SIDE, :SIDE]
    x = columns - centre[0]
    y = rows - centre[1]
    inside = (abs(x) <= radius) & (abs(y) <= radius)
    if form == "circle":
        return x**2 + y**2 <= radius**2
    if form == "triangle":  # with its tip at the top
        return inside & (2 * abs(x) <= y + radius)
    if form == "cross":
        arm = max(1, radius // 3)
        return inside & ((abs(x) <= arm) | (abs(y) <= arm))
    return inside


def _pairs(rng: random.Random) -> dict[str, list[tuple[Shape, Shape]]]:
    """Return the disjoint sets of pairs of shapes of all splits."""
    shapes = list(itertools.product(COLOURS, FORMS))
    pairs = list(itertools.combinations(shapes, 2))
    rng.shuffle(pairs)
    held_out = {}
    start = 0
    for name, share in FRACTIONS.items():
        end = start + max(1, int(len(pairs) * share))
        held_out[name] = pairs[start:end]
        start = end
    return {"train": pairs[start:], **held_out}


def _scenes(pairs: list[tuple[Shape, Shape]], count: int, rng: random.Random) -> Iterator[Scene]:
    for _ in range(count):
        shapes = list(rng.choice(pairs))
        rng.shuffle(shapes)
        yield _place((shapes[0], shapes[1]), rng)


def _place(shapes: tuple[Shape, Shape], rng: random.Random) -> Scene:
    """Place shapes so that their relation is unambiguous and they do not touch."""
    while True:
        radii = (rng.randint(*RADII), rng.randint(*RADII))
        centres = [(rng.randint(r, SIDE - 1 - r), rng.randint(r, SIDE - 1 - r)) for r in radii]
        across, down = (abs(a - b) for a, b in zip(*centres, strict=True))
        near, far = sorted((across, down))
        if far > sum(radii) + 2 and far > MIN_RATIO * near:
            return Scene(shapes, (centres[0], centres[1]), radii)


def _png(pixels: np.ndarray) -> bytes:
    from matplotlib import image

    buffer = io.BytesIO()
    # The default metadata contains the library's version.
    image.imsave(buffer, pixels, format="png", metadata={"Software": "Regard"})
    return buffer.getvalue()
