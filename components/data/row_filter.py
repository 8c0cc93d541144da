"""The checks that change rows while they are read: ``drop`` leaves them out, ``repair`` fixes them.

They apply to the files of ``data.train`` before their rows are split, so that every later node sees
the same rows. Files of ``data.eval`` and ``data.test`` do not change: their scores stay comparable.
Of the rows with the split ``train``, those that repeat others are dropped as well. What a row is
compared with comes from an earlier reading of the corpus. So each row is judged alone, and the
result does not depend on the number of workers.
"""

from __future__ import annotations

import functools
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from regard.components.checks.base import CheckContext
from regard.components.checks.encoding import fix_encoding
from regard.components.checks.script import usual_scripts
from regard.components.data.group_jobs import GroupJob
from regard.components.data.images import Images
from regard.components.data.near_duplicates import NearDuplicateIndex
from regard.components.data.read_problems import ReadProblems
from regard.components.data.row_reader import Row
from regard.components.data.row_values import ComparedValues, value_lists
from regard.components.data.sources import Corpus
from regard.components.data.text_analysis import count_scripts
from regard.core.features import Feature
from regard.core.formatting import changed_part, truncate


class RowFilter:
    """Drops and repairs rows as ``data.checks`` says.

    Args:
        corpus: the corpus.

    Attributes:
        checks: those that drop rows.
        context: what the checks of single rows know about train.
        duplicates: the training rows that repeat an earlier one, as the index of their group and
            their position in it in one number; a line of a TMX file may have several rows.
        inputs: the hashes of the inputs of the other splits.
        texts: the texts of these inputs.
    """

    def __init__(self, corpus: Corpus):
        self.features, self.compared = corpus.features, ComparedValues(corpus.features)
        checks, changes = corpus.config.checks, corpus.config.checks.row_changes()
        dropping = {name for name, change in changes.items() if change["action"] == "drop"}
        others = type(checks).model_fields.keys() - dropping
        self.checks = checks.model_copy(update=dict.fromkeys(others))
        self._row_checks = self.checks.row_checks
        self._repairs = "encoding" in changes.keys() - dropping
        self.context = CheckContext()
        self.duplicates: set[int] = set()
        self.inputs: set[int] = set()
        self.texts: set[str] = set()

    @functools.cached_property  # an index takes seconds, and cannot be pickled
    def _index(self) -> NearDuplicateIndex | None:
        near = self.checks.near_overlap
        rows = enumerate(sorted(self.texts))
        return NearDuplicateIndex(rows, near.similarity) if near and self.texts else None

    def __call__(
        self, job: GroupJob, rows: Iterator[Row], problems: ReadProblems, images: Images
    ) -> Iterator[Row]:
        """Yield the remaining rows of a group.

        Args:
            job: the group.
            rows: its valid rows.
            problems: receives the rows that are dropped or repaired.
            images: reads the images of the rows.
        """
        for _, row in self.number(job, rows, problems, images):
            yield row

    def number(
        self, job: GroupJob, rows: Iterator[Row], problems: ReadProblems, images: Images
    ) -> Iterator[tuple[int, Row]]:
        """Yield the remaining rows of a group, as a call does, with their numbers in the corpus."""
        file, features = job.group.files[0], self.features
        for number, (line, row) in enumerate(rows, job.index << 40):
            if job.group.split != "train":
                yield number, (line, row)
                continue
            if self._repairs:
                fixed = [_fix(v) if f.tokenized else v for f, v in zip(features, row, strict=True)]
                if fixed != list(row):
                    old, new = _describe(features, row), _describe(features, fixed)
                    parts = changed_part(old, new), changed_part(new, old)
                    change = " → ".join(map(repr, parts))
                    problems.add_change("encoding/repaired", file, line, change)
                    row = fixed
            trained = number if job.split_of(row) == "train" else None
            if reason := self._reason(self.values(row, images), trained):
                text = repr(truncate(_describe(features, row), 120))
                problems.add_change(f"{reason}/dropped", file, line, text)
            else:
                yield number, (line, row)

    def values(self, row: Sequence[Any], images: Images | None) -> list[list[Any]]:
        """Return the values of a row as checks compare them."""
        needs_images = self.checks.duplicates or self.checks.overlap
        return value_lists(self.features, row, images if needs_images else None)

    def _reason(self, values: Sequence[list[Any]], number: int | None) -> str | None:
        """Return the first check that drops a row; ``number`` is None if it is not trained on."""
        checks, compared = self.checks, self.compared
        texts = compared.row_texts(values)
        for name, check in self._row_checks.items():
            if check.affects(texts, self.context):
                return name
        if number is None:
            return None
        if checks.overlap and compared.input_hash(values) in self.inputs:
            return "overlap"
        if number in self.duplicates:
            return "duplicates"
        index, text = self._index, compared.input_text(values)
        return "near_overlap" if index and text and any(index.matches([(0, text)])) else None


def create_filter(corpus: Corpus, jobs: Iterable[GroupJob]) -> RowFilter | None:
    """Return the filter of a corpus, after a reading of all rows if a check compares them.

    None if no check changes rows.

    A row that another check drops counts for nothing. Memory holds the inputs of the other splits,
    and 16 bytes for each training row.
    """
    if not corpus.config.checks.row_changes():
        return None
    first, result = RowFilter(corpus), RowFilter(corpus)
    checks, compared, images = first.checks, first.compared, Images.of(corpus.config)
    if not (checks.script or checks.duplicates or checks.overlap or checks.near_overlap):
        return result
    letters: dict[str, Counter[str]] = defaultdict(Counter)
    hashes, numbers = array("Q"), array("Q")
    # Replayed spans come last: of equal rows, one that is trained on in any case comes first.
    for job in sorted(jobs, key=lambda job: job.group.replay):
        rows = job.rows(corpus, ReadProblems(), images)
        for number, (_, row) in first.number(job, rows, ReadProblems(), images):
            values = first.values(row, images)
            if job.split_of(row) == "train":
                for i, name in compared.texts.items():
                    letters[name].update(count_scripts(" ".join(values[i])))
                hashes.append(compared.row_hash(values))
                numbers.append(number)
            elif not job.group.replay:  # of older spans only training rows are used
                result.inputs.add(compared.input_hash(values))
                result.texts.add(compared.input_text(values))
    result.context = CheckContext(usual_scripts(letters))
    if checks.duplicates:
        originals = np.unique(np.frombuffer(hashes, np.uint64), return_index=True)[1]
        result.duplicates = set(np.delete(np.frombuffer(numbers, np.uint64), originals).tolist())
    return result


def _fix(value: Any) -> Any:
    """Return one or several texts with their encoding repaired; a missing one stays missing."""
    if isinstance(value, list):
        return list(map(fix_encoding, value))
    return value and fix_encoding(value)


def _describe(features: Sequence[Feature], row: Sequence[Any]) -> str:
    lists = value_lists(features, row)
    pairs = zip(features, lists, strict=True)
    return " | ".join(feature.kind.format(feature, values) for feature, values in pairs)
