"""Errors that a user can cause and fix, and errors that pass between processes."""

import pickle


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


def pickle_error(error: Exception) -> bytes:
    """Pickle an error, or its type and message if it cannot be unpickled."""
    try:
        content = pickle.dumps(error)
        pickle.loads(content)
    except Exception:
        return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
    return content
