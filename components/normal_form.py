"""Which texts count as the same."""

from __future__ import annotations

import unicodedata


def normal(text: str) -> str:
    """The form in which two texts count as the same: stripped and NFC-normalised."""
    text = text.strip()
    return text if text.isascii() else unicodedata.normalize("NFC", text)
