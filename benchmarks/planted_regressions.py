"""Plants 20 regressions in the outputs of the first of two models, and counts those on the first
page of the rows on which the models differ.

    regard evaluate A B --data test.tsv --metrics chrf --out E    # English to German
    python -m benchmarks.planted_regressions E 1 2 3              # seeds

Number words become digits in all texts. Then up to 6 rows lose or change a number and up to 7 a
name that both outputs have; the others lose three words up to a third of the output, which the
other output and mostly the reference have.
"""

import random
import re
import sys
from pathlib import Path

from regard.components.common import prediction_table
from regard.components.evaluator.predictions import read_rows
from regard.components.evaluator.results import CANDIDATE, PRODUCTION
from regard.components.evaluator.row_differences import compare_rows
from regard.components.evaluator.scoring import ModelScores
from regard.components.settings.evaluation import EvaluationConfig
from regard.models.metrics import Rows

_COUNT, _NUMBERS, _NAMES, _PAGE = 20, 6, 7, 25
_MIN_WORDS, _MIN_LOST = 8, 3
_CONFIG = EvaluationConfig(metrics=("chrf",), samples=0)
_DIGITS = {
    word: str(number)
    for words in (
        "two three four five six seven eight nine ten",
        "zwei drei vier fünf sechs sieben acht neun zehn",
    )
    for number, word in enumerate(words.split(), start=2)
}
_NUMBER_WORD = re.compile(rf"\b({'|'.join(_DIGITS)})\b", re.IGNORECASE)
_NUMBER, _NAME = re.compile(r"\b\d+\b"), re.compile(r"\b[^\W\d_]['\w-]{2,}")


def _with_digits(text: str) -> str:
    return _NUMBER_WORD.sub(lambda match: _DIGITS[match[0].lower()], text)


def _names(text: str) -> set[str]:
    return {word for word in _NAME.findall(text) if word != word.lower()}


def plant(
    sources: list[str], references: list[str], outputs: list[str], others: list[str], seed: int
) -> dict[int, tuple[str, str]]:
    """Return the kind and the text of each planted output by row."""
    generator = random.Random(seed)
    order = generator.sample(range(len(sources)), len(sources))
    planted: dict[int, tuple[str, str]] = {}

    def replace(kind: str, row: int, old: str, new: str) -> None:
        text = re.sub(rf"\b{re.escape(old)}\w*", new, outputs[row])
        planted[row] = kind, " ".join(text.split())

    for kind, limit, find in (
        ("number", _NUMBERS, lambda text: set(_NUMBER.findall(text))),
        ("name", _NUMBERS + _NAMES, _names),
    ):
        for row in order:
            texts = (sources, references, outputs, others)
            shared = set.intersection(*(find(side[row]) for side in texts))
            if shared and len(planted) < limit and row not in planted:
                old = min(shared)
                changed = str(int(old) + generator.randint(1, 9)) if kind == "number" else "Paul"
                replace(kind, row, old, generator.choice(["", changed]))
    for row in order:
        if len(planted) == _COUNT:
            break
        if row not in planted and (text := _omit(outputs[row], others[row], references[row], seed)):
            planted[row] = "omission", text
    return planted


def _omit(output: str, other: str, reference: str, seed: int) -> str:
    """Return an output without some words; empty if these are no loss."""
    generator, words = random.Random(f"{seed} {output}"), output.split()
    if len(words) < _MIN_WORDS:
        return ""
    count = generator.randint(_MIN_LOST, max(_MIN_LOST, len(words) // 3))
    start = generator.randrange(len(words) - count)
    omitted_words = {word.strip(".,").lower() for word in words[start : start + count]}
    in_other = omitted_words & set(re.findall(r"\w+", other.lower()))
    in_reference = omitted_words & set(re.findall(r"\w+", reference.lower()))
    if len(in_other) < count - 1 or len(in_reference) < count / 2:
        return ""
    return " ".join(words[:start] + words[start + count :])


def main() -> None:
    """Print how many planted rows of each kind are on the first page, for each seed."""
    folder, contract = Path(sys.argv[1]), prediction_table.read_summary(sys.argv[1])["contract"]
    tables = prediction_table.CANDIDATE, prediction_table.PRODUCTION
    rows = [read_rows(folder / table, contract) for table in tables]
    source = [_with_digits(text) for text in rows[0].columns[contract["inputs"][0]["name"]]]
    references = [_with_digits(texts[0]) for texts in rows[0].references]
    outputs, others = ([_with_digits(text) for text in side.hypotheses] for side in rows)
    for seed in map(int, sys.argv[2:]):
        planted = plant(source, references, outputs, others, seed)
        candidate = [planted[row][1] if row in planted else x for row, x in enumerate(outputs)]
        sides = {
            model: Rows(
                texts, [[text] for text in references], {**rows[0].columns, "source": source}
            )
            for model, texts in ((CANDIDATE, candidate), (PRODUCTION, others))
        }
        scores = {model: ModelScores(side, _CONFIG) for model, side in sides.items()}
        differences = compare_rows(sides, scores, [], contract, _CONFIG)
        page = {difference.row for difference in differences.rows[:_PAGE]}
        parts = []
        for kind in ("number", "name", "omission"):
            of_kind = {row for row, (name, _) in planted.items() if name == kind}
            parts.append(f"{kind} {len(of_kind & page)} of {len(of_kind)}")
        share = differences.different / differences.total
        count = f"{len(planted.keys() & page)} of {len(planted)}"
        print(f"seed {seed}: {share:.0%} of the rows differ; {count}: {', '.join(parts)}")


if __name__ == "__main__":
    main()
