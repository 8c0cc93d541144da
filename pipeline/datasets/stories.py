"""Generated stories: persons move and carry objects, and a question asks for a place.

One, two or three sentences of a story support the answer, in the manner of Weston et al. 2015,
"Towards AI-Complete Question Answering", §3.1. They are the gold of where a model should attend.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from regard.pipeline.datasets.dataset_files import (
    Dataset,
    Progress,
    gzip_text,
    split_rows,
    write_dataset,
)

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
CASTS = {"test": 0.1, "eval": 0.05}

Cast = tuple[str, ...]  # the persons of a story


@dataclass
class Story:
    """A story with its question; ``supporting`` are the indices of the supporting sentences."""

    sentences: list[str] = field(default_factory=list)
    question: str = ""
    answer: str = ""
    supporting: list[int] = field(default_factory=list)

    def to_json(self) -> dict[str, object]:
        """Return the row, with offsets in characters: begin and end of each supporting sentence."""
        starts = [0]
        for sentence in self.sentences:
            starts.append(starts[-1] + len(sentence) + 1)
        answered = self.supporting[-1]
        return {
            "passage": " ".join(self.sentences),
            "question": self.question,
            "answer": self.answer,
            "answer_start": starts[answered] + self.sentences[answered].rindex(self.answer),
            "supporting": [
                edge for i in sorted(self.supporting) for edge in (starts[i], starts[i + 1] - 1)
            ],
            "facts": str(len(self.supporting)),
        }


def generate(
    directory: str | Path, rows: int = 30_000, seed: int = 17, progress: Progress | None = None
) -> Dataset:
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
    counts, rng = split_rows(rows, FRACTIONS, min_rows=100), random.Random(seed)
    casts = _split_casts(rng)
    content: dict[str, bytes | str] = {}
    for split, count in counts.items():
        lines: list[str] = []
        while len(lines) < count:
            if story := write_story(len(lines) % 3 + 1, rng.choice(casts[split]), rng):
                lines.append(json.dumps(story.to_json(), ensure_ascii=False) + "\n")
        content[f"{split}.jsonl.gz"] = gzip_text("".join(lines))
        if progress:
            progress(f"{split}: {count:,} stories", len(content) / len(counts))
    return write_dataset("stories", Path(directory), seed, content, counts, locales=list(NAMES))


def _split_casts(rng: random.Random) -> dict[str, list[Cast]]:
    """Return the disjoint casts of all splits: two or three persons of one locale."""
    casts = [
        cast for names in NAMES.values() for size in (2, 3) for cast in combinations(names, size)
    ]
    rng.shuffle(casts)
    ends = {split: round(len(casts) * share) for split, share in CASTS.items()}
    test, held_out = ends["test"], sum(ends.values())
    return {"test": casts[:test], "eval": casts[test:held_out], "train": casts[held_out:]}


def write_story(facts: int, cast: Cast, rng: random.Random) -> Story | None:
    """Return a story whose answer has some supporting facts; None if chance allows no question."""
    persons = rng.sample(cast, len(cast))
    free = rng.sample(OBJECTS, 2 if facts > 1 else 0)
    places = rng.sample(PLACES, rng.randint(4, 6))
    story = Story()
    visits: dict[str, list[tuple[str, int]]] = {person: [] for person in persons}
    takes: dict[str, tuple[str, int]] = {}  # by object: the person, and the sentence
    for number in range(rng.randint(*SIZES[facts])):
        person = rng.choice(persons)
        if free and rng.random() < 0.3:
            thing = free.pop()
            takes[thing] = person, number
            story.sentences.append(f"{person} {rng.choice(TAKES)} the {thing}.")
            continue
        last = visits[person][-1][0] if visits[person] else ""
        place = rng.choice([one for one in places if one != last])
        visits[person].append((place, number))
        story.sentences.append(f"{person} {rng.choice(MOVES)} the {place}.")
    if facts == 1:
        return _add_question(story, f"Where is {persons[0]}?", visits[persons[0]][-1:])
    if not takes:
        return None
    thing = rng.choice(sorted(takes))
    holder, start = takes[thing]
    own = visits[holder]
    if facts == 2:
        return _add_question(story, f"Where is the {thing}?", own[-1:], start)
    # The object is where its holder is from the last visit before it was taken.
    carried = [visit for i, visit in enumerate(own) if i + 1 == len(own) or own[i + 1][1] > start]
    known = [i for i in range(1, len(carried)) if [c[0] for c in carried].count(carried[i][0]) == 1]
    if not known:
        return None
    i = rng.choice(known)
    question = f"Where was the {thing} before the {carried[i][0]}?"
    return _add_question(story, question, carried[i - 1 : i], start, carried[i][1])


def _add_question(
    story: Story, question: str, visit: list[tuple[str, int]], *others: int
) -> Story | None:
    """Add the question that a visit answers; None without a visit."""
    if not visit:
        return None
    story.question = question
    story.answer, answered = visit[0]
    story.supporting = [*others, answered]
    return story
