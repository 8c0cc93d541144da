"""Generated scenes: two coloured shapes, where each of them is, and sentences that say so.

What is in an image is known, so that captions can be checked word by word, and so can the places
that a model looked at. The test split has pairs of shapes that training never shows together.
"""

from __future__ import annotations

import gzip
import io
import itertools
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from components.files import atomic_write
from pipeline.datasets.summary import Progress, Summary, disk_errors, shared_out, write

NAME = "scenes"
SIDE = 64  # pixels
COLOURS = {
    "red": (210, 45, 40),
    "green": (45, 160, 60),
    "blue": (45, 80, 205),
    "yellow": (235, 210, 50),
    "purple": (140, 60, 170),
    "orange": (240, 140, 30),
}
SHAPES = ("circle", "square", "triangle", "cross")
RADII = (7, 11)  # of a shape, from and to, in pixels
# How much farther apart two shapes are along the axis that is spoken of than along the other.
CLEARLY = 1.5
SHARES = {"test": 0.1, "eval": 0.05}
OPPOSITES = {"left of": "right of", "right of": "left of", "above": "below", "below": "above"}

Thing = tuple[str, str]  # colour and shape


@dataclass(frozen=True)
class Scene:
    """Two things, where their centres are and how large they are, in pixels."""

    things: tuple[Thing, Thing]
    centres: tuple[tuple[int, int], tuple[int, int]]  # column, row
    radii: tuple[int, int]

    @property
    def relation(self) -> str:
        """Where the first thing is, seen from the second."""
        (x, y), (u, v) = self.centres
        if abs(x - u) > abs(y - v):
            return "left of" if x < u else "right of"
        return "above" if y < v else "below"

    @property
    def captions(self) -> list[str]:
        """All that is true of it, in the two ways of saying it."""
        first, second = (" ".join(thing) for thing in self.things)
        return [
            f"{_a(first)} {self.relation} {_a(second)}",
            f"{_a(second)} {OPPOSITES[self.relation]} {_a(first)}",
        ]

    @property
    def boxes(self) -> list[dict[str, object]]:
        """What is called how, and where: left, top, right, bottom as shares of the image."""
        parts = zip(self.things, self.centres, self.radii, strict=True)
        return [
            {
                "phrase": " ".join(thing),
                "box": [round(edge / SIDE, 4) for edge in (x - r, y - r, x + r + 1, y + r + 1)],
            }
            for thing, (x, y), r in parts
        ]


def generate(
    directory: str | Path, rows: int = 12_000, seed: int = 17, progress: Progress | None = None
) -> Summary:
    """Writes images as PNG, and for each split ``<split>.jsonl.gz``.

    A line has ``image`` (the path from ``directory``), ``captions`` (two that are both true) and
    ``boxes`` (JSON as a text: where each thing is). Of all pairs of things a tenth is only in
    test and a twentieth only in eval.

    Args:
        directory: made if absent; files of an earlier call are replaced.
        rows: images of all splits together; a tenth goes to test and a twentieth to eval.
        seed: the same seed gives the same scenes.
        progress: told the share done.

    Raises:
        UserError: too few rows, or the directory cannot be written.
    """
    directory = Path(directory)
    counts = shared_out(rows, SHARES)
    rng = random.Random(seed)
    pairs = _pairs(rng)
    content: dict[str, bytes | str] = {}
    done = 0
    with disk_errors(directory):
        for split, count in counts.items():
            lines = []
            for number, scene in enumerate(_scenes(pairs[split], count, rng)):
                name = f"images/{split}/{number:06d}.png"
                atomic_write(directory / name, _png(draw(scene, rng.getrandbits(32))))
                record = {
                    "image": name,
                    "captions": scene.captions,
                    "boxes": json.dumps(scene.boxes),
                }
                lines.append(json.dumps(record) + "\n")
                done += 1
                if progress and done % 500 == 0:
                    progress(f"{done:,} of {rows:,} scenes", done / rows)
            content[f"{split}.jsonl.gz"] = gzip.compress("".join(lines).encode(), mtime=0)
    content[f"{NAME}.json"] = _provenance(pairs, counts, seed)
    return write(NAME, directory, content, counts)


