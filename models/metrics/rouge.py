"""ROUGE (Lin 2004) as Google's package ``rouge-score`` computes it."""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Mapping
from typing import Any

from models.metrics.base import Rows, Statistics, Summed, mean_of
from models.unspaced import UNSPACED

# Letters, marks and digits make words. Scripts that write no spaces count a sign as a word.
_WORD = rf"[{UNSPACED}]|[[\p{{L}}\p{{M}}\p{{N}}]--[{UNSPACED}]]+"


def rouge(kind: str) -> Summed:
    """The F1 of ``rouge1``, ``rouge2`` or ``rougeL``, the mean over the rows, 0 to 100.

    Of several references the best counts. Case is ignored, and words are not stemmed.
    """

    def statistics(rows: Rows, options: Mapping[str, Any]) -> Statistics:
        version = importlib.metadata.version("rouge-score")
        signature = f"nrefs:{rows.reference_count()}|case:lc|tok:words|stem:no|version:{version}"
        return mean_of(_scores(kind, rows), signature)

    return statistics


def _scores(kind: str, rows: Rows) -> list[float]:
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer([kind], tokenizer=_Words())
    pairs = zip(rows.references, rows.hypotheses, strict=True)
    return [100.0 * scorer.score_multi(list(wanted), got)[kind].fmeasure for wanted, got in pairs]


class _Words:
    """The words of a text in small letters, in any script.

    Of plain English it makes what the package's own tokenizer makes, which knows no letter but
    a to z: it would leave nothing of a Chinese text, and the score 0.
    """

    def tokenize(self, text: str) -> list[str]:
        return _pattern().findall(text.lower())


@functools.cache
def _pattern() -> Any:
    import regex  # sacreBLEU brings it; the standard library's `re` knows no scripts

    return regex.compile(_WORD, regex.VERSION1)
