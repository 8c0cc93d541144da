"""Metrics of text that sacreBLEU computes (Post 2018): BLEU, chrF, TER.

A row may have several references, and not every row as many as the others.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from models.metrics.base import Rows, Statistics, Summed

if TYPE_CHECKING:
    import numpy as np


def tokenizers() -> list[str]:
    """The tokenizers that sacreBLEU's BLEU knows here."""
    from sacrebleu.metrics.bleu import _TOKENIZERS

    return list(_TOKENIZERS)


# The package that each of these needs, which sacreBLEU does not bring, and how to get it.
_PACKAGES = {"ja-mecab": ("MeCab", "ja"), "ko-mecab": ("mecab_ko", "ko")}


def unusable(tokenizer: str) -> str:
    """What is missing for a tokenizer of sacreBLEU's, or the empty string; quick to tell."""
    package, extra = _PACKAGES.get(tokenizer, ("", ""))
    if not package or importlib.util.find_spec(package) is not None:
        return ""
    return f"{tokenizer} needs a package that is not there; pip install 'sacrebleu[{extra}]'"


def bleu(rows: Rows, options: Mapping[str, Any]) -> Statistics:
    """BLEU (Papineni et al. 2002) over n-grams up to 4, 0 to 100."""
    return _summed(_bleu(options), rows)


def _bleu(options: Mapping[str, Any], order: int = 4) -> Any:
    # sacreBLEU takes a moment to import, and the names alone are wanted more often.
    from sacrebleu.metrics import BLEU

    tokenize = options.get("tokenize", "13a")
    if tokenize not in tokenizers():
        raise ValueError(f"unknown tokenizer {tokenize!r} (choices: {', '.join(tokenizers())})")
    try:
        # force: it only silences the guess that the text might be tokenized already.
        return BLEU(
            tokenize=tokenize, lowercase=_lowercase(options), max_ngram_order=order, force=True
        )
    except (RuntimeError, ImportError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"the tokenizer {tokenize!r} cannot be used: {reason}") from error


def bleu_lc(rows: Rows, options: Mapping[str, Any]) -> Statistics:
    """BLEU that ignores case: what papers call lowercased and tokenised, 0 to 100.

    Such papers score with multi-bleu.perl or fairseq-generate on text that Moses has lowercased
    and tokenised. Of sacreBLEU's settings 13a is the closest to that: it finds 12,106 words in
    the German of Multi30k's test_2016_flickr, where fairseq-generate in the README of
    github.com/LividWo/Revisit-MMT (Wu et al. 2021, 41.02 BLEU) counts 12,103; ``intl`` finds
    12,248. The formula is the same, but for an n-gram order without any match.
    """
    return bleu(rows, {**options, "lowercase": True})


def bleu_up_to(order: int) -> Summed:
    """BLEU-1 to BLEU-4, as papers on captions give them: n-grams up to ``order``."""

    def statistics(rows: Rows, options: Mapping[str, Any]) -> Statistics:
        # sacreBLEU's signatures leave the order out, and the value depends on it.
        return _summed(_bleu(options, order), rows, f"|order:{order}")

    return statistics


def chrf(rows: Rows, options: Mapping[str, Any]) -> Statistics:
    """chrF2 (Popović 2015) over character 6-grams, 0 to 100; it needs no tokenizer."""
    from sacrebleu.metrics import CHRF

    return _summed(CHRF(lowercase=_lowercase(options)), rows)


def ter(rows: Rows, options: Mapping[str, Any]) -> Statistics:
    """Translation edit rate (Snover et al. 2006): edits a reference word, in percent.

    The nearest reference counts. Lower is better, and more than 100 is possible.
    """
    from sacrebleu.metrics import TER

    return _summed(TER(case_sensitive=not _lowercase(options)), rows)


def _summed(metric: Any, rows: Rows, note: str = "") -> Statistics:
    """The statistics of one of sacreBLEU's metrics; its own score is the value of their sum."""
    import numpy as np

    # What sacreBLEU's own tests of significance use; it has no other name for it.
    found = metric._extract_corpus_statistics(list(rows.hypotheses), _streams(rows))

    def value(total: np.ndarray) -> float:
        return float(metric._compute_score_from_stats(total.tolist()).score)

    return Statistics(np.asarray(found, "float64"), value, f"{metric.get_signature()}{note}")


def _streams(rows: Rows) -> list[list[str | None]]:
    """One stream for the first references, one for the second ones…; None where a row has fewer."""
    return [
        [row[number] if number < len(row) else None for row in rows.references]
        for number in range(max(map(len, rows.references)))
    ]


def _lowercase(options: Mapping[str, Any]) -> bool:
    return bool(options.get("lowercase", False))
