"""The base of all formats of data files."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from regard.components.data.formats import get_format
from regard.components.data.formats.description import FormatDescription
from regard.components.data.read_problems import ReadProblems
from regard.components.data.sources import Corpus, FileGroup

# The line, from 1, and the cells of a row in the order of the features. The cells are None if the
# row is skipped and its problem recorded; a cell is None if it is missing.
Cells = tuple[int, Sequence[Any] | None]


class DataFormat(FormatDescription, ABC):
    """A format of data files with its reader."""

    @abstractmethod
    def read(self, group: FileGroup, corpus: Corpus, problems: ReadProblems) -> Iterator[Cells]:
        """Yield the rows of a group of files.

        Args:
            group: The files: one of each side of a parallel format, otherwise a single one.
            corpus: Its features and the section ``data``.
            problems: Receives what is wrong with rows, and notes about how files are read.

        Raises:
            UnreadableFile: A file cannot be used at all.
        """

    def remedy(self, group: FileGroup, corpus: Corpus) -> str | None:
        """Return how to fix a file most of whose rows are invalid; None if that is unclear."""
        return None


def get_reader(name: str) -> DataFormat:
    """Return a format by its name, with its reader."""
    data_format = get_format(name)
    if not isinstance(data_format, DataFormat):
        raise TypeError(f"The format {name} is no {DataFormat.__name__}.")
    return data_format
