"""Make the data of the alignment comparison: Tatoeba, English to French, with word alignments.

    python -m benchmarks.alignment.prepare $REGARD_DATA/tatoeba-en-fr/pairs.en-fr.tsv.gz linked

writes ``linked/train.tsv``, ``linked/eval.tsv`` and ``linked/test.tsv``: source, target, links. The
links of training rows are those of systran-align (fast_align, Dyer et al. 2013), those of test rows
are the gold links of ``gold.en-fr.tsv``, and the other test rows have none. It also prints the
alignment error rate of systran-align on the gold links.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import re
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

GOLD = Path(__file__).with_name("gold.en-fr.tsv")
LENGTHS, GOLD_ROWS_PER_LENGTH = range(4, 14), 10
TRAIN_ROWS, EVAL_ROWS, TEST_ROWS = 40_000, 1_000, 1_000
# English 's, 'm, n't and so on begin a word, French l', qu' and so on end one.
_TOKENS = {
    "en": re.compile(r"\d+(?:[.,:]\d+)*|\w+(?:-\w+)*|'\w+|\S"),
    "fr": re.compile(r"\d+(?:[.,:]\d+)*|aujourd'hui|\w+'|\w+(?:-\w+)*|\S", re.IGNORECASE),
}
Pair = tuple[str, str]


def tokenize(text: str, language: str) -> str:
    """Return a text with spaces between words and punctuation marks."""
    text = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    if language == "en":
        text = re.sub(r"(?i)(?<=\w)n't\b", " n\N{MODIFIER LETTER APOSTROPHE}t", text)
    tokens = " ".join(_TOKENS[language].findall(text))
    return tokens.replace("\N{MODIFIER LETTER APOSTROPHE}", "'")


def read_pairs(path: Path) -> list[Pair]:
    """Return the tokenized pairs, one for each English sentence, in the order of their hashes."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    chosen: dict[str, str] = {}
    for english, french in sorted(rows, key=lambda row: _hash("\t".join(row))):
        chosen.setdefault(tokenize(english, "en"), tokenize(french, "fr"))
    return sorted(chosen.items(), key=lambda pair: _hash(pair[0]))


def choose_gold(test: Iterable[Pair]) -> list[Pair]:
    """Return the first ten pairs of each English length, the shortest first."""
    by_length: dict[int, list[Pair]] = {length: [] for length in LENGTHS}
    for pair in test:
        by_length.get(len(pair[0].split()), []).append(pair)
    return [pair for pairs in by_length.values() for pair in pairs[:GOLD_ROWS_PER_LENGTH]]


def split(pairs: Sequence[Pair]) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Return the rows for training, for evaluation and for the test, the gold rows first."""
    test = list(pairs[:TEST_ROWS])
    gold = choose_gold(test)
    rest = [pair for pair in test if pair not in set(gold)]
    end = TEST_ROWS + EVAL_ROWS
    return list(pairs[end : end + TRAIN_ROWS]), list(pairs[TEST_ROWS:end]), [*gold, *rest]


def read_gold() -> dict[Pair, str]:
    """Return the gold links of each pair."""
    rows = (line.split("\t") for line in GOLD.read_text(encoding="utf-8").splitlines())
    return {(source, target): links for source, target, links in rows}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _align(train: Sequence[Pair], other: Sequence[Pair]) -> list[str]:
    """Return systran-align's links of all rows; its probabilities are those of ``train``."""
    import systran_align

    with tempfile.TemporaryDirectory() as folder:
        text, forward, backward = (f"{folder}/{name}" for name in ("text", "forward", "backward"))
        lines = (f"{source} ||| {target}\n" for source, target in train)
        Path(text).write_text("".join(lines), encoding="utf-8")
        systran_align.generate_alignment_probabilities(
            text, forward, backward, favor_diagonal=True, optimize_tension=True
        )
        aligner = systran_align.Aligner(forward, backward)
    links = (aligner.align(s.split(), t.split())["alignments"] for s, t in (*train, *other))
    return [" ".join(f"{i}-{j}" for i, j in row) for row in links]


def error_rate(rows: Iterable[tuple[str, str]]) -> float:
    """Return the alignment error rate (Och and Ney 2003) of pairs of links and gold links."""
    correct = total = 0
    for links, gold in rows:
        predicted, sure = set(links.split()), {x for x in gold.split() if "p" not in x}
        possible = {x.replace("p", "-") for x in gold.split()}
        correct += len(predicted & sure) + len(predicted & possible)
        total += len(predicted) + len(sure)
    return 1 - correct / total


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("pairs", type=Path, help="pairs.en-fr.tsv.gz")
    parser.add_argument("folder", type=Path, help="folder of the three files")
    arguments = parser.parse_args()
    train, dev, test = split(read_pairs(arguments.pairs))
    gold = read_gold()
    links = _align(train, [*dev, *test])
    aligned = dict(zip(test, links[-len(test) :], strict=True))
    scored = [(aligned[pair], row) for pair, row in gold.items()]
    print(f"AER of systran-align: {error_rate(scored):.4f} of {len(scored)} pairs")
    links[-len(test) :] = [gold.get(pair, "") for pair in test]
    arguments.folder.mkdir(parents=True, exist_ok=True)
    begin = 0
    for name, pairs in (("train", train), ("eval", dev), ("test", test)):
        rows = zip(pairs, links[begin : begin + len(pairs)], strict=True)
        text = "".join(f"{source}\t{target}\t{row}\n" for (source, target), row in rows)
        (arguments.folder / f"{name}.tsv").write_text(text, encoding="utf-8")
        begin += len(pairs)


if __name__ == "__main__":
    main()
