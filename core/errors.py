"""Errors that a user can cause and fix, and errors that pass between processes."""

import dataclasses
import pickle
from collections.abc import Mapping
from typing import Any


class UserError(Exception):
    """A mistake in the user's input: what is wrong, where, and how to fix it.

    The command line prints it without a traceback and exits with status 2.

    Attributes:
        code: The kind of the mistake, for programs; None if the place determines it, see
            `regard.pipeline.cli.error_records`.

    Args:
        message: what is wrong, with the value.
        where: the file, line or key, for example ``train.de.gz:17``.
        remedy: what the user can do, as a sentence.
    """

    code: str | None = None

    def __init__(self, message: str, where: str | None = None, remedy: str | None = None):
        super().__init__(message, where, remedy)
        self.message = message
        self.where = where
        self.remedy = remedy

    def with_texts(self, message: str, where: str | None, remedy: str | None) -> "UserError":
        """Return an error of the same kind with other texts."""
        return class_of(self.code)(message, where, remedy)

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}\n{self.remedy}" if self.remedy else text


@dataclasses.dataclass(frozen=True)
class LocatedMessage:
    """One of several mistakes in a YAML file.

    Attributes:
        text: What is wrong.
        file: The file; empty for a value in Python or on the command line.
        line: The line, from 1; None without a file.
        key: The key, such as ``training.max_epochs``; empty for the file as a whole.
    """

    text: str
    file: str = ""
    line: int | None = None
    key: str = ""


class ConfigError(UserError):
    """A configuration is invalid.

    Attributes:
        problems: Each of its mistakes, which the message lists.
    """

    code = "configuration"
    problems: tuple[LocatedMessage, ...] = ()


class DataError(UserError):
    """Data files, rows or inputs are invalid."""

    code = "data"


class NotFoundError(UserError):
    """A file, model, version, run, pipeline or data set does not exist."""

    code = "not_found"


class EnvironmentFault(UserError):
    """The machine, a package, a variable of the environment or a server prevents the work."""

    code = "environment"


def class_of(code: str | None) -> type[UserError]:
    """Return the class of the errors with a code."""
    kinds = (ConfigError, DataError, NotFoundError, EnvironmentFault)
    return next((kind for kind in kinds if kind.code == code), UserError)


@dataclasses.dataclass(frozen=True)
class Failure:
    """Why a node or a run failed, as its events and its record have it.

    Attributes:
        error: The reason, as a sentence.
        node: The node; None outside the nodes.
        where: The key, file or option.
        remedy: How to fix it.
        user: Whether the user can fix it.
        code: The code of the `UserError`.
    """

    error: str = ""
    node: str | None = None
    where: str | None = None
    remedy: str | None = None
    user: bool = False
    code: str | None = None

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
