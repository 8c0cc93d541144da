"""One shard, read once: what every check and the profile need of its rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from apache_beam.pvalue import TaggedOutput

from components.example_validator import writing
from components.example_validator.near import Neighbours, text_of
from components.example_validator.repeats import Packer, content, hashed
from components.example_validator.rows import Shard, read
from components.example_validator.tally import Tally, reference
from components.example_validator.texts import find
from components.example_validator.vocabulary import WordCounter
from components.profiles import histogram, unit
from components.seen import key
from models.tasks.features import Feature

REPEATS = ("duplicates", "overlap")
OUTPUTS = ("packed", "words", "inputs", "near")

Inputs = list[tuple[int, str]]


def scan(
    shard: Shard,
    others: Iterable[Inputs],
    features: Sequence[Feature],
    checks: Mapping[str, Mapping[str, Any]],
) -> Iterator[Any]:
    """Reads a shard.

    Args:
        shard: the file.
        others: what ``inputs`` gave for the shards of the other splits; used for those of train.
        features: of a row.
        checks: those that are on.

    Yields:
        The shard's tally; and on the output ``packed`` hashes for ``repeats``, on ``words`` counts
        for ``vocabulary`` (of train), on ``inputs`` the texts of the inputs (of other splits), and
        on ``near`` what is nearly the same as those (of train).
    """
    train = shard.split == "train"
    tally, packer, references = Tally(), Packer(train, "rows"), Packer(train, "references")
    texts = {i: feature.name for i, feature in enumerate(features) if feature.tokenized}
    inputs = [i for i, feature in enumerate(features) if feature.role == "input"]
    learned = [i for i, feature in enumerate(features) if feature.role != "extra"]
    given, right = (
        [i for i in texts if features[i].role == role] for role in ("input", "reference")
    )
    sizes = {i: defaultdict[int, int](int) for i in learned if unit(features[i])}
    counter = WordCounter(list(texts.values())) if train else None
    repeats = any(name in checks for name in REPEATS)
    script = checks.get("script") if texts else None
    near = checks.get("near_overlap") if given and given == inputs else None
    known: Inputs = []
    rows = (row for part in others for row in part)
    neighbours = Neighbours(rows, near["similarity"]) if near and train else None

    count = 0
    for count, row in enumerate(read(shard.path, features), 1):
        ref, values = reference(shard.index, count - 1), row.values
        for name in find([values[i] for i in given], [values[i] for i in right], checks):
            tally.add(name, ref)
        for i, lengths in sizes.items():
            for length in _lengths(features[i], values[i]):
                lengths[length] += 1
        if script:
            by_name = {name: values[i] for i, name in texts.items()}
            writing.note(tally, ref, by_name, script["share"], train)
        if repeats:
            contents = [content(of_feature) for of_feature in values]
            whole = hashed([contents[i] for i in learned])
            for packed in packer.add(ref, hashed([contents[i] for i in inputs]), whole):
                yield TaggedOutput("packed", packed)
        if "target_overlap" in checks:
            for text in (text for i in right for text in values[i] if text.strip()):
                for packed in references.add(ref, key(text)):
                    yield TaggedOutput("packed", packed)
        if near and (text := text_of(values[i] for i in given)).strip():
            if neighbours:
                neighbours.add(ref, text)
            else:
                known.append((ref, text))
        if counter:
            for i, name in texts.items():
                for text in values[i]:
                    for counts in counter.add(name, text):
                        yield TaggedOutput("words", counts)

    for packed in (*packer.flush(), *references.flush()):
        yield TaggedOutput("packed", packed)
    for counts in counter.flush() if counter else ():
        yield TaggedOutput("words", counts)
    if neighbours:
        yield TaggedOutput("near", neighbours.found())
        tally.capped = neighbours.capped
    if known:
        yield TaggedOutput("inputs", known)
    tally.rows[shard.index] = count
    for i, lengths in sizes.items():
        tally.lengths[features[i].name] = {shard.index: histogram(lengths)}
    yield tally


def _lengths(feature: Feature, values: Sequence[Any]) -> Iterable[int]:
    return [len(values) // 2] if feature.kind == "points" else map(len, values)
