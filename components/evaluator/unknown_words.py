"""How much of what a model is asked are words that it has not been trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from components.profiles import FILE, read, words

REMEDY = "The ExampleValidator wrote it: remove the artifacts of the run and run it again."


@dataclass(frozen=True)
class Vocabulary:
    """The words of the train split.

    Attributes:
        words: as the ExampleValidator counted them.
        complete: whether these are all; else the rarer ones are taken for unknown too.
    """

    words: frozenset[str]
    complete: bool

    def unknown(self, texts: Sequence[str]) -> float:
        """The share of the running words of some texts that are not among these; 0 of no words."""
        found = [word for text in texts for word in words(text)]
        return sum(word not in self.words for word in found) / max(len(found), 1)


def vocabulary(findings: Path, features: Sequence[str]) -> Vocabulary | None:
    """The words of some features together; None where the ExampleValidator did not count them.

    Args:
        findings: the ExampleValidator's folder.
        features: the texts that a model is given, by name.

    Raises:
        UserError: the file of their counts is broken.
    """
    path = findings / FILE
    if not path.exists():
        return None
    counted = read(path, REMEDY)["features"]
    known = [counted[name] for name in features if "words" in counted.get(name, ())]
    if not known:
        return None
    return Vocabulary(
        frozenset(word for entry in known for word in entry["words"]),
        all(entry["complete"] for entry in known),
    )
