"""Slices of the test split: their names, and the rows of each.

The title of a slice is its kind and its name: ``domain=news``, ``pattern=questions``,
``length=11-20``, ``oov=0.1+``, ``target_overlap=no``.
"""

import dataclasses
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from regard.components.data.profiles import PROFILE_FILE, read_profile
from regard.components.data.target_overlap import text_hash
from regard.components.data.text_analysis import split_words
from regard.components.settings.evaluation import EvaluationConfig, SlicePatternConfig
from regard.core.formatting import format_count
from regard.models.metrics import Rows

FILE = "file"  # the base name of a row's file, which slices can use like a feature
LENGTH, OOV, PATTERN, TARGET_OVERLAP = "length", "oov", "pattern", "target_overlap"
# Rows without and with a reference that the training split has too.
OVERLAP_NAMES = ("no", "yes")
# All values of a feature that have no slice of their own.
OTHERS = "(others)"
REMEDY = "Delete the artifacts of the run, whose ExampleValidator wrote the file, and run it again."
_MAX_VALUES = 30


@dataclasses.dataclass(frozen=True)
class Slice:
    """Some rows of the test split.

    Attributes:
        kind: the feature whose value the rows share, or ``pattern``, ``length``, ``oov`` or
            ``target_overlap``.
        name: the value, the pattern's name, or bounds such as ``11-20`` and ``31+``; None: all
            other values of the feature.
        rows: the indices of the rows.
        bounds: for lengths, the lowest and the highest length; None: no upper bound.
        scores: the values of every model's metrics, by model and metric; empty before scoring.
    """

    kind: str
    name: str | None
    rows: Sequence[int]
    bounds: tuple[int, int | None] | None = None
    scores: dict[str, dict[str, float]] = dataclasses.field(default_factory=dict)

    @property
    def value(self) -> str:
        """The name; ``(others)`` for all other values."""
        return OTHERS if self.name is None else self.name

    @property
    def title(self) -> str:
        """The name in the configuration, such as ``domain=news``."""
        return f"{self.kind}={self.value}"

    def __str__(self) -> str:
        return f"{self.title} ({format_count(len(self.rows), 'row')})"

    def matches(self, name: str) -> bool:
        """Return whether a name means the slice: its title, or its kind for all of that kind."""
        return name in (self.kind, self.title)


def unknown_share(texts: Sequence[str], vocabulary: frozenset[str]) -> float:
    """Return the share of the running words of some texts that are unknown; 0 for no words."""
    words = [word for text in texts for word in split_words(text)]
    return sum(word not in vocabulary for word in words) / max(len(words), 1)


def read_vocabulary(findings: Path, features: Sequence[str]) -> frozenset[str] | None:
    """Read the words of some features in the training split; None if they were not counted.

    Of a large vocabulary, the ExampleValidator lists only the frequent words; others are unknown.

    Args:
        findings: the ExampleValidator's folder.
        features: the names of the model's text inputs.

    Raises:
        UserError: the file is not valid.
    """
    path = findings / PROFILE_FILE
    if not path.exists():
        return None
    counts = read_profile(path, REMEDY)["features"]
    entries = [counts[name] for name in features if "words" in counts.get(name, ())]
    if not entries:
        return None
    return frozenset(word for entry in entries for word in entry["words"])


def make_slices(
    rows: Rows,
    lengths: Sequence[int] | None,
    inputs: Sequence[str],
    vocabulary: frozenset[str] | None,
    overlap: frozenset[int] | None,
    config: EvaluationConfig,
) -> list[Slice]:
    """Return the slices that have rows.

    Args:
        rows: the test split with the columns that slices need.
        lengths: the lengths of the rows; None if the model has no length.
        inputs: the model's text inputs.
        vocabulary: the words of the training split; None if they are not known.
        overlap: the keys of references that the training split has too; None if they are not
            known.
        config: the ``evaluation`` section.
    """
    slices: list[Slice] = []
    for feature in config.slices.by:
        slices += _by_value(rows, feature)
    slices += [_by_pattern(rows, name, pattern) for name, pattern in config.slices.patterns.items()]
    if lengths is not None:
        slices += _by_length(lengths, config.length_buckets)
    if vocabulary is not None and (bounds := config.slices.oov) is not None:
        names = share_names(bounds)
        labels = []
        for texts in zip(*(rows.columns[name] for name in inputs), strict=True):
            share = unknown_share(texts, vocabulary)
            labels.append(names[bisect_left(bounds, share)])
        slices += _group(OOV, names, labels)
    if overlap is not None:
        slices += _by_overlap(rows, overlap)
    return [part for part in slices if part.rows]


def _group(kind: str, names: Sequence[str | None], labels: Sequence[str | None]) -> list[Slice]:
    """Return a slice for each name, with the rows whose label it is."""
    rows: dict[str | None, list[int]] = {name: [] for name in names}
    for row, label in enumerate(labels):
        rows[label].append(row)
    return [Slice(kind, name, rows[name]) for name in names]


def _by_value(rows: Rows, feature: str) -> list[Slice]:
    """Return slices for the most frequent values of a feature, and for all others."""
    values = _texts(rows, feature)
    frequent = sorted(value for value, _ in Counter(values).most_common(_MAX_VALUES))
    labels = [value if value in frequent else None for value in values]
    return _group(feature, [*frequent, None], labels)


def _by_pattern(rows: Rows, name: str, pattern: SlicePatternConfig) -> Slice:
    search = re.compile(pattern.matches).search
    texts = _texts(rows, pattern.feature)
    return Slice(PATTERN, name, [row for row, text in enumerate(texts) if search(text)])


def _by_length(lengths: Sequence[int], bounds: Sequence[int]) -> list[Slice]:
    names = length_names(bounds)
    slices = _group(LENGTH, names, [names[bisect_left(bounds, length)] for length in lengths])
    ranges = zip(slices, length_ranges(bounds), strict=True)
    return [dataclasses.replace(part, bounds=limits) for part, limits in ranges]


def _by_overlap(rows: Rows, overlap: frozenset[int]) -> list[Slice]:
    labels = []
    for references in rows.references:
        has_overlap = any(text_hash(text) in overlap for text in references)
        labels.append("yes" if has_overlap else "no")
    return _group(TARGET_OVERLAP, OVERLAP_NAMES, labels)


def _texts(rows: Rows, feature: str) -> list[str]:
    """Return a text feature of every row; the feature without a column is the reference."""
    if feature in rows.columns:
        return [text or "" for text in rows.columns[feature]]
    return [references[0] for references in rows.references]


def length_ranges(bounds: Sequence[int]) -> list[tuple[int, int | None]]:
    """Return the lowest and the highest length of each slice for some upper bounds."""
    return list(zip([0, *(bound + 1 for bound in bounds)], [*bounds, None], strict=True))


def length_names(bounds: Sequence[int]) -> list[str]:
    """Return the names of slices by length: ``0-10``, ``11-20``, ``21+``."""
    return [f"{low}+" if high is None else f"{low}-{high}" for low, high in length_ranges(bounds)]


def share_names(bounds: Sequence[float]) -> list[str]:
    """Return the names of slices by a share: ``0``, ``0-0.1``, ``0.1+``, or ``0`` and ``>0``.

    Each slice includes its upper bound but not its lower one, except for a share of 0.
    """
    texts = [repr(float(bound)).removesuffix(".0") for bound in bounds]
    first = f"0-{texts[0]}" if bounds[0] else "0"
    last = f"{texts[-1]}+" if bounds[-1] else ">0"
    return [first, *(f"{low}-{high}" for low, high in pairwise(texts)), last]
