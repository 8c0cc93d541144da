"""Measure constrained decoding: are all constraints satisfied, and what do true terms gain?

    python -m benchmarks.constraints multi30k test_2016_flickr.en.gz test_2016_flickr.de.gz

For each sentence the glossary is true: it holds a random 10% of the words of the reference. Prints
the number of satisfied constraints, and sacreBLEU's BLEU without and with them, as JSON.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sacrebleu.metrics import BLEU

BATCH = 50


def main() -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="a model, as for `regard predict`")
    parser.add_argument("source", type=Path, help="sentences, one on a line")
    parser.add_argument("target", type=Path, help="references")
    parser.add_argument("--share", type=float, default=0.1, help="share of the reference's words")
    parser.add_argument("--rows", type=int, default=1000, help="number of sentences")
    arguments = parser.parse_args()

    from regard.pipeline.prediction.models import open_model
    from regard.pipeline.workspace import Workspace

    model, _ = open_model(arguments.model, Workspace.from_environment().registry)
    sources = read_lines(arguments.source)[: arguments.rows]
    references = read_lines(arguments.target)[: arguments.rows]
    print(json.dumps(measure(model, sources, references, arguments.share), indent=2))


def measure(
    model: Any, sources: Sequence[str], references: Sequence[str], share: float
) -> dict[str, Any]:
    """Translate without and with a true glossary, and compare.

    Args:
        model: a text-to-text model with the signature ``constrained``.
        sources: the sentences.
        references: their references.
        share: the share of the words of a reference that the output must contain.
    """
    draw = random.Random(0)
    phrases = [choose_words(reference, share, draw) for reference in references]
    rows = [{"source": source} for source in sources]
    constrained = [
        {"source": source, "prefix": "", "phrases": "\n".join(words)}
        for source, words in zip(sources, phrases, strict=True)
    ]
    free = translate(model, "serving_default", rows)
    bound = translate(model, "constrained", constrained)
    pairs = [(text, word) for text, words in zip(bound, phrases, strict=True) for word in words]
    before = [(text, word) for text, words in zip(free, phrases, strict=True) for word in words]
    return {
        "rows": len(rows),
        "constraints": len(pairs),
        "satisfied": sum(word in text for text, word in pairs),
        "satisfied_without": sum(word in text for text, word in before),
        "bleu_without": round(BLEU().corpus_score(free, [list(references)]).score, 2),
        "bleu_with": round(BLEU().corpus_score(bound, [list(references)]).score, 2),
        "words": [len(text.split()) for text in (" ".join(free), " ".join(bound))],
    }


def choose_words(reference: str, share: float, draw: random.Random) -> list[str]:
    """Return a share of the words of a reference in random order, at least one, without marks."""
    words = [word.strip('.,!?;:"„“') for word in reference.split()]
    words = sorted({word for word in words if word})
    return draw.sample(words, max(1, round(share * len(words))))


def translate(model: Any, signature: str, rows: Sequence[dict[str, str]]) -> list[str]:
    """Return the outputs of a signature."""
    batches = [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]
    return [
        prediction.hypothesis for batch in batches for prediction in model.predict(signature, batch)
    ]


def read_lines(path: Path) -> list[str]:
    """Return the lines of a gzip file."""
    return gzip.decompress(path.read_bytes()).decode().splitlines()


if __name__ == "__main__":
    main()
