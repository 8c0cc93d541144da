"""The tags that begin the sources of a model for several languages.

A tag such as ``de`` stands in a source as ``<de> A dog runs.``; `regard.models.tags` writes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from regard.serving.contract import Contract
from regard.serving.server.errors import invalid

_BLANK = r"\s*"  # of a model without the key ``blank`` in its contract
_MAX_LISTED = 10
_MAX_START = 4096  # bytes in which a tag must begin


def blank_pattern(contract: Contract) -> re.Pattern[str]:
    """Return the expression of a blank source, which may begin with a tag."""
    blank = contract.get("blank", _BLANK)
    if not (tags := contract.get("tags")):
        return re.compile(blank)
    return re.compile(rf"(?:\s*<(?:{'|'.join(map(re.escape, tags))})>)?(?:{blank})")


class TagCheck:
    """Refuses sources without a tag, whose outputs would be in an undefined language.

    Args:
        contract: the contract of a model with tags.

    Attributes:
        input_name: the input with the sources.
    """

    def __init__(self, contract: Contract):
        self.input_name = contract["inputs"][0]["name"]
        self._symbols = tuple(f"<{tag}>" for tag in contract.get("tags", []))
        self._blank = blank_pattern(contract)

    def run(self, sources: Iterable[bytes]) -> None:
        """Check that each source begins with a tag. Blank ones need none: their outputs are blank.

        Raises:
            ServingError: a source has no tag.
        """
        for row, source in enumerate(sources):
            start = source[:_MAX_START].decode(errors="replace").lstrip()
            if not start.startswith(self._symbols) and not self._is_blank(source):
                listed = ", ".join(self._symbols[:_MAX_LISTED])
                rest = ", and so on" if len(self._symbols) > _MAX_LISTED else ""
                place = f"Row {row} of the input {self.input_name}"
                raise invalid(f"{place} must begin with a tag of the model: {listed}{rest}.")

    def _is_blank(self, source: bytes) -> bool:
        return self._blank.fullmatch(source.decode(errors="replace")) is not None
