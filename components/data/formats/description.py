"""What the section ``data`` needs to know about a format of files, without a file."""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from regard.core.features import Feature
from regard.models.settings.base import KeyPath, Problem

# The keys of the section ``data`` that say how files are read, and that not every format uses.
FILE_KEYS = ("columns", "header", "delimiter", "encoding")


class FormatDescription:
    """A format of data files, as the section ``data`` and its documentation know it.

    Attributes:
        name: The value of ``data.format``.
        text: A noun phrase that describes the files, for the reference.
        endings: The endings of file names that show the format, in lower case; an empty one is that
            of a folder. ``.gz`` may follow.
        keys: The keys among `FILE_KEYS` that the format uses. Their values say what the keys mean
            in this format, for the reference; empty if the description of the key says all.
        is_parallel: Whether each side has a file of its own; otherwise a file holds all sides.
        is_compressible: Whether files may be compressed with gzip.
        holds_text: Whether all cells are texts that have to be parsed; otherwise they have types,
            as in JSON. Rows of texts with equal inputs are joined if features have several values.
        numbers_columns: Whether ``data.columns`` may give numbers of columns.
    """

    name: ClassVar[str]
    text: ClassVar[str]
    endings: ClassVar[tuple[str, ...]] = ()
    keys: ClassVar[Mapping[str, str]]
    is_parallel: ClassVar[bool] = False
    is_compressible: ClassVar[bool] = True
    holds_text: ClassVar[bool] = False
    numbers_columns: ClassVar[bool] = False

    def problems(
        self, path: KeyPath, features: Sequence[Feature], columns: Mapping[str, int | str] | None
    ) -> Iterator[Problem]:
        """Yield why rows of a task cannot be read from files of this format.

        Args:
            path: The key with the files, such as ``data.train``.
            features: The features of a row.
            columns: The value of ``data.columns``.
        """
        yield from ()
