"""The vocabulary of another framework in the order of Regard's ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from regard.components.common.sentencepiece_renumbering import SPECIAL_TOKENS
from regard.models.vocabulary import BOS, EOS, PAD, UNK

# The logit of a token that no output has: its probability is 0 in every floating-point type.
NEVER = -100.0


@dataclass(frozen=True)
class TokenTable:
    """The tokens of one side in the order of Regard's ids, and where their weights are.

    After the four special tokens follow the ``tokens``, then the ``symbols``. The last ones are
    copies, as BOS is: their rows are those of other tokens too.

    Attributes:
        tokens: the texts of ordinary tokens.
        symbols: the texts of the symbols of the user.
        rows: the row of each id in the foreign matrices.
        copies: the ids whose row is a copy of another one's, and which no output has.
        size: the number of foreign ids.
    """

    tokens: Sequence[str]
    symbols: Sequence[str]
    rows: np.ndarray
    copies: np.ndarray
    size: int

    @classmethod
    def create(
        cls,
        texts: Mapping[int, str],
        special: Mapping[int, int],
        start: int,
        missing: Sequence[str] = (),
        symbols: Mapping[str, int] | None = None,
    ) -> TokenTable:
        """Return the table of a vocabulary.

        Args:
            texts: the text of each foreign id.
            special: the foreign ids of PAD, UNK and EOS.
            start: the foreign id that the decoder reads first, for BOS.
            missing: tokens that the vocabulary lacks, so that they are unknown; the SentencePiece
                model needs them to segment texts.
            symbols: the foreign id whose row each symbol has.
        """
        symbols = symbols or {}
        order = [foreign for foreign in sorted(texts) if foreign not in special.values()]
        rows = [special[PAD], special[UNK], start, special[EOS], *order]
        copies = [BOS, *range(len(rows), len(rows) + len(missing) + len(symbols))]
        rows += [special[UNK]] * len(missing)
        # Regard's own special tokens have some of the texts that others have there.
        tokens = [
            f"<unused {foreign}>" if texts[foreign] in SPECIAL_TOKENS else texts[foreign]
            for foreign in order
        ]
        return cls(
            [*tokens, *missing],
            list(symbols),
            np.array([*rows, *symbols.values()]),
            np.array(copies),
            len(texts),
        )

    def id_of(self, foreign: int) -> int:
        """Return the first id with the row of a foreign one that is not special."""
        return int(np.flatnonzero(self.rows == foreign)[0])

    def id_of_symbol(self, text: str) -> int:
        """Return the id of a symbol."""
        return len(SPECIAL_TOKENS) + len(self.tokens) + list(self.symbols).index(text)
