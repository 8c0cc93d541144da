"""The features of several tasks as the ``data`` section has them, rows read, and small images."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pytest

from components.corpus_gen.formats import Options, read
from components.corpus_gen.problems import Broken, Problems
from components.corpus_gen.sources import Group
from models import tasks
from models.tasks.features import Feature


def section(*features: Feature) -> list[dict[str, Any]]:
    return [feature.to_json() for feature in features]


TRANSLATION = section(*tasks.describe("translation").features)
SCORED = section(
    Feature("score", "number", role="reference", low=0, high=5),
    Feature("one", "text"),
    Feature("other", "text"),
)
CAPTIONED = section(
    Feature("image", "image"), Feature("caption", "text", role="reference", several=True)
)
POINTED = section(
    Feature("points", "points", least=3), Feature("answer", "positions", role="reference")
)
SUMMARISED = section(
    Feature("text", "text"),
    Feature("summary", "text", role="reference", several=True),
    Feature("title", "text", role="extra", optional=True),
)


def picture(kind: str = "png", shade: int = 0, size: tuple[int, int] = (6, 4)) -> bytes:
    """A small image of one of the kinds, of one shade."""
    import tensorflow as tf

    pixels = tf.fill([*size, 3], tf.constant(shade, tf.uint8))
    if kind == "png":
        return tf.io.encode_png(pixels).numpy()
    if kind == "jpeg":
        return tf.io.encode_jpeg(pixels).numpy()
    return bitmap(shade, *size) if kind == "bmp" else GIF


def bitmap(shade: int, height: int, width: int) -> bytes:
    row = (3 * width + 3) // 4 * 4
    pixels = bytes([shade]) * (row * height)
    sizes = (40, width, height, 1, 24, 0, len(pixels), 0, 0, 0, 0)
    header = struct.pack("<IHHI", 54 + len(pixels), 0, 0, 54) + struct.pack("<IiiHHIIiiII", *sizes)
    return b"BM" + header + pixels


GIF = bytes.fromhex(
    "47494638396101000100800000ffffff00000021f90401000000002c00000000010001000002024401003b"
)


def lines(*rows: Sequence[Any]) -> str:
    """Rows as the text of a table."""
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


def rows_of(group: Group, **section: Any) -> tuple[list[tuple[Any, ...]], Problems]:
    """The rows of a group of files, each behind its line, and what was wrong with others."""
    problems = Problems()
    options = Options.of({"features": TRANSLATION, **section})
    return [(line, *values) for line, values in read(group, options, problems)], problems


def refusal(group: Group, **section: Any) -> Broken:
    """Why a group of files cannot be read."""
    with pytest.raises(Broken) as caught:
        rows_of(group, **section)
    return caught.value