def draw(scene: Scene, seed: int = 0) -> np.ndarray:
    """The image of a scene, uint8 ``[SIDE, SIDE, 3]``, on an uneven grey."""
    noise = np.random.default_rng(seed)
    pixels = noise.normal(225.0, 4.0, (SIDE, SIDE, 3)) + noise.normal(0.0, 6.0, 3)
    for (colour, shape), centre, radius in zip(
        scene.things, scene.centres, scene.radii, strict=True
    ):
        paint = np.array(COLOURS[colour]) + noise.normal(0.0, 8.0, 3)
        mask = _mask(shape, centre, radius)
        pixels[mask] = paint + noise.normal(0.0, 5.0, (int(mask.sum()), 3))
    # Steps of four halve the file; nobody sees them.
    return np.clip(pixels, 0, 255).astype(np.uint8) & 0xFC


def _a(name: str) -> str:
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _mask(shape: str, centre: tuple[int, int], radius: int) -> np.ndarray:
    """Which pixels a shape covers."""
    rows, columns = np.mgrid[:SIDE, :SIDE]
    x, y = columns - centre[0], rows - centre[1]
    inside = (abs(x) <= radius) & (abs(y) <= radius)
    if shape == "circle":
        return x**2 + y**2 <= radius**2
    if shape == "triangle":  # its tip is above
        return inside & (2 * abs(x) <= y + radius)
    if shape == "cross":
        arm = max(1, radius // 3)
        return inside & ((abs(x) <= arm) | (abs(y) <= arm))
    return inside


def _pairs(rng: random.Random) -> dict[str, list[tuple[Thing, Thing]]]:
    """The pairs of things of each split; no pair is in two."""
    things = list(itertools.product(COLOURS, SHAPES))
    pairs = list(itertools.combinations(things, 2))
    rng.shuffle(pairs)
    split, start = {}, 0
    for name, share in SHARES.items():
        end = start + max(1, int(len(pairs) * share))
        split[name], start = pairs[start:end], end
    return {"train": pairs[start:], **split}


def _scenes(pairs: list[tuple[Thing, Thing]], count: int, rng: random.Random) -> Iterator[Scene]:
    for _ in range(count):
        things = list(rng.choice(pairs))
        rng.shuffle(things)
        yield _placed((things[0], things[1]), rng)


def _placed(things: tuple[Thing, Thing], rng: random.Random) -> Scene:
    """The things at places where their relation is clear and they do not touch."""
    while True:
        radii = (rng.randint(*RADII), rng.randint(*RADII))
        places = [(rng.randint(r, SIDE - 1 - r), rng.randint(r, SIDE - 1 - r)) for r in radii]
        across, down = (abs(a - b) for a, b in zip(*places, strict=True))
        far, near = max(across, down), min(across, down)
        if far > sum(radii) + 2 and far > CLEARLY * near:
            return Scene(things, (places[0], places[1]), radii)


def _png(pixels: np.ndarray) -> bytes:
    from matplotlib import image

    buffer = io.BytesIO()
    # Else the library writes its version, and the same scene does not give the same bytes.
    image.imsave(buffer, pixels, format="png", metadata={"Software": "Regard"})
    return buffer.getvalue()


def _provenance(
    pairs: dict[str, list[tuple[Thing, Thing]]], counts: dict[str, int], seed: int
) -> str:
    record = {
        "name": NAME,
        "seed": seed,
        "rows": counts,
        "pairs": {split: len(chosen) for split, chosen in pairs.items()},
        "side": SIDE,
    }
    return json.dumps(record, indent=2) + "\n"
