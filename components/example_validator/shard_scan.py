"""Reads a shard once: the checks of its rows, and what later steps compare."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from regard.components.checks.base import RowTexts
from regard.components.checks.script import dominant_scripts, is_unusual
from regard.components.data.near_duplicates import NearDuplicateIndex, sample_rows
from regard.components.data.profiles import histogram
from regard.components.data.row_values import ComparedValues
from regard.components.data.target_overlap import text_hash
from regard.components.data.text_analysis import count_scripts
from regard.components.example_validator import duplicates, shard_rows
from regard.components.example_validator.target_checks import TargetSettings, count_words
from regard.components.example_validator.training_profile import WordCounter
from regard.components.settings.data_checks import DataChecksConfig
from regard.core.characters import is_blank
from regard.core.features import Feature

_SCRIPTS_PREFIX = "scripts "
# Reference and text of the inputs of a row.
Inputs = list[tuple[int, str]]


def count_row_scripts(
    counts: shard_rows.CheckCounts, ref: int, row: RowTexts, is_train: bool
) -> None:
    """Count a row by its dominant scripts, those with many of a feature's letters.

    Which scripts are usual is known only after all of train has been read. So rows are counted by
    their dominant scripts, of which there are few combinations, and judged at the end.

    Args:
        counts: the counts to add the row to, and the letters of train by feature and script.
        ref: the row's reference.
        row: the row.
        is_train: whether the row is of the training split, which defines what is usual.
    """
    dominant = []
    for feature, texts in row.by_name.items():
        letters = count_scripts(texts[0] if len(texts) == 1 else " ".join(texts))
        if is_train:
            counts.letters.setdefault(feature, Counter()).update(letters)
        dominant += [f"{feature}={script}" for script in dominant_scripts(letters)]
    counts.add(_SCRIPTS_PREFIX + " ".join(dominant), ref)


def count_unusual_scripts(
    counts: shard_rows.CheckCounts, usual: Mapping[str, set[str]]
) -> shard_rows.CheckCounts:
    """Return the counts with the rows of unusual scripts as the check ``script``.

    If nothing is known about a feature, for example without a training split, no script is unusual.
    """
    parts = [counts]
    for kind in [name for name in counts.counts if name.startswith(_SCRIPTS_PREFIX)]:
        part = shard_rows.CheckCounts(
            counts={"script": counts.counts.pop(kind)},
            examples={"script": counts.examples.pop(kind)},
        )
        dominant = (pair.split("=") for pair in kind.removeprefix(_SCRIPTS_PREFIX).split())
        if any(is_unusual(script, usual.get(feature)) for feature, script in dominant):
            parts.append(part)
    return shard_rows.CheckCounts.total(parts)


def build_index(parts: Iterable[Inputs], checks: DataChecksConfig) -> NearDuplicateIndex | None:
    """Return the index of ``near_overlap``; None without the check.

    Args:
        parts: the output ``inputs`` of the shards of the other splits, in any order.
        checks: the checks that are set.
    """
    if not (near := checks.near_overlap):
        return None
    rows = sample_rows((row for part in parts for row in part), near.max_rows)
    return NearDuplicateIndex(rows, near.similarity)


def scan_shard(
    shard: shard_rows.Shard,
    index: NearDuplicateIndex | None,
    features: Sequence[Feature],
    checks: DataChecksConfig,
    targets: TargetSettings,
) -> Iterator[tuple[str, Any, Any]]:
    """Read a shard once for all checks and the profile.

    Args:
        shard: the file.
        index: the index of the other splits; None for a shard of these.
        features: the features of a row.
        checks: the checks that are set.
        targets: settings of the texts that the model writes.

    Yields:
        The name of an output, the key of an element or None, and the element: ``counts``, the
        shard's ``CheckCounts``; ``packed``, hashes for ``find_duplicates`` by bucket; ``words``,
        counts for the profile by bucket (of train); ``inputs``, the texts of the inputs (of the
        other splits); ``near``, the hits among those (of train).
    """
    is_train = shard.split == "train"
    counts = shard_rows.CheckCounts()
    packer = duplicates.HashPacker(is_train)
    compared = ComparedValues(features)
    names, texts = compared.text_names, compared.texts
    context = targets.check_context()
    # Which scripts are usual is not known yet.
    row_checks = {n: check for n, check in checks.row_checks.items() if not check.needs_train}
    measured = [i for i in compared.columns if features[i].kind.length_unit(features[i])]
    sizes = {i: defaultdict[int, int](int) for i in measured}
    word_counter = WordCounter(list(texts.values())) if is_train else None
    inputs: Inputs = []
    if index is not None:
        index = index.search()

    number = 0
    for number, row in enumerate(shard.rows(features), 1):
        ref, values = shard_rows.row_reference(shard.index, number - 1), row.values
        row_texts = compared.row_texts(values)
        for name, check in row_checks.items():
            if check.affects(row_texts, context):
                counts.add(name, ref)
        for i, lengths in sizes.items():
            for length in features[i].kind.lengths(features[i], values[i]):
                lengths[length] += 1
        if checks.script and texts:
            count_row_scripts(counts, ref, row_texts, is_train)
        if is_train and targets.thresholds:
            for name in names.outputs:
                words = count_words(" ".join(row_texts.by_name[name]))
                counts.words.setdefault(name, Counter()).update(words)
        hashes: list[tuple[duplicates.Kind, int]] = []
        if checks.duplicates and is_train:
            hashes.append(("rows", compared.row_hash(values)))
        if checks.overlap:
            hashes.append(("inputs", compared.input_hash(values)))
        if checks.target_overlap:
            hashes += [
                ("references", text_hash(text))
                for name in names.references
                for text in row_texts.by_name[name]
                if not is_blank(text)
            ]
        for kind, key in hashes:
            packer.add(ref, kind, key)
        if checks.near_overlap and (text := compared.input_text(values)):
            if index:
                index.add(ref, text)
            elif not is_train:
                inputs.append((ref, text))
        if word_counter:
            for i, name in texts.items():
                for text in values[i]:
                    for word_bucket, bucket_words in word_counter.add(name, text):
                        yield "words", word_bucket, bucket_words

    for bucket, packed in packer.packed():
        yield "packed", bucket, packed
    for word_bucket, bucket_words in word_counter.flush() if word_counter else ():
        yield "words", word_bucket, bucket_words
    if index:
        yield "near", None, index.hits()
        counts.capped = index.capped
    if inputs:
        yield "inputs", None, inputs
        counts.inputs = len(inputs)
    counts.rows[shard.index] = number
    for i, lengths in sizes.items():
        counts.lengths[features[i].name] = {shard.index: histogram(lengths)}
    yield "counts", None, counts
