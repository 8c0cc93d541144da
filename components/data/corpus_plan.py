"""What a run makes of a corpus: the files of each split, the split of each row, and a summary.

``regard validate`` and CorpusGen work from the same plan, so that they accept the same corpora.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from regard.components.common.errors import UserError
from regard.components.common.formatting import format_count
from regard.components.data.images import Images
from regard.components.data.read_problems import ReadProblems, UnreadableFile
from regard.components.data.row_reader import Row, read_rows
from regard.components.data.sources import Corpus, FileGroup, Span, find_files, in_split_order
from regard.components.data.split_assignment import (
    HashedSplit,
    hashed_splits,
    replay_bin,
    replay_threshold,
    replayed_rows,
)

_PROGRESS_LINES = 4096


@dataclass(frozen=True)
class GroupJob:
    """The reading of one group of files.

    Attributes:
        index: the index of the group in the corpus.
        group: the files.
        hashed: assigns each row to a split; None: all rows have the split of the group.
        threshold: of a replayed group the first hash bin that is not replayed.
    """

    index: int
    group: FileGroup
    hashed: HashedSplit | None
    threshold: int | None = None

    @property
    def splits(self) -> Sequence[str]:
        """The splits that rows of the group can have."""
        if self.group.replay or self.hashed is None:
            return (self.group.split,)
        return self.hashed.names

    def assign(self, values: Sequence[Any]) -> str | None:
        """Return the split of a row; None if it is not replayed."""
        split = self.hashed(values) if self.hashed else self.group.split
        if self.threshold is None:
            return split
        is_replayed = split == "train" and replay_bin(values) < self.threshold
        return split if is_replayed else None

    def count_replayable(self, rows: Iterable[Row]) -> dict[int, int]:
        """Count the rows of a group that may be replayed by the bin of their hash."""
        trained = (values for _, values in rows if self.assign(values) == "train")
        return dict(Counter(map(replay_bin, trained)))

    def rows(self, corpus: Corpus, problems: ReadProblems, images: Images | None) -> Iterator[Row]:
        """Yield the rows of the group; a file that cannot be read is a problem, not an error."""
        try:
            yield from read_rows(self.group, corpus, problems, images)
        except UnreadableFile as error:
            problems.unreadable.append(error.problem)


@dataclass
class GroupResult:
    """What was read from one group of files.

    Attributes:
        index: the index of the group in the corpus.
        files: its files.
        span: the name of its span.
        rows: the number of rows of each split.
        replayable: of a replayed group the number of rows that it could give by hash bin.
        problems: what was wrong with its rows and files.
        write_error: errno and text of a failed write.
    """

    index: int
    files: tuple[str, ...]
    span: str | None = None
    rows: dict[str, int] = field(default_factory=dict)
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
        corpus: with its spans resolved.

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
            results: of all groups, with the ``replayable`` rows of replayed ones.
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
            UserError: the corpus cannot be used: files or too many rows have problems, or a split
                has no rows.
        """
        problems = ReadProblems()
        rows: Counter[str] = Counter(dict.fromkeys(self.splits, 0))
        for result in results:
            problems.merge(result.problems)
            rows.update(result.rows)
        problems.raise_if_unusable(self.corpus.config)
        self._check_not_empty(rows, problems.skipped_rows)
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
            raise UserError(
                f"{count} cannot be split: {names} would be empty{reason}",
                where="data.split",
                remedy="Add rows, choose larger shares or another seed, or name files for `eval` "
                "and `test`.",
            )
        raise UserError(
            f"{names} would have no rows{reason}",
            where=f"data.{empty[0]}",
            remedy="Check `data.columns` and `data.bad_rows`.",
        )

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
    plan: CorpusPlan, on_progress: Callable[[str], None] | None = None
) -> CorpusSummary:
    """Read every row, and the beginning of every image, without TensorFlow.

    Memory is bounded, except for tables with several references, of which one file is held.

    Args:
        plan: of the corpus.
        on_progress: called regularly with the current file and line.

    Raises:
        UserError: CorpusGen would refuse the corpus.
    """
    corpus, images = plan.corpus, Images.of(plan.corpus.config)
    results = []
    for job in plan.jobs:
        result = GroupResult.of(job)
        results.append(result)
        rows = job.rows(corpus, result.problems, images)
        if on_progress is not None:
            rows = with_progress(job.group, rows, on_progress)
        if job.group.replay:
            result.replayable = job.count_replayable(rows)
        else:
            assigned = Counter(job.assign(values) for _, values in rows)
            result.rows = {name: assigned[name] for name in job.splits}
    for job in plan.replay_jobs(results):
        by_bin = results[job.index].replayable.items()
        rows_below = sum(count for number, count in by_bin if number < (job.threshold or 0))
        results[job.index].rows = {"train": rows_below}
    return plan.summarize(results)


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
    images = Images.of(plan.corpus.config)
    results = [GroupResult.of(job) for job in plan.jobs]
    for job, result in zip(plan.jobs, results, strict=True):
        if job.group.replay:
            rows = job.rows(plan.corpus, ReadProblems(), images)
            result.replayable = job.count_replayable(rows) if split == "train" else {}
        elif split in job.splits:
            result.rows[split] = 0
            for row in _rows_of_split(job, split, plan.corpus, images):
                result.rows[split] += 1
                yield job, row
    for job in plan.replay_jobs(results) if split == "train" else ():
        yield from ((job, row) for row in _rows_of_split(job, split, plan.corpus, images))


def _rows_of_split(job: GroupJob, split: str, corpus: Corpus, images: Images) -> Iterator[Row]:
    try:
        for line, values in read_rows(job.group, corpus, ReadProblems(), images):
            if job.assign(values) == split:
                yield line, values
    except UnreadableFile as error:
        raise error.problem.as_user_error() from None


def _span_summary(span: Span, results: Sequence[GroupResult]) -> SpanSummary:
    own = [result for result in results if result.span == span.name]
    rows: Counter[str] = Counter()
    for result in own:
        rows.update(result.rows)
    available = sum(sum(result.replayable.values()) for result in own)
    return SpanSummary(span, in_split_order(rows), available if span.replayed else None)
