"""Parallel files: one file for each side, with one text per line."""

from collections.abc import Iterator
from itertools import zip_longest

from regard.components.data.formats.base import Cells, DataFormat
from regard.components.data.read_problems import ReadProblems
from regard.components.data.sources import Corpus, FileGroup
from regard.components.data.text_files import InvalidLine, read_lines
from regard.components.data.unreadable_file import UnreadableFile

_END = object()


class ParallelFormat(DataFormat):
    """Parallel files: line n of one file belongs to line n of the others."""

    name = "parallel"
    text = "one file per side with one text per line"
    keys = {
        "columns": "the endings of the files of the sides: corpus stands for corpus.en, corpus.fr",
        "encoding": "",
    }
    is_parallel = True
    holds_text = True

    def read(self, group: FileGroup, corpus: Corpus, problems: ReadProblems) -> Iterator[Cells]:
        """Yield the lines of all files, in the order of the features."""
        encoding = corpus.config.encoding
        sides = [read_lines(path, problems, encoding=encoding) for path in group.files]
        names = [feature.name for feature in corpus.features]
        indices = [group.sides.index(name) if name in group.sides else None for name in names]
        in_order = None not in indices
        line = 0
        for line, row in enumerate(zip_longest(*sides, fillvalue=_END), 1):
            if _END in row:
                break
            if InvalidLine in map(type, row):
                yield line, None
            else:
                yield line, row if in_order else [None if i is None else row[i] for i in indices]
        else:
            return
        # Count the rest of the longer files, for the message.
        counts = []
        for value, side in zip(row, sides, strict=True):
            rest = sum(1 for _ in side)
            counts.append(line - 1 if value is _END else line + rest)
        lengths = " but ".join(
            f"{path} has {count:,} lines" for path, count in zip(group.files, counts, strict=True)
        )
        raise UnreadableFile(
            group.files[0],
            f"parallel files differ in length: {lengths}",
            "Line n of one file must belong to line n of the other.",
        )


FORMAT = ParallelFormat()
