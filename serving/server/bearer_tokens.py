"""The tokens of a server's clients, which can be replaced while it runs."""

from __future__ import annotations

import hmac
from pathlib import Path

from regard.core.errors import UserError
from regard.serving.server.file_watch import FileWatch, read_file

_MAX_BYTES = 16 << 10
_REMEDY = "Give a file with one token per line, for example of openssl rand -hex 32."


class BearerTokens:
    """The tokens of clients, in a file that is read again when it changes.

    Args:
        file: the file, with one token per line.

    Attributes:
        watch: the checks of the file.

    Raises:
        UserError: the file cannot be used.
    """

    def __init__(self, file: Path):
        self._tokens = read_tokens(file)
        self.watch = FileWatch("tokens", self._tokens, lambda: read_tokens(file), self._use)

    def contains(self, token: str) -> bool:
        """Return whether a client's token is one of these, in a time that reveals none of them."""
        encoded = token.encode()
        comparisons = [hmac.compare_digest(encoded, known.encode()) for known in self._tokens]
        return any(comparisons)

    def _use(self, tokens: tuple[str, ...]) -> tuple[str, ...]:
        self._tokens = tokens
        return tokens


def read_tokens(file: Path) -> tuple[str, ...]:
    """Return the tokens in a file, without the white space around them.

    Raises:
        UserError: it cannot be read, is too large, or contains no token, or a line that is none.
    """
    try:
        lines = read_file(file, _MAX_BYTES).decode("ascii").split("\n")
    except UnicodeDecodeError:
        raise UserError("A token is not ASCII text.", str(file), _REMEDY) from None
    tokens = tuple(stripped for line in lines if (stripped := line.strip()))
    if not tokens:
        raise UserError("The file contains no token.", str(file), _REMEDY)
    for token in tokens:
        if token.startswith("#") or not token.isprintable() or " " in token:
            message = "A token has a space or a control character, or begins with #."
            raise UserError(message, str(file), _REMEDY)
    return tokens
