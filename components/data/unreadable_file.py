"""A problem of a file or of one of its lines, and the error of a file that cannot be read."""

from __future__ import annotations

from dataclasses import dataclass

from regard.core.errors import DataError


@dataclass
class ReadProblem:
    """One problem; ``line`` counts from 1 and is None for the file as a whole."""

    file: str
    line: int | None
    text: str
    remedy: str | None = None

    @property
    def location(self) -> str:
        """The file, and the line if there is one: ``train.tsv:17``."""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def as_user_error(self, suffix: str = "") -> DataError:
        """Return the problem as an error."""
        return DataError(self.text + suffix, self.location, self.remedy)


class UnreadableFile(DataError):
    """The rest of a file cannot be read, whatever the settings are."""

    def __init__(self, file: str, text: str, remedy: str, line: int | None = None):
        self.problem = ReadProblem(file, line, text, remedy)
        super().__init__(text, self.problem.location, remedy)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.problem.file, self.message, self.remedy, self.problem.line)
