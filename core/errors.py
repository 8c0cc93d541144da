"""Errors that a user can cause and fix, and errors that pass between processes."""

import dataclasses
import pickle
from collections.abc import Mapping
from typing import Any


class UserError(Exception):
    """A mistake in the user's input: what is wrong, where, and how to fix it.

    The command line prints it without a traceback and exits with status 2.

    Args:
        message: what is wrong, with the value.
        where: the file, line or key, for example ``train.de.gz:17``.
        remedy: what the user can do, as a sentence.
    """

    def __init__(self, message: str, where: str | None = None, remedy: str | None = None):
        super().__init__(message, where, remedy)
        self.message = message
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}\n{self.remedy}" if self.remedy else text


@dataclasses.dataclass(frozen=True)
class Failure:
    """Why a node or a run failed, as its events and its record have it.

    Attributes:
        error: The reason, as a sentence.
        node: The node; None outside the nodes.
        where: The key, file or option.
        remedy: How to fix it.
        user: Whether the user can fix it.
    """

    error: str = ""
    node: str | None = None
    where: str | None = None
    remedy: str | None = None
    user: bool = False

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Failure":
        """Read JSON values; other fields are ignored."""
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(**{name: content[name] for name in names if content.get(name) is not None})

    def to_dict(self) -> dict[str, Any]:
        """Return the known fields as JSON values."""
        return {name: value for name, value in vars(self).items() if value is not None}


def pickle_error(error: Exception) -> bytes:
    """Pickle an error, or its type and message if it cannot be unpickled."""
    try:
        content = pickle.dumps(error)
        pickle.loads(content)
    except Exception:
        return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
    return content
