"""Generated stories: persons move and carry objects, and a question asks for a place.

One, two or three sentences of a story support the answer, in the manner of Weston et al. 2015,
"Towards AI-Complete Question Answering", §3.1. They are the gold of where a model should attend.
"""

import json
import random
from collections.abc import Iterator, Sequence
from itertools import accumulate, combinations
from pathlib import Path

from regard.pipeline.datasets.dataset_files import Progress, split_rows, write_dataset

NAMES = {
    "de": ("Jürgen", "Käthe", "Lukas", "Sören"),
    "en": ("Alice", "George", "Oliver", "Zoe"),
    "es": ("Begoña", "Íñigo", "José", "Lucía"),
    "fr": ("Chloé", "François", "Léa", "Théo"),
    "it": ("Chiara", "Giulia", "Matteo", "Niccolò"),
    "pl": ("Łukasz", "Małgorzata", "Paweł", "Zofia"),
    "sv": ("Åsa", "Björn", "Gunnar", "Märta"),
    "tr": ("Ayşe", "Çağla", "Öykü", "Yiğit"),
}
PLACES = (
    *("kitchen", "garden", "office", "library", "cellar", "balcony", "harbour", "museum"),
    *("train station", "swimming pool", "town hall", "winter garden"),
)
OBJECTS = ("ball", "book", "cup", "key", "lamp", "letter", "umbrella", "violin")
MOVES = ("went to", "walked to", "moved to", "travelled to")
TAKES = ("took", "picked up", "grabbed")
# By number of supporting facts: the minimum and maximum of sentences.
SIZES = {1: (3, 7), 2: (4, 8), 3: (5, 9)}
FRACTIONS = {"test": 0.05, "eval": 0.03}
CASTS = {"train": 0.85, "test": 0.1, "eval": 0.05}


def generate(
    directory: str | Path, rows: int = 30_000, seed: int = 17, progress: Progress | None = None
) -> dict[str, int]:
    """Write ``<split>.jsonl.gz`` with equal numbers of stories of one, two and three facts.

    A line contains ``passage``, ``question``, ``answer``, ``answer_start``, ``supporting`` (begin
    and end of each supporting sentence in characters) and ``facts`` (their number). A tenth of
    all casts of two or three persons occurs only in test, and a twentieth only in eval.

    Args:
        directory: created if missing; existing files are replaced.
        rows: the stories of all splits; test gets a twentieth and eval 3 %.
        seed: equal seeds give equal bytes.
        progress: receives the fraction that is done.

    Raises:
        UserError: there are too few rows.
    """
    counts = split_rows(rows, FRACTIONS, min_rows=100)
    rng = random.Random(seed)
    casts: list[tuple[str, ...]] = []
    for names in NAMES.values():
        casts += combinations(names, 2)
        casts += combinations(names, 3)
    rng.shuffle(casts)
    files = {}
    for split, count in counts.items():
        share = round(len(casts) * CASTS[split])
        files[f"{split}.jsonl.gz"] = _lines(count, casts[:share], rng)
        casts = casts[share:]
    return write_dataset(
        "stories", Path(directory), seed, counts, files, progress, locales=list(NAMES)
    )


def _lines(count: int, casts: Sequence[tuple[str, ...]], rng: random.Random) -> Iterator[str]:
    for number in range(count):
        row = None
        while row is None:
            row = write_row(number % 3 + 1, rng.choice(casts), rng)
        yield json.dumps(row, ensure_ascii=False)


def write_row(facts: int, cast: tuple[str, ...], rng: random.Random) -> dict[str, object] | None:
    """Return a story and a question with some supporting facts; None if there is no question.

    Args:
        facts: the number of supporting facts, 1 to 3.
        cast: the persons.
        rng: chooses everything else.
    """
    things = rng.sample(OBJECTS, 2 if facts > 1 else 0)
    places = rng.sample(PLACES, 5)
    sentences: list[str] = []
    visits: dict[str, list[tuple[str, int]]] = {person: [("", -1)] for person in cast}
    takes: dict[str, tuple[str, int]] = {}  # by object: the person, and the sentence
    for number in range(rng.randint(*SIZES[facts])):
        person = rng.choice(cast)
        if things and rng.random() < 0.3:
            takes[things[-1]] = person, number
            sentences.append(f"{person} {rng.choice(TAKES)} the {things.pop()}.")
            continue
        place = rng.choice([place for place in places if place != visits[person][-1][0]])
        visits[person].append((place, number))
        sentences.append(f"{person} {rng.choice(MOVES)} the {place}.")
    subject = rng.choice(cast)
    question = f"Where is {subject}?"
    visited = visits[subject]
    supporting: list[int] = []
    if facts > 1:
        if not takes:
            return None
        subject = rng.choice(sorted(takes))
        holder, start = takes[subject]
        question = f"Where is the {subject}?"
        visited = visits[holder]
        supporting = [start]
    if facts == 3:
        # The object is where its holder is from the last visit before it was taken.
        before = sum(number < start for _, number in visited)
        visited = visited[before - 1 :]
        names = [place for place, _ in visited]
        later = [i for i in range(1, len(visited)) if names.count(names[i]) == 1]
        if not later:
            return None
        i = rng.choice(later)
        question = f"Where was the {subject} before the {names[i]}?"
        supporting = [start, visited[i][1]]
        visited = visited[:i]
    answer, answered = visited[-1]
    if not answer:
        return None
    begins = [0, *accumulate(len(sentence) + 1 for sentence in sentences)]
    edges: list[int] = []
    for number in sorted({*supporting, answered}):
        edges += (begins[number], begins[number + 1] - 1)
    return {
        "passage": " ".join(sentences),
        "question": question,
        "answer": answer,
        "answer_start": begins[answered] + sentences[answered].rindex(answer),
        "supporting": edges,
        "facts": str(facts),
    }
