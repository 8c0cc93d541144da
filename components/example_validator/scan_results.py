"""What the scans of all shards give together: the counts of the checks, findings, and words."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from regard.components.checks.script import usual_scripts
from regard.components.data.profiles import WordProfile
from regard.components.example_validator import duplicates, shard_scan, training_profile
from regard.components.example_validator.check_results import CheckFinding, FindingBuilder
from regard.components.example_validator.shard_rows import CheckCounts, Shard, read_referenced_rows
from regard.components.example_validator.target_checks import TargetSettings
from regard.components.settings.data_checks import DataChecksConfig
from regard.core.features import Feature

# The elements of each output of ``shard_scan.scan_shard``, by its name and their key.
Outputs = Mapping[str, Mapping[Any, Iterable[Any]]]


def combine_outputs(outputs: Outputs) -> tuple[CheckCounts, dict[str, WordProfile]]:
    """Return the counts of all checks, and the words of each feature of train.

    Args:
        outputs: the outputs of all shards; the elements of one key are used at a time.
    """
    exact = [duplicates.find_duplicates(*group) for group in outputs["packed"].items()]
    near = duplicates.count_near_overlap(outputs["near"].get(None, ()))
    counts = CheckCounts.total([*outputs["counts"][None], *exact, near])
    buckets: dict[str, list[WordProfile]] = defaultdict(list)
    for (feature, _), parts in outputs["words"].items():
        buckets[feature].append(training_profile.sum_bucket(parts))
    words = {feature: training_profile.join_buckets(parts) for feature, parts in buckets.items()}
    return counts, words


def find_problems(
    counts: CheckCounts,
    shards: Sequence[Shard],
    features: Sequence[Feature],
    checks: DataChecksConfig,
    targets: TargetSettings,
) -> tuple[dict[str, CheckFinding], list[int]]:
    """Return the finding of each check, and the hashes of references of other splits in train.

    Args:
        counts: the result of ``combine_outputs``.
        shards: the corpus.
        features: the features of a row.
        checks: the checks that are set.
        targets: settings of the texts that the model writes.
    """
    usual = usual_scripts(counts.letters)
    counts = shard_scan.count_unusual_scripts(counts, usual)
    overlap = duplicates.count_target_overlap(counts)
    builder = FindingBuilder(checks, shards, features, targets.check_context(usual))
    rows = read_referenced_rows(shards, features, builder.example_references(counts))
    return builder.findings(counts, rows), overlap
