"""The reading of one group of files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from regard.components.data.images import Images
from regard.components.data.read_problems import ReadProblems
from regard.components.data.row_reader import Row, read_rows
from regard.components.data.sources import Corpus, FileGroup
from regard.components.data.split_assignment import HashedSplit, replay_bin
from regard.components.data.unreadable_file import UnreadableFile


class RowRules(Protocol):
    """Drops and repairs rows while they are read."""

    def __call__(
        self, job: GroupJob, rows: Iterator[Row], problems: ReadProblems, images: Images
    ) -> Iterator[Row]:
        """Yield the remaining rows of a group."""


@dataclass(frozen=True)
class GroupJob:
    """The reading of one group of files.

    Attributes:
        index: the index of the group in the corpus.
        group: the files.
        hashed: assigns each row to a split; None: all rows have the split of the group.
        threshold: the first hash bin of a replayed group that is not replayed.
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

    def split_of(self, values: Sequence[Any]) -> str:
        """Return the split of a row, whether it is replayed or not."""
        return self.hashed(values) if self.hashed else self.group.split

    def assign(self, values: Sequence[Any]) -> str | None:
        """Return the split of a row; None if it is not replayed."""
        split = self.split_of(values)
        if self.threshold is None:
            return split
        is_replayed = split == "train" and replay_bin(values) < self.threshold
        return split if is_replayed else None

    def count_replayable(self, rows: Iterable[Row]) -> dict[int, int]:
        """Count the rows of a group that may be replayed by the bin of their hash."""
        trained = (values for _, values in rows if self.assign(values) == "train")
        return dict(Counter(map(replay_bin, trained)))

    def rows(
        self, corpus: Corpus, problems: ReadProblems, images: Images, rules: RowRules | None = None
    ) -> Iterator[Row]:
        """Yield the rows of the group; a file that cannot be read is a problem, not an error.

        Args:
            corpus: the corpus.
            problems: receives the rows that are not used.
            images: checks the images that rows name.
            rules: drops and repairs rows; None: no check does.
        """
        try:
            rows = read_rows(self.group, corpus, problems, images)
            yield from rules(self, rows, problems, images) if rules else rows
        except UnreadableFile as error:
            problems.unreadable.append(error.problem)
