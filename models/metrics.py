"""How good hypotheses are beside their references: one number a metric, with its signature.

A metric is one function in `METRICS`; a task that needs its own adds a line there.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType


@dataclasses.dataclass(frozen=True)
class Metric:
    """One metric of one corpus.

    Attributes:
        name: its key in `METRICS`.
        label: how people write it, such as ``BLEU``.
        value: between 0 and ``scale`` for the metrics that are bounded.
        signature: everything that changes the value, as sacreBLEU writes it.
        higher_is_better: whether a larger value means a better model.
        scale: the value of a perfect model.
    """

    name: str
    label: str
    value: float
    signature: str
    higher_is_better: bool = True
    scale: float = 100.0

    def to_dict(self) -> dict[str, str | float | bool]:
        """The metric as plain JSON values."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class Kind:
    """What a metric is, apart from any corpus; ``function`` gives its value and signature."""

    label: str
    function: Callable[[Sequence[str], Sequence[str], str, bool], tuple[float, str]]
    higher_is_better: bool = True
    scale: float = 100.0


def compute(
    names: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    tokenize: str = "13a",
    lowercase: bool = False,
) -> list[Metric]:
    """Computes metrics of one corpus, in the order of ``names``.

    Args:
        names: keys of `METRICS`.
        hypotheses: the model's answers.
        references: the right answers, one for each hypothesis.
        tokenize: sacreBLEU's tokenizer for BLEU, such as ``13a``, ``zh`` or ``char``.
        lowercase: whether capitals are taken for small letters.

    Raises:
        ValueError: for an unknown metric or tokenizer (the message has the choices), for a
            tokenizer whose package is missing, and for lists that are empty or uneven.
    """
    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses but {len(references)} references")
    if not hypotheses:
        raise ValueError("there are no hypotheses to score")
    metrics = []
    for name in names:
        kind = find(name)
        value, signature = kind.function(hypotheses, references, tokenize, lowercase)
        metrics.append(
            Metric(name, kind.label, value, signature, kind.higher_is_better, kind.scale)
        )
    return metrics


def find(name: str) -> Kind:
    """The kind of metric called ``name``; raises `ValueError` with the choices."""
    if name not in METRICS:
        close = difflib.get_close_matches(name, METRICS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"unknown metric {name!r}{hint} (choices: {', '.join(METRICS)})")
    return METRICS[name]


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


def _bleu(
    hypotheses: Sequence[str], references: Sequence[str], tokenize: str, lowercase: bool
) -> tuple[float, str]:
    """BLEU (Papineni et al. 2002) as sacreBLEU computes it (Post 2018), 0 to 100."""
    # sacreBLEU takes a moment to import, and the names alone are wanted more often.
    from sacrebleu.metrics import BLEU

    if tokenize not in tokenizers():
        raise ValueError(f"unknown tokenizer {tokenize!r} (choices: {', '.join(tokenizers())})")
    try:
        # force: it only silences the guess that the text might be tokenized already.
        metric = BLEU(tokenize=tokenize, lowercase=lowercase, force=True)
    except (RuntimeError, ImportError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"the tokenizer {tokenize!r} cannot be used: {reason}") from error
    score = metric.corpus_score(list(hypotheses), [list(references)])
    return float(score.score), str(metric.get_signature())


def _bleu_lc(
    hypotheses: Sequence[str], references: Sequence[str], tokenize: str, lowercase: bool
) -> tuple[float, str]:
    """BLEU that ignores case: what papers call lowercased and tokenised, 0 to 100.

    Such papers score with multi-bleu.perl or fairseq-generate on text that Moses has lowercased
    and tokenised. Of sacreBLEU's settings 13a is the closest to that: it finds 12,106 words in
    the German of Multi30k's test_2016_flickr, where fairseq-generate in the README of
    github.com/LividWo/Revisit-MMT (Wu et al. 2021, 41.02 BLEU) counts 12,103; ``intl`` finds
    12,248. The formula is the same, but for an n-gram order without any match.
    """
    return _bleu(hypotheses, references, tokenize, lowercase=True)


def _chrf(
    hypotheses: Sequence[str], references: Sequence[str], tokenize: str, lowercase: bool
) -> tuple[float, str]:
    """chrF2 (Popović 2015) over character 6-grams, 0 to 100; it needs no tokenizer."""
    from sacrebleu.metrics import CHRF

    metric = CHRF(lowercase=lowercase)
    score = metric.corpus_score(list(hypotheses), [list(references)])
    return float(score.score), str(metric.get_signature())


def _exact_match(
    hypotheses: Sequence[str], references: Sequence[str], tokenize: str, lowercase: bool
) -> tuple[float, str]:
    """The share of hypotheses that are their reference but for space at the ends, 0 to 1."""

    def normal(text: str) -> str:
        return text.strip().lower() if lowercase else text.strip()

    pairs = zip(hypotheses, references, strict=True)
    same = sum(normal(hypothesis) == normal(reference) for hypothesis, reference in pairs)
    case = "lc" if lowercase else "mixed"
    return same / len(hypotheses), f"nrefs:1|case:{case}|norm:strip"


METRICS: Mapping[str, Kind] = MappingProxyType(
    {
        "bleu": Kind("BLEU", _bleu),
        "chrf": Kind("chrF", _chrf),
        "exact_match": Kind("exact match", _exact_match, scale=1.0),
        "bleu_lc": Kind("BLEU (lc)", _bleu_lc),
    }
)
