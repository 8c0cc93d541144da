"""Protected texts that a test can read, and the settings of most tests."""

from regard.models.protected_spans import CLOSE, LITERALS, OPEN, PAIRS, symbol
from regard.models.settings.protect import ProtectConfig

KINDS = ("urls", "emails", "numbers", "markup", "placeholders")
ALL = ProtectConfig(kinds=KINDS)


def readable(text):
    """A protected text with names for symbols: L0, <0 and >0."""
    names = {symbol(i): f"L{i}" for i in range(LITERALS)}
    names |= {symbol(OPEN + i): f"<{i}" for i in range(PAIRS)}
    names |= {symbol(CLOSE + i): f">{i}" for i in range(PAIRS)}
    return "".join(names.get(letter, letter) for letter in text)
