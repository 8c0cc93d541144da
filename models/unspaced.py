"""The scripts that write no spaces between words."""

from __future__ import annotations

# For the inside of a class of characters of the package ``regex``.
UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
