"""The checks of the rows of a shard: of texts, of scripts, and what later steps compare."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import ftfy

from regard.components.data.profiles import histogram, length_unit
from regard.components.data.target_overlap import text_hash
from regard.components.data.text_analysis import count_scripts
from regard.components.example_validator import duplicates
from regard.components.example_validator.shard_rows import (
    CheckCounts,
    Shard,
    row_reference,
)
from regard.components.example_validator.training_profile import WordCounter
from regard.components.settings.data import DataChecksConfig
from regard.models.tasks.description import Feature

OUTPUTS = ("packed", "words", "inputs", "near")

# C0 except tab and line ends, C1, soft hyphen, zero-width characters, direction marks, the
# replacement character, and private use.
_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffd\ue000-\uf8ff\U000e0001-\U000e007f\U000f0000-\U0010ffff]"
    # A joiner is part of the orthography of Persian and Hindi, and of emoji.
    "|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])"
)
# The flags of England, Scotland and Wales are a black flag and a word in tags.
_FLAG = re.compile("\U0001f3f4[\U000e0061-\U000e007a]+\U000e007f")
# A wrong encoding turns one letter into two or more adjacent ones, into a C1 control, or into a
# capital before a space that was a hard space: ten times as fast as ftfy's own test.
_SUSPICIOUS = re.compile("[^\x00-\x7f]{2}|[\x80-\x9f]|[ÂÃ] ")
_SCRIPTS_PREFIX = "scripts "
# A script dominates a text with more than this share of its letters.
_DOMINANT_SHARE = 0.3
# A script is usual for a feature with at least this share of the letters of train.
USUAL_SHARE = 0.001

Texts = Sequence[Sequence[str]]
# Reference and text of the inputs of a row.
Inputs = list[tuple[int, str]]


def check_texts(inputs: Texts, references: Texts, checks: DataChecksConfig) -> list[str]:
    """Return the names of the checks that find something in the texts of a row.

    Args:
        inputs: the texts of each text feature that the model receives.
        references: the texts of each text feature that the model predicts. All texts of a feature
            are checked, but only the first one counts for the length ratio.
        checks: those that are set: ``empty_side``, ``length_ratio`` (characters of the longest side
            divided by those of the shortest, at least 1), ``too_long``, ``same_sides`` (an input is
            also a reference), ``control_characters`` and ``encoding``.
    """
    sides = [texts for texts in (*inputs, *references) if texts]
    if not sides:
        return []
    lengths = [[len(text.strip()) for text in texts] for texts in sides]
    first_lengths = [side[0] for side in lengths]
    names = []
    if checks.empty_side and min(map(min, lengths)) == 0:
        names.append("empty_side")
    if checks.length_ratio and len(first_lengths) > 1:
        ratio = max(first_lengths) / max(1, min(first_lengths))
        if ratio > checks.length_ratio.ratio:
            names.append("length_ratio")
    if checks.too_long and max(map(max, lengths)) > checks.too_long.characters:
        names.append("too_long")
    if checks.same_sides and _has_same_sides(inputs, references):
        names.append("same_sides")
    if checks.control_characters and any(control_characters(t) for side in sides for t in side):
        names.append("control_characters")
    if checks.encoding and any(fix_encoding(t) != t for side in sides for t in side):
        names.append("encoding")
    return names


def control_characters(text: str) -> list[str]:
    """Return the invisible control characters of a text in their order."""
    if text.isascii() and text.isprintable():
        return []
    controls = _CONTROL.findall(text)
    return _CONTROL.findall(_FLAG.sub("", text)) if controls else controls


def fix_encoding(text: str) -> str:
    """Return the text as it was before it was decoded with the wrong encoding."""
    if text.isascii() or not _SUSPICIOUS.search(text):
        return text
    return ftfy.fix_encoding(text)


def _has_same_sides(inputs: Texts, references: Texts) -> bool:
    """Return whether an input is a reference too; numbers and signs alone may be."""
    stripped = {text.strip() for texts in inputs for text in texts}
    return any(
        text.strip() in stripped and any(map(str.isalpha, text))
        for texts in references
        for text in texts
    )


def count_row_scripts(
    counts: CheckCounts, ref: int, texts: Mapping[str, Sequence[str]], is_train: bool
) -> None:
    """Count a row by its dominant scripts, those with many of a feature's letters.

    Which scripts are usual is known only after all of train has been read. So rows are counted by
    their dominant scripts, of which there are few combinations, and judged at the end.

    Args:
        counts: receives the row, and the letters of train by feature and script.
        ref: the row's reference.
        texts: of each feature.
        is_train: whether the row is of the training split, which defines what is usual.
    """
    dominant = []
    for feature, several in texts.items():
        letters = count_scripts(several[0] if len(several) == 1 else " ".join(several))
        if is_train:
            sums = counts.letters.setdefault(feature, {})
            for script, count in letters.items():
                sums[script] = sums.get(script, 0) + count
        dominant += [f"{feature}={script}" for script in dominant_scripts(letters)]
    counts.add(_SCRIPTS_PREFIX + " ".join(dominant), ref)


def dominant_scripts(letters: Mapping[str, int]) -> list[str]:
    """Return the scripts with many of the letters in alphabetical order."""
    if len(letters) == 1:
        return list(letters)
    limit = _DOMINANT_SHARE * sum(letters.values())
    return sorted(script for script, count in letters.items() if count > limit)


def usual_scripts(counts: CheckCounts) -> dict[str, set[str]]:
    """Return the scripts that are usual for each feature of train."""
    return {
        feature: {
            script
            for script, count in letters.items()
            if count >= USUAL_SHARE * sum(letters.values())
        }
        for feature, letters in counts.letters.items()
    }


def count_unusual_scripts(counts: CheckCounts, usual: Mapping[str, set[str]]) -> CheckCounts:
    """Return the counts with the rows of unusual scripts as the check ``script``.

    If nothing is known about a feature, for example without a training split, no script is unusual.
    """
    kinds = [name for name in counts.counts if name.startswith(_SCRIPTS_PREFIX)]
    unusual = [
        CheckCounts(
            counts={"script": counts.counts[kind]}, examples={"script": counts.examples[kind]}
        )
        for kind in kinds
        if any(script not in usual.get(feature, {script}) for feature, script in _dominant(kind))
    ]
    rest = replace(
        counts,
        counts={name: by_shard for name, by_shard in counts.counts.items() if name not in kinds},
        examples={name: pairs for name, pairs in counts.examples.items() if name not in kinds},
    )
    return CheckCounts.total([rest, *unusual])


def _dominant(kind: str) -> list[list[str]]:
    return [pair.split("=") for pair in kind.removeprefix(_SCRIPTS_PREFIX).split()]


def scan_shard(
    shard: Shard,
    others: Iterable[Inputs],
    features: Sequence[Feature],
    checks: DataChecksConfig,
) -> Iterator[tuple[str, Any]]:
    """Read a shard once for all checks and the profile.

    Args:
        shard: the file.
        others: the output ``inputs`` of the shards of the other splits; used for train.
        features: of a row.
        checks: the checks that are set.

    Yields:
        The name of an output and an element: ``counts``, the shard's ``CheckCounts``; ``packed``,
        hashes for ``find_duplicates``; ``words``, counts for the profile (of train); ``inputs``,
        the texts of the inputs (of the other splits); ``near``, the hits among those (of train).
    """
    is_train = shard.split == "train"
    counts = CheckCounts()
    packer = duplicates.HashPacker(is_train)
    texts = {i: feature.name for i, feature in enumerate(features) if feature.tokenized}
    inputs = [i for i, feature in enumerate(features) if feature.role == "input"]
    compared = [i for i, feature in enumerate(features) if feature.role != "extra"]
    input_texts, reference_texts = (
        [i for i in texts if features[i].role == role] for role in ("input", "reference")
    )
    sizes = {i: defaultdict[int, int](int) for i in compared if length_unit(features[i])}
    word_counter = WordCounter(list(texts.values())) if is_train else None
    near = checks.near_overlap if input_texts and input_texts == inputs else None
    own_inputs: Inputs = []
    index = None
    if near and is_train:
        index = duplicates.NearDuplicateIndex(
            (row for part in others for row in part), near.similarity
        )

    number = 0
    for number, row in enumerate(shard.rows(features), 1):
        ref, values = row_reference(shard.index, number - 1), row.values
        sources, targets = [values[i] for i in input_texts], [values[i] for i in reference_texts]
        for name in check_texts(sources, targets, checks):
            counts.add(name, ref)
        for i, lengths in sizes.items():
            for length in _lengths(features[i], values[i]):
                lengths[length] += 1
        if checks.script and texts:
            by_name = {name: values[i] for i, name in texts.items()}
            count_row_scripts(counts, ref, by_name, is_train)
        hashes: list[tuple[duplicates.Kind, int]] = []
        if checks.duplicates and is_train:
            hashes.append(("rows", duplicates.hash_values([values[i] for i in compared])))
        if checks.overlap:
            hashes.append(("inputs", duplicates.hash_values([values[i] for i in inputs])))
        if checks.target_overlap:
            references = (text for texts in targets for text in texts if text.strip())
            hashes += [("references", text_hash(text)) for text in references]
        for kind, key in hashes:
            for packed in packer.add(ref, kind, key):
                yield "packed", packed
        if near and (text := duplicates.joined_inputs(values[i] for i in input_texts)).strip():
            if index:
                index.add(ref, text)
            else:
                own_inputs.append((ref, text))
        if word_counter:
            for i, name in texts.items():
                for text in values[i]:
                    for words in word_counter.add(name, text):
                        yield "words", words

    for packed in packer.flush():
        yield "packed", packed
    for words in word_counter.flush() if word_counter else ():
        yield "words", words
    if index:
        yield "near", index.hits()
        counts.capped = index.capped
    if own_inputs:
        yield "inputs", own_inputs
    counts.rows[shard.index] = number
    for i, lengths in sizes.items():
        counts.lengths[features[i].name] = {shard.index: histogram(lengths)}
    yield "counts", counts


def _lengths(feature: Feature, values: Sequence[Any]) -> Iterable[int]:
    return [len(values) // 2] if feature.kind == "points" else map(len, values)
