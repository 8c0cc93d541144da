"""Generated news about people with unique names, whose summaries must copy the names.

A name consists of random syllables and occurs in one row only. If a name is one token
(``tokenizer.word_list: names.txt``), no training has seen the names of the test split. Names cut
into subwords are less rare, and attention alone learns to spell them.
"""

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

from regard.pipeline.datasets import dataset_files

FRACTIONS = {"test": 0.1, "eval": 0.05}
ONSETS = "b br ch d dr f fl g gr h j k kr l m n p pl qu r s sk st t tr v vl w y z zh"
VOWELS = "a e i o u ai au ea ei ia ie io oa oo ou y"
CODAS = "- - - - b d f g k l ld m n nd ng nt p r rk rn s sh st t th x z"
SYLLABLES = (2, 3)  # of a name, which allows six million names

VERBS = ("met", "thanked", "warned", "praised", "followed", "paid", "invited", "accused")
PLACES = ("at the harbour", "in the old library", "near the station", "after the concert",
          "before the vote", "on the bridge", "at the market", "outside the court")  # fmt: skip
ASIDES = ("closed a shop", "lost a suitcase", "painted a fence", "missed the train",
          "sold three boats", "wrote a letter", "cooked for a friend", "fed the swans")  # fmt: skip
# Each says who did what to whom, and mentions a person who is not part of the summary.
SENTENCES = (
    "{place} {subject} {verb} {object}, while {other} {aside}.",
    "{other} {aside}. {place} {object} was {verb} by {subject}.",
    "{subject}, who knew {other} well, {verb} {object} {place}.",
    "{object} was {verb} {place} by {subject}, and {other} {aside}.",
    "it was {object} whom {subject} {verb} {place}, said {other}.",
    "{subject} {aside} and {verb} {object} {place}. {other} did not come.",
)


def generate(
    directory: str | Path,
    rows: int = 5_000,
    seed: int = 17,
    progress: dataset_files.Progress | None = None,
) -> dict[str, int]:
    """Write ``<split>.jsonl.gz`` with ``source`` and ``target`` (who did what to whom).

    ``names.txt`` contains the names of all splits, one in each line.

    Args:
        directory: created if missing; existing files are replaced.
        rows: the rows of all splits; test gets a tenth and eval a twentieth.
        seed: equal seeds give equal bytes.
        progress: receives the fraction that is done.

    Raises:
        UserError: there are too few rows.
    """
    counts = dataset_files.split_rows(rows, FRACTIONS)
    rng = random.Random(seed)
    names: dict[str, None] = {}  # filled while the rows are generated

    def lines(count: int) -> Iterator[str]:
        for _ in range(count):
            yield json.dumps(_row(rng, names))

    files: dict[str, Iterable[str]] = {
        f"{split}.jsonl.gz": lines(count) for split, count in counts.items()
    }
    files["names.txt"] = names
    return dataset_files.write_dataset("copying", Path(directory), seed, counts, files, progress)


def _row(rng: random.Random, names: dict[str, None]) -> dict[str, str]:
    subject, object_, other = (_new_name(rng, names) for _ in range(3))
    verb = rng.choice(VERBS)
    source = rng.choice(SENTENCES).format(
        subject=subject,
        object=object_,
        other=other,
        verb=verb,
        place=rng.choice(PLACES),
        aside=rng.choice(ASIDES),
    )
    source = ". ".join(sentence[0].upper() + sentence[1:] for sentence in source.split(". "))
    return {"source": source, "target": f"{subject} {verb} {object_}"}


def _new_name(rng: random.Random, names: dict[str, None]) -> str:
    """Return a name that is not in ``names`` yet, and add it."""
    onsets = ONSETS.split()
    vowels = VOWELS.split()
    codas = CODAS.split()
    while True:
        count = rng.randint(*SYLLABLES)
        name = "".join(rng.choice(onsets) + rng.choice(vowels) for _ in range(count))
        name = (name + rng.choice(codas).strip("-")).capitalize()
        if name not in names:
            names[name] = None
            return name
