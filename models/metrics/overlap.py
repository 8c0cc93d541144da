"""Metrics that compare outputs with references: BLEU, chrF, TER, ROUGE and exact match.

A row may have several references, and their number may vary between rows. BLEU, chrF and TER are
sacreBLEU's (Post 2018); ROUGE (Lin 2004) is that of Google's package ``rouge-score``.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.metadata
import importlib.util
import itertools
import numbers
from typing import TYPE_CHECKING, Any

from regard.models.metrics.base import (
    MetricFunction,
    MetricOptions,
    Rows,
    Statistics,
    match_statistics,
    mean_statistics,
)
from regard.models.vocabulary import UNSPACED

if TYPE_CHECKING:
    import re

    import numpy as np

# Words consist of letters, marks and digits. In scripts without spaces every sign is a word.
_WORD = rf"[{UNSPACED}]|[[\p{{L}}\p{{M}}\p{{N}}]--[{UNSPACED}]]+"
# The tokenizers of sacreBLEU for texts in which single characters of TER are words.
_ASIAN = ("zh", "ja-mecab")
# The package that a tokenizer of sacreBLEU needs, and sacreBLEU's extra that installs it.
_PACKAGES = {"ja-mecab": ("MeCab", "ja"), "ko-mecab": ("mecab_ko", "ko")}


def tokenizers() -> list[str]:
    """Return the tokenizers of sacreBLEU's BLEU."""
    from sacrebleu.metrics.bleu import _TOKENIZERS

    return list(_TOKENIZERS)


def missing_tokenizer_package(tokenizer: str) -> str:
    """Return an error message if a tokenizer's package is not installed, otherwise ""."""
    package, extra = _PACKAGES.get(tokenizer, ("", ""))
    if not package or importlib.util.find_spec(package) is not None:
        return ""
    return f"{tokenizer} needs a package that is not installed; pip install 'sacrebleu[{extra}]'"


def bleu(rows: Rows, options: MetricOptions) -> Statistics:
    """Compute BLEU (Papineni et al. 2002) over n-grams up to 4, 0 to 100."""
    return _sacrebleu_statistics(_bleu(options), rows)


def _bleu(options: MetricOptions, order: int = 4) -> Any:
    # Imported late: sacreBLEU is slow to import, and often only the metrics' names are needed.
    from sacrebleu.metrics import BLEU

    tokenize = options.tokenize
    if tokenize not in tokenizers():
        raise ValueError(f"unknown tokenizer {tokenize!r} (choices: {', '.join(tokenizers())})")
    try:
        # force only silences the guess that the text is tokenized already.
        return BLEU(
            tokenize=tokenize, lowercase=options.lowercase, max_ngram_order=order, force=True
        )
    except (RuntimeError, ImportError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"the tokenizer {tokenize!r} cannot be used: {reason}") from error


def bleu_lc(rows: Rows, options: MetricOptions) -> Statistics:
    """Compute BLEU without case, which papers call lowercased and tokenized BLEU, 0 to 100.

    Such papers use multi-bleu.perl or fairseq-generate on text that Moses has lowercased and
    tokenized. sacreBLEU's 13a is closest to that: it finds 12,106 words in the German side of
    Multi30k's test_2016_flickr, where fairseq-generate in the README of
    github.com/LividWo/Revisit-MMT (Wu et al. 2021, 41.02 BLEU) counts 12,103; ``intl`` finds
    12,248. The formula is the same except for n-gram orders without a match.
    """
    return bleu(rows, dataclasses.replace(options, lowercase=True))


def bleu_up_to(order: int) -> MetricFunction:
    """Return BLEU-1 to BLEU-4 as in papers on captioning: n-grams up to ``order``."""

    def statistics(rows: Rows, options: MetricOptions) -> Statistics:
        # sacreBLEU's signatures omit the order, which changes the value.
        return _sacrebleu_statistics(_bleu(options, order), rows, f"|order:{order}")

    return statistics


