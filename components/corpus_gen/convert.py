"""One group of files to shards of tf.Examples, and a small report of how that went."""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import tensorflow as tf

from components import events
from components.corpus_gen.formats import Options, read
from components.corpus_gen.images import Images
from components.corpus_gen.problems import Broken, Problems
from components.corpus_gen.records import Encoder, ShardWriter
from components.corpus_gen.replay import Replayed
from components.corpus_gen.sources import Group
from components.corpus_gen.splits import HashedSplit


@dataclass
class Report:
    """What came of one group of files.

    ``rows`` are those written to each split; ``span`` is the group's; ``available`` says of a group
    that is replayed how many rows there were to choose from; ``failed`` is the errno and the text
    of a write that failed.
    """

    index: int
    files: list[str]
    span: str | None = None
    rows: dict[str, int] = field(default_factory=dict)
    available: int = 0
    problems: Problems = field(default_factory=Problems)
    failed: tuple[int, str] | None = None

    def to_json(self) -> str:
        """One JSON object."""
        return json.dumps({**asdict(self), "problems": self.problems.to_json()})

    @classmethod
    def from_json(cls, text: str) -> Report:
        """What ``to_json`` gave."""
        content = json.loads(text)
        content["problems"] = Problems.from_json(content["problems"])
        return cls(**content)


def convert(
    index: int,
    group: Group,
    data: Mapping[str, Any],
    split: HashedSplit | Replayed | None,
    folder: str,
) -> Report:
    """Streams a group's rows into ``<folder>/Split-<name>/part-<index>-<shard>.gz``.

    Rows keep the order of the file. Never raises for what is in the input or for a full disk:
    the report says it.

    Args:
        index: the group's place in the corpus, which names its shards.
        group: the files.
        data: the ``data`` section.
        split: draws the split of each row, or leaves it out; None keeps the group's own.
        folder: where the folders of the splits are.
    """
    options = Options.of(data)
    images = Images(data, decode=True)
    report = Report(index, list(group.files), group.span)
    encode = Encoder(options.features, group.files[0], images, group.span)
    split = copy.deepcopy(split)  # which may count, and this may be a second attempt
    names = split.names if split else [group.split]
    writers = {
        name: ShardWriter(os.path.join(folder, f"Split-{name}", f"part-{index:05d}"))
        for name in names
    }
    report.rows = dict.fromkeys(names, 0)
    progress = _Progress(group.files[0])
    try:
        for line, values in read(group, options, report.problems, images):
            progress.step(line)
            name = split(values) if split else group.split
            if name is not None:
                writers[name].write(encode(line, values))
                report.rows[name] += 1
        for writer in writers.values():
            writer.close()
    except Broken as broken:
        report.problems.broken.append(broken.problem)
    except OSError as error:
        report.failed = (error.errno or 0, error.strerror or str(error))
    if report.failed or report.problems.fatal:
        _discard(folder, names, index)
    return report


def _discard(folder: str, names: Sequence[str], index: int) -> None:
    """Takes away what was written of a corpus that will not be used: it may be a full disk."""
    for name in names:
        parts = os.path.join(folder, f"Split-{name}")
        for part in tf.io.gfile.listdir(parts):
            if part.startswith(f"part-{index:05d}-"):
                tf.io.gfile.remove(os.path.join(parts, part))


class _Progress:
    """Tells the live view every second or so how far a file is read."""

    def __init__(self, path: str):
        self._name = os.path.basename(path)
        self._next = time.monotonic() + 1

    def step(self, line: int) -> None:
        if line % 2048 == 0 and time.monotonic() >= self._next:
            self._next = time.monotonic() + 1
            events.emit("progress", node="CorpusGen", text=f"{self._name}: {line:,} lines")
