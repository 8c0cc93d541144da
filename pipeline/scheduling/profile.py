"""The profile of the training split as it would be now, without TensorFlow: for drift."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components import profiles
from components.corpus_gen import resolve
from components.corpus_gen.formats import Options, read
from components.corpus_gen.problems import Broken, Problems
from components.corpus_gen.splits import Draws
from components.errors import UserError
from components.example_validator.vocabulary import joined, summed
from components.files import atomic_write
from models.tasks.features import Feature


def profile_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """What ExampleValidator would write of the rows that come into ``train``, as ``profile.json``.

    Args:
        data: the section, with its spans settled.

    Raises:
        UserError: a file cannot be read.
    """
    given = resolve(data)
    draws, options = Draws(data, given), Options.of(data)
    learned = {i: f for i, f in enumerate(options.features) if f.role != "extra"}
    lengths = {i: defaultdict[int, int](int) for i, f in learned.items() if profiles.unit(f)}
    words: dict[int, Counter[str]] = {i: Counter() for i, f in learned.items() if f.tokenized}
    rows = 0
    for group in given["train"]:
        draw = draws.of(group)
        try:
            for _, values in read(group, options, Problems()):
                if draw is not None and draw(values) != "train":
                    continue
                rows += 1
                for i, counts in lengths.items():
                    for length in _lengths(learned[i], values[i]):
                        counts[length] += 1
                for i, counter in words.items():
                    for text in _texts(values[i]):
                        counter.update(profiles.words(text))
        except Broken as broken:
            raise UserError(f"cannot be read: {broken}", where=group.files[0]) from None
    features: dict[str, Any] = {}
    for i, counts in lengths.items():
        name = learned[i].name
        told = {"unit": profiles.unit(learned[i]), "bounds": list(profiles.BOUNDS)}
        features[name] = {"lengths": {**told, "counts": profiles.histogram(counts)}}
        if i in words:
            _, bucket = summed((name, 0), [words[i]])
            features[name] = {**joined(name, [bucket])[1], **features[name]}
    return {"rows": rows, "features": features}


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
