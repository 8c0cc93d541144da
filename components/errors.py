"""The errors that a user can cause, and therefore mend."""

from __future__ import annotations


class UserError(Exception):
    """Something in the user's input is wrong: says what, where, and what to do about it.

    The command line prints it without a traceback and exits with status 2.

    Args:
        message: what is wrong, with the value that was given.
        where: the file, line or key it was found at, such as ``train.de.gz:17``.
        remedy: what the user can do about it, as a sentence.
    """

    def __init__(self, message: str, where: str | None = None, remedy: str | None = None):
        super().__init__(message, where, remedy)
        self.message = message
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}\n{self.remedy}" if self.remedy else text
