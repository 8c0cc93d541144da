"""Generated news of people whom nobody has heard of: a summary of it has to copy their names.

A name is made of syllables at random and is in one row alone. Where a name is one word of the
vocabulary (``tokenizer.words: names.txt``), no training has ever shown how those of the test split
are written. Cut into pieces they are less rare, and attention alone learns to spell them.
"""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

from pipeline.datasets.summary import Progress, Summary, shared_out, write

NAME = "copying"
SHARES = {"test": 0.1, "eval": 0.05}
ONSETS = "b br ch d dr f fl g gr h j k kr l m n p pl qu r s sk st t tr v vl w y z zh"
VOWELS = "a e i o u ai au ea ei ia ie io oa oo ou y"
CODAS = "- - - - b d f g k l ld m n nd ng nt p r rk rn s sh st t th x z"
SYLLABLES = (2, 3)  # a name: there are six million

VERBS = ("met", "thanked", "warned", "praised", "followed", "paid", "invited", "accused")
PLACES = ("at the harbour", "in the old library", "near the station", "after the concert",
          "before the vote", "on the bridge", "at the market", "outside the court")  # fmt: skip
ASIDES = ("closed a shop", "lost a suitcase", "painted a fence", "missed the train",
          "sold three boats", "wrote a letter", "cooked for a friend", "fed the swans")  # fmt: skip
# Each tells who did what to whom, and of one who is not to be mentioned.
SENTENCES = (
    "{place} {subject} {verb} {object}, while {other} {aside}.",
    "{other} {aside}. {place} {object} was {verb} by {subject}.",
    "{subject}, who knew {other} well, {verb} {object} {place}.",
    "{object} was {verb} {place} by {subject}, and {other} {aside}.",
    "it was {object} whom {subject} {verb} {place}, said {other}.",
    "{subject} {aside} and {verb} {object} {place}. {other} did not come.",
)


def generate(
    directory: str | Path, rows: int = 5_000, seed: int = 17, progress: Progress | None = None
) -> Summary:
    """Writes for each split ``<split>.jsonl.gz``: ``source`` and ``target``, who did what to whom.

    Beside them ``names.txt`` has the names of all splits, one a line.

    Args:
        directory: made if absent; files of an earlier call are replaced.
        rows: of all splits together; a tenth goes to test and a twentieth to eval.
        seed: the same seed gives the same rows.
        progress: told the share done.

    Raises:
        UserError: too few rows, or the directory cannot be written.
    """
    counts = shared_out(rows, SHARES)
    rng = random.Random(seed)
    names: dict[str, None] = {}
    content: dict[str, bytes | str] = {}
    for done, (split, count) in enumerate(counts.items()):
        lines = (json.dumps(_row(rng, names)) + "\n" for _ in range(count))
        content[f"{split}.jsonl.gz"] = gzip.compress("".join(lines).encode(), mtime=0)
        if progress:
            progress(f"{count:,} rows of {split}", (done + 1) / len(counts))
    content["names.txt"] = "".join(f"{name}\n" for name in names)
    about = {"name": NAME, "seed": seed, "rows": counts}
    content[f"{NAME}.json"] = json.dumps(about, indent=2) + "\n"
    return write(NAME, Path(directory), content, counts)


def _row(rng: random.Random, names: dict[str, None]) -> dict[str, str]:
    subject, thing, other = (_new_name(rng, names) for _ in range(3))
    verb = rng.choice(VERBS)
    source = rng.choice(SENTENCES).format(
        subject=subject,
        object=thing,
        other=other,
        verb=verb,
        place=rng.choice(PLACES),
        aside=rng.choice(ASIDES),
    )
    source = ". ".join(sentence[0].upper() + sentence[1:] for sentence in source.split(". "))
    return {"source": source, "target": f"{subject} {verb} {thing}"}


def _new_name(rng: random.Random, names: dict[str, None]) -> str:
    """A name that is not among ``names`` yet, and then is."""
    onsets, vowels, codas = (parts.split() for parts in (ONSETS, VOWELS, CODAS))
    while True:
        count = rng.randint(*SYLLABLES)
        name = "".join(rng.choice(onsets) + rng.choice(vowels) for _ in range(count))
        name = (name + rng.choice(codas).strip("-")).capitalize()
        if name not in names:
            names[name] = None
            return name