def chrf(rows: Rows, options: MetricOptions) -> Statistics:
    """Compute chrF2 (Popović 2015) over character 6-grams, 0 to 100, without a tokenizer."""
    from sacrebleu.metrics import CHRF

    return _sacrebleu_statistics(CHRF(lowercase=options.lowercase), rows)


def ter(rows: Rows, options: MetricOptions) -> Statistics:
    """Compute the translation edit rate (Snover et al. 2006): edits per reference word in percent.

    The nearest reference counts. Lower is better; values above 100 are possible. With BLEU's
    tokenizers of Chinese and Japanese, each character of these scripts is a word, and punctuation
    is separated; with the tokenizer ``char``, each character of any script is a word.
    """
    from sacrebleu.metrics import TER
    from sacrebleu.tokenizers.tokenizer_char import TokenizerChar

    is_asian = options.tokenize in _ASIAN
    metric = TER(case_sensitive=not options.lowercase, normalized=is_asian, asian_support=is_asian)
    if options.tokenize != "char":
        return _sacrebleu_statistics(metric, rows)
    split = TokenizerChar()
    references = [list(map(split, texts)) for texts in rows.references]
    return _sacrebleu_statistics(
        metric, Rows(list(map(split, rows.hypotheses)), references), "|unit:char"
    )


def _sacrebleu_statistics(metric: Any, rows: Rows, suffix: str = "") -> Statistics:
    """Return the statistics of a sacreBLEU metric, whose score is the value of their sum."""
    import numpy as np

    # sacreBLEU has no public name for the statistics of its own significance tests.
    statistics = metric._extract_corpus_statistics(list(rows.hypotheses), _reference_streams(rows))

    def value(total: np.ndarray) -> float:
        return float(metric._compute_score_from_stats(total.tolist()).score)

    signature = f"{metric.get_signature()}{suffix}"
    return Statistics(signature, np.asarray(statistics, "float64"), value)


def _reference_streams(rows: Rows) -> list[list[str | None]]:
    """Return the first references of all rows, then the second ones, …; None where missing."""
    return [list(stream) for stream in itertools.zip_longest(*rows.references)]


def rouge(variant: str) -> MetricFunction:
    """Return the mean F1 of ROUGE-1, ROUGE-2 or ROUGE-L, 0 to 100.

    The best reference counts. Case is ignored, and words are not stemmed.

    Args:
        variant: ``1``, ``2`` or ``l``.
    """
    kind = f"rouge{variant.upper()}"

    def statistics(rows: Rows, options: MetricOptions) -> Statistics:
        from rouge_score.rouge_scorer import RougeScorer

        scorer = RougeScorer([kind], tokenizer=_WordTokenizer())
        scores = [
            100.0 * scorer.score_multi(list(references), hypothesis)[kind].fmeasure
            for references, hypothesis in zip(rows.references, rows.hypotheses, strict=True)
        ]
        version = importlib.metadata.version("rouge-score")
        signature = f"nrefs:{rows.reference_count()}|case:lc|tok:words|stem:no|version:{version}"
        return mean_statistics(scores, signature)

    return statistics


class _WordTokenizer:
    """Lowercased words in any script.

    For plain English the result equals that of the package's own tokenizer, which keeps only the
    letters a to z: a Chinese text would become empty and score 0.
    """

    def tokenize(self, text: str) -> list[str]:
        return _word_pattern().findall(text.lower())


@functools.cache
def _word_pattern() -> re.Pattern[str]:
    import regex  # a dependency of sacreBLEU; the standard library's `re` knows no scripts

    return regex.compile(_WORD, regex.VERSION1)


def exact_match(rows: Rows, options: MetricOptions) -> Statistics:
    """Compute the share of outputs of any kind that equal one of their references, 0 to 1.

    White space around texts is ignored.
    """
    is_text = isinstance(rows.hypotheses[0], str)

    def normalize(output: Any) -> Any:
        if is_text:
            return output.strip().lower() if options.lowercase else output.strip()
        if isinstance(output, numbers.Real):
            return output
        return [int(position) for position in output]

    case = "lc" if options.lowercase else "mixed"
    return match_statistics(rows, normalize, f"|case:{case}|norm:strip" if is_text else "")
