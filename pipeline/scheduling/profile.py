"""The profile of the training split as it would be now, without TensorFlow: for drift."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from components import profiles
from components.corpus_gen import replay, resolve
from components.corpus_gen.formats import Options, read
from components.corpus_gen.images import Images
from components.corpus_gen.problems import Broken, Problems
from components.corpus_gen.replay import Draw, Replayed
from components.corpus_gen.sources import Group
from components.corpus_gen.splits import Draws
from components.errors import UserError
from components.example_validator.vocabulary import joined, summed
from components.files import atomic_write
from models.tasks.features import Feature


def profile_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """What ExampleValidator would write of the rows that come into ``train``, as ``profile.json``.

    Older spans that are replayed are read twice, as CorpusGen does, and no row is held.

    Args:
        data: the section, with its spans settled.

    Raises:
        UserError: a file cannot be read.
    """
    given = resolve(data)
    draws, learned = Draws(data, given), _Learned(data)
    old = [group for group in given["train"] if group.replay]
    for group in given["train"]:
        if not group.replay:
            learned.add(group, draws.of(group))
    # A file that cannot be read is told of when it is read again.
    tallies = {group: replay.tally(group, data, draws.of(group), Problems()) for group in old}
    parts = replay.parts(tallies, learned.rows, old[0].replay) if old else {}
    for group in old:
        learned.add(group, Replayed(draws.of(group), parts[group]))
    return learned.profile()


class _Learned:
    """Counts the rows that are learned from, their lengths and their words.

    Args:
        data: the section, with its spans settled.
    """

    def __init__(self, data: Mapping[str, Any]):
        self.rows = 0
        self._options, self._images = Options.of(data), Images(data)
        features = {i: f for i, f in enumerate(self._options.features) if f.role != "extra"}
        self._features = features
        self._lengths = {
            i: defaultdict[int, int](int) for i, f in features.items() if profiles.unit(f)
        }
        self._words: dict[int, Counter[str]] = {
            i: Counter() for i, f in features.items() if f.tokenized
        }

    def add(self, group: Group, draw: Draw | None) -> None:
        """Counts those rows of a group that come into ``train``.

        Args:
            group: files of ``data.train``.
            draw: the split of a row; None: all come into it.

        Raises:
            UserError: a file cannot be read.
        """
        try:
            for _, values in read(group, self._options, Problems(), self._images):
                if draw is None or draw(values) == "train":
                    self._count(values)
        except Broken as broken:
            raise UserError(f"cannot be read: {broken}", where=group.files[0]) from None

    def _count(self, values: Sequence[Any]) -> None:
        self.rows += 1
        for i, counts in self._lengths.items():
            for length in _lengths(self._features[i], values[i]):
                counts[length] += 1
        for i, counter in self._words.items():
            for text in _texts(values[i]):
                counter.update(profiles.words(text))

    def profile(self) -> dict[str, Any]:
        """What is counted, as ``profile.json`` has it."""
        features: dict[str, Any] = {}
        for i, counts in self._lengths.items():
            name = self._features[i].name
            told = {"unit": profiles.unit(self._features[i]), "bounds": list(profiles.BOUNDS)}
            features[name] = {"lengths": {**told, "counts": profiles.histogram(counts)}}
            if i in self._words:
                _, bucket = summed((name, 0), [self._words[i]])
                features[name] = {**joined(name, [bucket])[1], **features[name]}
        return {"rows": self.rows, "features": features}


def remembered(data: Mapping[str, Any], key: str, path: Path, keep: bool = True) -> dict[str, Any]:
    """``profile_of`` the data that is known by a key, made once for each where it is kept.

    Args:
        data: the section, with its spans settled.
        key: of data and settings.
        path: where the profile of the last look is.
        keep: whether it becomes this one.
    """
    kept = _kept(path)
    if kept is not None and kept["key"] == key:
        return kept
    made = {"key": key, **profile_of(data)}
    if keep:
        atomic_write(path, json.dumps(made, ensure_ascii=False))
    return made


def keep(looked: Path, trained: Path, key: str) -> None:
    """Keeps the profile of the data that a training had, if the last look made it."""
    kept = _kept(looked)
    if kept is not None and kept["key"] == key:
        atomic_write(trained, looked.read_text(encoding="utf-8"))


def _kept(path: Path) -> dict[str, Any] | None:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # none yet, or none of ours
        return None
    return kept if isinstance(kept, dict) and "key" in kept else None


def _lengths(feature: Feature, value: Any) -> list[int]:
    if feature.kind == "points":
        return [len(value) // 2] if value is not None else [0]
    return [len(text) for text in _texts(value)]


def _texts(value: Any) -> list[str]:
    return value if isinstance(value, list) else [] if value is None else [value]
