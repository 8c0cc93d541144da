"""Metrics of text that sacreBLEU computes (Post 2018): BLEU, chrF, TER.

A row may have several references, and not every row as many as the others.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from models.metrics.base import Function, Rows, Statistics, Summed

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


def bleu(rows: Rows, options: Mapping[str, Any], order: int = 4) -> tuple[float, str]:
    """BLEU (Papineni et al. 2002) over n-grams up to ``order``, 0 to 100."""
    return _score(_bleu(options, order), rows)


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


def bleu_lc(rows: Rows, options: Mapping[str, Any]) -> tuple[float, str]:
    """BLEU that ignores case: what papers call lowercased and tokenised, 0 to 100.

    Such papers score with multi-bleu.perl or fairseq-generate on text that Moses has lowercased
    and tokenised. Of sacreBLEU's settings 13a is the closest to that: it finds 12,106 words in
    the German of Multi30k's test_2016_flickr, where fairseq-generate in the README of
    github.com/LividWo/Revisit-MMT (Wu et al. 2021, 41.02 BLEU) counts 12,103; ``intl`` finds
    12,248. The formula is the same, but for an n-gram order without any match.
    """
    return bleu(rows, {**options, "lowercase": True})


def bleu_up_to(order: int) -> Function:
    """BLEU-1 to BLEU-4, as papers on captions give them: n-grams up to ``order``."""

    def function(rows: Rows, options: Mapping[str, Any]) -> tuple[float, str]:
        value, signature = bleu(rows, options, order)
        # sacreBLEU's signatures leave the order out, and the value depends on it.
        return value, f"{signature}|order:{order}"

    return functools.update_wrapper(function, bleu)


def chrf(rows: Rows, options: Mapping[str, Any]) -> tuple[float, str]:
    """chrF2 (Popović 2015) over character 6-grams, 0 to 100; it needs no tokenizer."""
    return _score(_chrf(options), rows)


def _chrf(options: Mapping[str, Any]) -> Any:
    from sacrebleu.metrics import CHRF

    return CHRF(lowercase=_lowercase(options))


def ter(rows: Rows, options: Mapping[str, Any]) -> tuple[float, str]:
    """Translation edit rate (Snover et al. 2006): edits a reference word, in percent.

    The nearest reference counts. Lower is better, and more than 100 is possible.
    """
    return _score(_ter(options), rows)


def _ter(options: Mapping[str, Any]) -> Any:
    from sacrebleu.metrics import TER

    return TER(case_sensitive=not _lowercase(options))


def summed(make: Callable[[Mapping[str, Any]], Any]) -> Summed:
    """The statistics of one of sacreBLEU's metrics, made of options."""

    def function(rows: Rows, options: Mapping[str, Any]) -> Statistics:
        import numpy as np

        metric = make(options)
        # What sacreBLEU's own tests of significance use; it has no other name for it.
        found = metric._extract_corpus_statistics(list(rows.hypotheses), _streams(rows))

        def value(total: np.ndarray) -> float:
            return float(metric._compute_score_from_stats(list(total)).score)

        return Statistics(np.asarray(found, "float64"), value)

    return function


def bleu_summed(order: int = 4, **fixed: Any) -> Summed:
    """The statistics of BLEU up to an order, with some options fixed."""
    return summed(lambda options: _bleu({**options, **fixed}, order))


chrf_summed, ter_summed = summed(_chrf), summed(_ter)


def _score(metric: Any, rows: Rows) -> tuple[float, str]:
    score = metric.corpus_score(list(rows.hypotheses), _streams(rows))
    return float(score.score), str(metric.get_signature())


def _streams(rows: Rows) -> list[list[str | None]]:
    """One stream for the first references, one for the second ones…; None where a row has fewer."""
    return [
        [row[number] if number < len(row) else None for row in rows.references]
        for number in range(max(map(len, rows.references)))
    ]


def _lowercase(options: Mapping[str, Any]) -> bool:
    return bool(options.get("lowercase", False))
