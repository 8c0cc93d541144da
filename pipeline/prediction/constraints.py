"""Constraints on outputs: a prefix, phrases, and a glossary of terms with their translations."""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from regard.core.errors import DataError, NotFoundError
from regard.core.regular_files import read_regular
from regard.pipeline.prediction.term_finder import TermFinder
from regard.serving.contract import Contract

SIGNATURE = "constrained"
_MAX_BYTES = 1 << 24


@dataclasses.dataclass(frozen=True)
class OutputConstraints:
    """What every output begins with, and what it contains.

    Attributes:
        prefix: the beginning of every output.
        phrases: texts that every output contains.
        glossary: target terms by source terms. An output contains the target term of each source
            term that its source contains as a whole word, in any case; of overlapping source terms
            the longest one counts.
    """

    prefix: str = ""
    phrases: Sequence[str] = ()
    glossary: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.prefix or self.phrases or self.glossary)

    def inputs(self, row: Mapping[str, Any], contract: Contract) -> dict[str, Any]:
        """Return the inputs of the signature ``constrained`` for a row of the model's inputs."""
        source = row[contract["inputs"][0]["name"]]
        has_terms = self.glossary and isinstance(source, str)
        terms = self._terms.find(source.casefold()) if has_terms else []
        phrases = [*self.phrases, *(self._by_folded[term] for term in terms)]
        return {**row, "prefix": self.prefix, "phrases": "\n".join(dict.fromkeys(phrases))}

    @cached_property
    def _by_folded(self) -> dict[str, str]:
        return {source.casefold(): target for source, target in self.glossary.items()}

    @cached_property
    def _terms(self) -> TermFinder:
        return TermFinder(self._by_folded)


def read_glossary(path: Path) -> dict[str, str]:
    """Read a glossary: source term, tab, target term on each line; blank lines are skipped.

    Raises:
        UserError: the file cannot be read, or a line has no two terms.
    """
    try:
        lines = read_regular(path, _MAX_BYTES).decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"The file is not UTF-8: {error.reason}.", str(path)) from None
    except OSError as error:
        raise NotFoundError(f"The file cannot be read: {error.strerror}.", str(path)) from None
    glossary: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        terms = [term.strip() for term in line.split("\t")]
        if not line.strip():
            continue
        if len(terms) != 2 or not all(terms):
            remedy = "Write a source term, a tab and a target term on each line."
            raise DataError("The line has no two terms.", f"{path}:{number}", remedy)
        glossary[terms[0]] = terms[1]
    return glossary
