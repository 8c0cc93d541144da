"""Files of text, numbers, points and images become tf.Examples in splits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from components.corpus_gen.fingerprints import fingerprint
from components.corpus_gen.sources import Group, resolve

if TYPE_CHECKING:
    from components.corpus_gen.component import CorpusGen

__all__ = ["CorpusGen", "Group", "fingerprint", "resolve"]


def __getattr__(name: str) -> Any:
    # The component needs TFX, which takes seconds to import; the checks of files do not.
    if name == "CorpusGen":
        from components.corpus_gen.component import CorpusGen

        return CorpusGen
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
