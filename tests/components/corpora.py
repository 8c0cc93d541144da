"""Corpora for tests: the features of several tasks, readers, and small images."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from regard.components.checks.base import CheckContext, RowTexts, TextNames
from regard.components.data.read_problems import ReadProblems
from regard.components.data.row_reader import read_rows
from regard.components.data.sources import Corpus, FileGroup
from regard.components.data.spans import resolve_spans
from regard.components.data.unreadable_file import UnreadableFile
from regard.components.settings.data import DataConfig
from regard.components.settings.data_checks import DataChecksConfig
from regard.core.errors import UserError
from regard.core.features import Feature
from regard.core.kinds import IMAGE, NUMBER, POINTS, POSITIONS, TEXT
from regard.models import tasks

BEAM = [
    "--runner=FnApiRunner",
    "--direct_running_mode=in_memory",
    "--sdk_container_image=unused",  # otherwise TFX packages itself for remote workers: 2 s
]
TRANSLATION = tuple(tasks.describe("translation").features)
SCORED = (
    Feature("score", NUMBER, role="reference", low=0, high=5),
    Feature("one", TEXT),
    Feature("other", TEXT),
)
CAPTIONED = (
    Feature("image", IMAGE),
    Feature("caption", TEXT, role="reference", multiple=True),
)
POINTED = (
    Feature("points", POINTS, min_points=3),
    Feature("answer", POSITIONS, role="reference"),
)
SUMMARISED = (
    Feature("text", TEXT),
    Feature("summary", TEXT, role="reference", multiple=True),
    Feature("title", TEXT, role="extra", optional=True),
)


def corpus_of(root: Path, features: Sequence[Feature] = TRANSLATION, **section: Any) -> Corpus:
    """A corpus of a section ``data`` whose spans are not resolved."""
    config = DataConfig.model_validate({"root": str(root), **section})
    return Corpus(config, tuple(features))


def resolved(root: Path, features: Sequence[Feature] = TRANSLATION, **section: Any) -> Corpus:
    return resolve_spans(corpus_of(root, features, **section))


def checks_of(**checks: Any) -> DataChecksConfig:
    """A section ``data.checks`` where all other checks are off."""
    return DataChecksConfig.model_validate(dict.fromkeys(DataChecksConfig.model_fields) | checks)


def affected(
    inputs: Sequence[Sequence[str]], references: Sequence[Sequence[str]], **checks: Any
) -> list[str]:
    """The names of the checks that a row of texts is affected by."""
    texts = {f"input{i}": list(texts_of_row) for i, texts_of_row in enumerate(inputs)}
    texts |= {f"reference{i}": list(texts_of_row) for i, texts_of_row in enumerate(references)}
    names = [[name for name in texts if name.startswith(role)] for role in ("input", "reference")]
    row = RowTexts(TextNames(*names, names[1]), texts)
    active = checks_of(**checks).row_checks
    return [name for name, check in active.items() if check.affects(row, CheckContext())]


def read_group(
    group: FileGroup, features: Sequence[Feature] = TRANSLATION, **section: Any
) -> tuple[list[tuple[Any, ...]], ReadProblems]:
    """The rows of a group of files, each after its line, and the problems of others."""
    problems = ReadProblems()
    corpus = corpus_of(Path(), features, train="unused.tsv", **section)
    return [(line, *values) for line, values in read_rows(group, corpus, problems)], problems


def unreadable(group: FileGroup, **section: Any) -> UnreadableFile:
    """The error of a group of files that cannot be read."""
    with pytest.raises(UnreadableFile) as caught:
        read_group(group, **section)
    return caught.value


def first_error(problems: ReadProblems, **section: Any) -> UserError:
    """The error that the problems add up to."""
    with pytest.raises(UserError) as caught:
        problems.raise_if_unusable(DataConfig.model_validate({"train": "a.tsv", **section}))
    return caught.value


def table(*rows: Sequence[Any]) -> str:
    """Rows as tab-separated text."""
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files, also into new folders."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def write_records(path: Path, rows: Iterable[Mapping[str, Sequence[str] | int]]) -> str:
    """Write a TFRecord file of rows of texts and integers, and return its path."""
    import tensorflow as tf

    path.parent.mkdir(parents=True, exist_ok=True)
    with tf.io.TFRecordWriter(str(path), "GZIP") as writer:
        for row in rows:
            example = tf.train.Example()
            for name, value in row.items():
                feature = example.features.feature[name]
                if isinstance(value, int):
                    feature.int64_list.value.append(value)
                else:
                    feature.bytes_list.SetInParent()
                    feature.bytes_list.value.extend(text.encode() for text in value)
            writer.write(example.SerializeToString())
    return str(path)


def picture(kind: str = "png", shade: int = 0, size: tuple[int, int] = (6, 4)) -> bytes:
    """A small image of one kind and one shade."""
    import tensorflow as tf

    pixels = tf.fill([*size, 3], tf.constant(shade, tf.uint8))
    if kind == "png":
        return tf.io.encode_png(pixels).numpy()
    if kind == "jpeg":
        return tf.io.encode_jpeg(pixels).numpy()
    return _bitmap(shade, *size)


def _bitmap(shade: int, height: int, width: int) -> bytes:
    row = (3 * width + 3) // 4 * 4
    pixels = bytes([shade]) * (row * height)
    sizes = (40, width, height, 1, 24, 0, len(pixels), 0, 0, 0, 0)
    header = struct.pack("<IHHI", 54 + len(pixels), 0, 0, 54) + struct.pack("<IiiHHIIiiII", *sizes)
    return b"BM" + header + pixels
