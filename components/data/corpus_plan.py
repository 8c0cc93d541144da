"""What a run makes of a corpus: the files of each split, the split of each row, and a summary.

``regard validate`` and CorpusGen work from the same plan, so that they accept the same corpora.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from typing_extensions import Self

from regard.components.data.empty_splits import explain_empty_split
from regard.components.data.group_jobs import GroupJob
from regard.components.data.images import Images
from regard.components.data.layouts import check_agreement
from regard.components.data.read_problems import ReadProblems
from regard.components.data.row_filter import create_filter
from regard.components.data.row_reader import Row
from regard.components.data.sources import Corpus, FileGroup, Span, find_files, in_split_order
from regard.components.data.split_assignment import (
    HashedSplit,
    hashed_splits,
    replay_threshold,
    replayed_rows,
)
from regard.core.errors import UserError
from regard.core.formatting import format_count

_PROGRESS_LINES = 4096


@dataclass
class GroupResult:
    """What was read from one group of files.

    Attributes:
        index: the index of the group in the corpus.
        files: its files.
        span: the name of its span.
        rows: the number of rows of each split.
        shards: the number of files of each split that were written.
        replayable: the number of rows that a replayed group could give, by hash bin.
        problems: what was wrong with its rows and files.
        write_error: errno and text of a failed write.
    """

    index: int
    files: tuple[str, ...]
    span: str | None = None
    rows: dict[str, int] = field(default_factory=dict)
    shards: dict[str, int] = field(default_factory=dict)
    replayable: dict[int, int] = field(default_factory=dict)
    problems: ReadProblems = field(default_factory=ReadProblems)
    write_error: tuple[int, str] | None = None

    @classmethod
    def of(cls, job: GroupJob) -> Self:
        """Return the result of a group that has not been read yet."""
        return cls(job.index, job.group.files, job.group.span)


@dataclass
class SpanSummary:
    """The rows of a span by split, and if it is replayed how many were ``available``."""

    span: Span
    rows: dict[str, int]
    available: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        content = {**self.span.to_json(), "rows": self.rows}
        return content if self.available is None else {**content, "available": self.available}


@dataclass
class CorpusSummary:
    """The rows of a corpus by split and span, its problems, and notes for the user."""

    rows: dict[str, int]
    spans: list[SpanSummary]
    problems: ReadProblems
    notes: list[str]


class CorpusPlan:
    """The groups of a corpus and the split of their rows.

    Args:
        corpus: the corpus with its spans resolved.

    Attributes:
        corpus: the corpus.
        groups: its files by split.
        splits: the names of all splits.
        jobs: one for each group; those of replayed groups only count what may be replayed.

    Raises:
        UserError: a file is missing, as ``find_files`` says.
    """

    def __init__(self, corpus: Corpus):
        self.corpus = corpus
        self.groups = find_files(corpus)
        self._hashed, self._newest = hashed_splits(corpus)
        assigned = (split.names for split in (self._hashed, self._newest) if split)
        self.splits = {*self.groups, *itertools.chain.from_iterable(assigned)}
        groups = itertools.chain.from_iterable(self.groups.values())
        self.jobs = [GroupJob(i, group, self._split_of(group)) for i, group in enumerate(groups)]

    def _split_of(self, group: FileGroup) -> HashedSplit | None:
        if group.split != "train":
            return None
        return self._newest if group.replay or group.test_share else self._hashed

    def replay_jobs(self, results: Sequence[GroupResult]) -> list[GroupJob]:
        """Return the jobs that read the replayed rows of older spans.

        Args:
            results: the results of all groups, with the ``replayable`` rows of replayed ones.
        """
        total: Counter[int] = Counter()
        for result in results:
            total.update(result.replayable)
        train_rows = sum(result.rows.get("train", 0) for result in results)
        threshold = replay_threshold(total, train_rows, self.corpus.config.spans.replay)
        return [replace(job, threshold=threshold) for job in self.jobs if job.group.replay]

    def summarize(self, results: Sequence[GroupResult]) -> CorpusSummary:
        """Combine the results of all groups.

        Raises:
            UserError: the corpus cannot be used: files or too many rows have problems, files do not
                agree about their columns, or a split has no rows.
        """
        problems = ReadProblems()
        rows: Counter[str] = Counter(dict.fromkeys(self.splits, 0))
        for result in results:
            problems.merge(result.problems)
            rows.update(result.rows)
        problems.raise_if_unusable(self.corpus.config)
        check_agreement(problems.layouts)
        self._check_not_empty(rows, sum(problems.unused.values()))
        spans = [_span_summary(span, results) for span in self.corpus.spans or ()]
        notes = [*problems.notes(), *self._test_share_notes(spans)]
        notes += self._replay_notes(spans, rows["train"])
        return CorpusSummary(in_split_order(rows), spans, problems, notes)

    def _check_not_empty(self, rows: Mapping[str, int], skipped: int) -> None:
        empty = [name for name, count in in_split_order(rows).items() if not count]
        if not empty:
            return
        names = " and ".join(empty)
        reason = f" ({format_count(skipped, 'row')} skipped)" if skipped else ""
        if self._hashed and set(empty) & set(self._hashed.names):
            count = format_count(sum(rows.values()), "row")
            column, features = self._hashed.column, self.corpus.features
            explanation, remedy = explain_empty_split(self._split_rows(), features, column)
            message = f"{count} cannot be split: {names} would be empty{reason}{explanation}"
            raise UserError(message, where="data.split", remedy=remedy)
        message = f"{names} would have no rows{reason}"
        remedy = "Check `data.columns` and `data.bad_rows`."
        raise UserError(message, where=f"data.{empty[0]}", remedy=remedy)

    def _split_rows(self) -> Iterator[Sequence[Any]]:
        """Read the rows that are split again, to explain why a split is empty."""
        images, rules = Images.of(self.corpus.config), create_filter(self.corpus, self.jobs)
        for job in self.jobs:
            if job.hashed:
                for _, values in job.rows(self.corpus, ReadProblems(), images, rules):
                    yield values

    def _test_share_notes(self, spans: Sequence[SpanSummary]) -> Iterator[str]:
        share = self.corpus.config.spans.test_share
        if spans and share and not spans[-1].rows.get("test"):
            name = spans[-1].span.name
            yield f"data.spans.test_share: {share:g} of span {name} gives no rows for test"

    def _replay_notes(self, spans: Sequence[SpanSummary], train_rows: int) -> Iterator[str]:
        share = self.corpus.config.spans.replay
        replayed = [span for span in spans if span.span.replayed]
        available = sum(span.available or 0 for span in replayed)
        needed = replayed_rows(train_rows - sum(span.rows["train"] for span in replayed), share)
        if replayed and available < needed:
            rows = format_count(needed, "row")
            yield f"data.spans.replay: {share:g} needs {rows}, the older spans have {available:,}"


def survey_corpus(
    plan: CorpusPlan, on_progress: Callable[[str], None] = lambda text: None
) -> CorpusSummary:
    """Read every row, and the beginning of every image, without TensorFlow.

    Memory is bounded, except for tables with several references, of which one file is held.

    Args:
        plan: the plan of the corpus.
        on_progress: called regularly with the current file and line.

    Raises:
        UserError: CorpusGen would refuse the corpus.
    """
    results = [GroupResult.of(job) for job in plan.jobs]
    for _ in _read_splits(plan, results, on_progress):
        pass
    return plan.summarize(results)


def _read_splits(
    plan: CorpusPlan,
    results: Sequence[GroupResult],
    on_progress: Callable[[str], None] = lambda text: None,
    only: str | None = None,
) -> Iterator[tuple[GroupJob, str, Row]]:
    """Yield each row with its split and count it; those of older spans come last.

    Files without rows of the split ``only`` are not read.
    """
    images, rules = Images.of(plan.corpus.config), create_filter(plan.corpus, plan.jobs)
    for job, result in zip(plan.jobs, results, strict=True):
        if only is not None and only not in job.splits:
            continue
        rows = job.rows(plan.corpus, result.problems, images, rules)
        rows = with_progress(job.group, rows, on_progress)
        result.rows = dict.fromkeys(job.splits, 0)
        if job.group.replay:
            result.replayable = job.count_replayable(rows)
            continue
        for line, values in rows:
            split = job.split_of(values)
            result.rows[split] += 1
            yield job, split, (line, values)
    for job in plan.replay_jobs(results):
        for row in job.rows(plan.corpus, ReadProblems(), images, rules):
            if job.assign(row[1]):
                results[job.index].rows["train"] += 1
                yield job, "train", row


def with_progress(
    group: FileGroup, rows: Iterator[Row], on_progress: Callable[[str], None]
) -> Iterator[Row]:
    """Yield rows, and report regularly how far their first file is read."""
    name = os.path.basename(group.files[0])
    for line, values in rows:
        if line % _PROGRESS_LINES == 0:
            on_progress(f"{name}: {line:,} lines")
        yield line, values


def read_split(plan: CorpusPlan, split: str) -> Iterator[tuple[GroupJob, Row]]:
    """Yield the rows of a split as CorpusGen would write them; files of older spans come last.

    Raises:
        UserError: a file cannot be read.
    """
    results = [GroupResult.of(job) for job in plan.jobs]
    for job, name, row in _read_splits(plan, results, only=split):
        if name == split:
            yield job, row
    unreadable = (result.problems.unreadable for result in results)
    for problem in itertools.chain.from_iterable(unreadable):
        raise problem.as_user_error()


def _span_summary(span: Span, results: Sequence[GroupResult]) -> SpanSummary:
    span_results = [result for result in results if result.span == span.name]
    rows: Counter[str] = Counter()
    for result in span_results:
        rows.update(result.rows)
    available = sum(sum(result.replayable.values()) for result in span_results)
    return SpanSummary(span, in_split_order(rows), available if span.replayed else None)
