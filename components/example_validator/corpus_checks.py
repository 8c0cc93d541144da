"""ExampleValidator's checks and profile for the files of a corpus, without TensorFlow and Beam."""

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from regard.components.data.corpus_plan import CorpusPlan, read_split
from regard.components.data.example_rows import ExampleRow
from regard.components.data.images import Images
from regard.components.data.profiles import Profile, WordProfile
from regard.components.data.row_values import value_lists
from regard.components.data.sources import Corpus, in_split_order
from regard.components.example_validator import (
    check_results,
    shard_rows,
    shard_scan,
    training_profile,
)
from regard.components.example_validator.scan_results import combine_outputs, find_problems
from regard.components.example_validator.target_checks import (
    TargetSettings,
    find_unsuitable_metrics,
)
from regard.components.settings.data_checks import DataChecksConfig
from regard.core.features import Feature


@dataclass(frozen=True)
class _Split(shard_rows.Shard):
    """A whole split of a corpus, with rows as its tf.Examples would contain them."""

    plan: CorpusPlan

    def rows(self, features: Sequence[Feature]) -> Iterator[ExampleRow]:
        images = Images.of(self.plan.corpus.config)
        for job, (line, values) in read_split(self.plan, self.split):
            lists = value_lists(features, values, images)
            yield ExampleRow(lists, os.path.basename(job.group.files[0]), line)


def check_corpus(plan: CorpusPlan, targets: TargetSettings) -> None:
    """Check all rows as ExampleValidator does, except for the drift since production.

    Args:
        plan: the corpus.
        targets: settings of the texts that the model writes.

    Raises:
        UserError: a check with the action ``fail`` exceeds its limit, or a metric with a threshold
            does not suit the targets.
    """
    checks = plan.corpus.config.checks
    unneeded = {name: None for name, check in checks if check and check.action != "fail"}
    checks, features = checks.model_copy(update=unneeded), plan.corpus.features
    names = in_split_order(dict.fromkeys(plan.splits, 0))
    shards = [_Split(index, name, "", plan) for index, name in enumerate(names)]
    counts, _ = _scan(shards, features, checks, targets)
    findings, _ = find_problems(counts, shards, features, checks, targets)
    metrics = find_unsuitable_metrics(counts.words, targets)
    for error in (*check_results.failures(findings), *metrics):
        raise error


def profile_training_split(corpus: Corpus) -> Profile:
    """Return the ``profile.json`` that ExampleValidator would write.

    Replayed spans are read twice, as in CorpusGen; no row is kept in memory.

    Args:
        corpus: the corpus, with its spans resolved.

    Raises:
        UserError: a file cannot be read.
    """
    shards, features = [_Split(0, "train", "", CorpusPlan(corpus))], corpus.features
    checks = DataChecksConfig().model_copy(update=dict.fromkeys(DataChecksConfig.model_fields))
    counts, words = _scan(shards, features, checks, TargetSettings())
    lengths = training_profile.length_histograms(counts, shards, features)
    return training_profile.train_profile(counts.rows[0], words, lengths)


def _scan(
    shards: Sequence[shard_rows.Shard],
    features: Sequence[Feature],
    checks: DataChecksConfig,
    targets: TargetSettings,
) -> tuple[shard_rows.CheckCounts, dict[str, WordProfile]]:
    outputs: dict[str, dict[Any, list[Any]]] = defaultdict(lambda: defaultdict(list))
    # Train is searched for the inputs of the other splits.
    for shard in sorted(shards, key=lambda shard: shard.split == "train"):
        is_train = shard.split == "train"
        index = shard_scan.build_index(outputs["inputs"][None], checks) if is_train else None
        for name, key, value in shard_scan.scan_shard(shard, index, features, checks, targets):
            outputs[name][key].append(value)
    return combine_outputs(outputs)
