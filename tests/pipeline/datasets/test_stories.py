"""A reader of its own answers generated stories, and finds their supporting sentences."""

import itertools
import re
from collections import Counter
from pathlib import Path

import pytest

from regard.core.errors import UserError
from regard.pipeline.datasets import stories
from tests.pipeline.datasets.generated_rows import SPLITS, rows_of


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stories")
    stories.generate(folder, rows=900)
    return folder


def events(passage: str) -> list[tuple[int, int, str, str, str]]:
    """The begin and the end of each sentence, its person, move or take, and place or object."""
    moves = "|".join(stories.MOVES)
    pattern = rf"(\w+) (?:({moves})|{'|'.join(stories.TAKES)}) the ([^.]+)\."
    story = [
        (m.start(), m.end(), m[1], "move" if m[2] else "take", m[3])
        for m in re.finditer(pattern, passage)
    ]
    assert " ".join(passage[begin:end] for begin, end, *_ in story) == passage
    return story


def read(passage: str, question: str) -> tuple[str, list[tuple[int, int]]]:
    """The answer, and the supporting sentences in their order."""
    story = events(passage)
    if match := re.fullmatch(r"Where was the (.+) before the (.+)\?", question):
        thing, later = match.groups()
    elif match := re.fullmatch(r"Where is the (.+)\?", question):
        thing, later = match[1], ""
    else:
        person = re.fullmatch(r"Where is (.+)\?", question)[1]
        begin, end, *_, place = [e for e in story if e[2:4] == (person, "move")][-1]
        return place, [(begin, end)]
    (start,) = (e for e in story if e[3:] == ("take", thing))
    visits = [e for e in story if e[2:4] == (start[2], "move")]
    index = len(visits) - 1
    if later:
        before = [i for i, e in enumerate(visits) if e < start]
        carried = range(before[-1] if before else 0, len(visits))
        (index,) = (i - 1 for i in carried if visits[i][4] == later)
        assert index in carried
    used = {start, visits[index], *(visits[index + 1 : index + 2] if later else ())}
    return visits[index][4], [(begin, end) for begin, end, *_ in sorted(used)]


def test_answers_and_supporting_sentences(generated: Path) -> None:
    for split in SPLITS:
        for row in rows_of(generated, split):
            answer, sentences = read(row["passage"], row["question"])
            assert row["answer"] == answer
            assert row["supporting"] == [edge for sentence in sentences for edge in sentence]
            assert row["facts"] == str(len(sentences))
            start = row["answer_start"]
            assert row["passage"][start : start + len(answer)] == answer
            assert any(begin <= start < end for begin, end in sentences)


def test_sizes(generated: Path) -> None:
    counts = {split: len(rows_of(generated, split)) for split in SPLITS}
    assert counts == {"train": 828, "eval": 27, "test": 45}
    for split in SPLITS:
        facts = Counter(row["facts"] for row in rows_of(generated, split))
        assert set(facts.values()) == {counts[split] // 3}
    for row in rows_of(generated, "train"):
        low, high = stories.SIZES[int(row["facts"])]
        assert low <= len(events(row["passage"])) <= high
    names = {event[2] for row in rows_of(generated, "train") for event in events(row["passage"])}
    assert names == {name for names in stories.NAMES.values() for name in names}


def test_casts_of_test_are_in_no_other_split(generated: Path) -> None:
    locale = {name: locale for locale, names in stories.NAMES.items() for name in names}
    casts: dict[str, set[frozenset[str]]] = {}
    for split in SPLITS:
        casts[split] = set()
        for row in rows_of(generated, split):
            cast = frozenset(event[2] for event in events(row["passage"]))
            assert len({locale[name] for name in cast}) == 1
            # A person without a sentence makes a cast look like a smaller one.
            if len(cast) == 3:
                casts[split].add(cast)
    assert casts["train"]
    for one, other in itertools.combinations(casts.values(), 2):
        assert not one & other


def test_a_seed_determines_all_bytes(generated: Path, tmp_path: Path) -> None:
    stories.generate(tmp_path, rows=900)
    for split in SPLITS:
        name = f"{split}.jsonl.gz"
        assert (tmp_path / name).read_bytes() == (generated / name).read_bytes()
    stories.generate(tmp_path, rows=900, seed=18)
    assert rows_of(tmp_path, "test") != rows_of(generated, "test")


def test_too_few_rows(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="99 rows are too few"):
        stories.generate(tmp_path, rows=99)
