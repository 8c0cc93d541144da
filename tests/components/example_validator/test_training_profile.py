"""Profiles of the training split: by ExampleValidator, and without TensorFlow and Beam."""

import dataclasses
import json
import random
import tracemalloc
from collections import Counter, defaultdict

import pytest

from regard.components.common.artifact_types import Findings
from regard.components.example_validator import training_profile
from regard.components.example_validator.corpus_checks import profile_training_split
from regard.components.example_validator.target_checks import TargetSettings
from regard.components.example_validator.training_profile import (
    WordCounter,
    join_buckets,
    sum_bucket,
)
from regard.core.errors import UserError
from regard.pipeline.context import resolve_data
from tests.components.corpora import BEAM, checks_of
from tests.pipeline.scheduling.growing_corpus import CONFIG, GrowingCorpus

OWN_FILES = "  eval: eval.tsv\n  test: test.tsv\n"


def config_text(rule, files=OWN_FILES):
    """A configuration with a rule for its spans, and files for the other splits or none."""
    unsplit = CONFIG.replace(OWN_FILES, "")
    return unsplit.replace("schedule:\n", f"{files}  spans: {rule}\nschedule:\n")


@pytest.fixture
def corpus(tmp_path):
    corpus = GrowingCorpus(tmp_path)
    for number in (1, 2, 3):
        corpus.write_span(number, count=300)
    corpus.write("train-001.tsv", ["same\tSAME\n"] * 50, append=True)
    return corpus


@pytest.fixture
def load_data(corpus):
    """Returns the corpus of a configuration, with its spans resolved."""
    return lambda rule, files=OWN_FILES: resolve_data(corpus.config(text=config_text(rule, files)))


@pytest.fixture
def validate(tmp_path, monkeypatch):
    """Runs CorpusGen and ExampleValidator without TFX's part, and returns the profile."""
    from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
    from tfx.types import standard_artifacts

    from regard.components.corpus_gen.executor import CorpusGenExecutor as CorpusGen
    from regard.components.example_validator import executor as validator

    monkeypatch.setattr(validator.tfx_executor.Executor, "Do", lambda *_: None)
    context = BaseBeamExecutor.Context(beam_pipeline_args=BEAM, tmp_dir=str(tmp_path / "tmp"))

    def artifact(kind, name):
        instance = kind()
        instance.uri = str(tmp_path / name)
        return [instance]

    def run(data):
        examples = artifact(standard_artifacts.Examples, "examples")
        corpus = {"examples": examples, "findings": artifact(Findings, "corpus")}
        CorpusGen(context).Do({}, corpus, {"corpus": json.dumps(data.to_json()), "fingerprint": ""})
        anomalies = artifact(standard_artifacts.ExampleAnomalies, "none")
        anomalies[0].split_names = "[]"
        features = json.dumps([feature.to_json() for feature in data.features])
        validator.ExampleValidatorExecutor(context).Do(
            {"examples": examples, "statistics": [None], "schema": [None]},
            {"anomalies": anomalies, "findings": artifact(Findings, "findings")},
            {
                "checks": checks_of().model_dump_json(),
                "pinned_schema": "",
                "targets": TargetSettings().to_json(),
                "features": features,
                "production": "",
            },
        )
        return json.loads((tmp_path / "findings" / "profile.json").read_text("utf-8"))

    return run


@pytest.mark.parametrize(
    ("rule", "files"),
    [
        ("{test_share: 0.2}", ""),
        ("{window: 1, replay: 0.2}", OWN_FILES),
        ("{window: 2, replay: 0.2, test_share: 0.2}", ""),
        ("{window: 1, replay: 0.9}", OWN_FILES),
    ],
    ids=["no-replay", "replay", "replay-and-split", "replay-all"],
)
def test_profile_equals_that_of_the_pipeline(load_data, validate, rule, files):
    data = load_data(rule, files)
    assert profile_training_split(data) == validate(data)


def test_profile_without_dropped_rows(load_data, validate):
    data = load_data("{window: 1, replay: 0.2}")
    checks = checks_of(duplicates={"action": "drop"}, too_long={"action": "drop", "characters": 8})
    config = data.config.model_copy(update={"checks": checks, "bad_rows_limit": 1.0})
    profile = profile_training_split(dataclasses.replace(data, config=config))
    assert profile == validate(dataclasses.replace(data, config=config))
    assert 0 < profile["rows"] < profile_training_split(data)["rows"]


@pytest.mark.parametrize("number", [1, 3])
def test_an_unreadable_span_is_an_error(corpus, load_data, number):
    corpus.write(f"train-{number:03d}.tsv", [])
    data = load_data("{window: 1, replay: 0.2}")
    with pytest.raises(UserError, match="the file is empty") as caught:
        profile_training_split(data)
    assert caught.value.where.endswith(f"train-{number:03d}.tsv")


def test_rows_are_not_kept_in_memory(corpus, load_data):
    peaks = {}
    for count in (6_000, 18_000):  # of 600 bytes, read in blocks of a megabyte
        rows = (f"{n % 100:03}{'x' * 600}\tword\n" for n in range(count))
        corpus.write("train-001.tsv", [*rows])
        data = load_data("{window: 1, replay: 0.99}")
        tracemalloc.start()
        assert profile_training_split(data)["rows"] > count
        peaks[count] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peaks[18_000] == pytest.approx(peaks[6_000], rel=0.1)


def count_words(shards, limit=1 << 18):
    """The words of all buckets of the texts of several shards, in any order."""
    buckets = defaultdict(list)
    for texts in shards:
        counter = WordCounter(["source", "target"], limit)
        parts = [part for text in texts for part in counter.add("source", text)]
        for key, counts in [*parts, *counter.flush()]:
            buckets[key].append(counts)
    features = defaultdict(list)
    for key, parts in buckets.items():
        random.Random(3).shuffle(parts)
        features[key[0]].append(sum_bucket(parts))
    return {feature: join_buckets(parts) for feature, parts in features.items()}


def test_words_of_all_shards():
    words = count_words([["a b a", "c"], ["a d"], []])
    listed = {"a": 3, "b": 1, "c": 1, "d": 1}
    sums = {"total": 6, "distinct": 4, "once": 3}
    assert words["source"] == {**sums, "words": listed, "complete": True}
    assert words["target"] == {**dict.fromkeys(sums, 0), "words": {}, "complete": True}


@pytest.mark.parametrize("limit", [1 << 18, 20])
def test_most_frequent_words_are_listed(monkeypatch, limit):
    monkeypatch.setattr(training_profile, "MAX_WORDS", 30)
    draw = random.Random(5)
    shards = [
        [" ".join(f"w{draw.randrange(1, 20) ** 2}" for _ in range(9)) for _ in range(40)]
        + [" ".join(f"v{draw.randrange(300)}" for _ in range(5))]
        for _ in range(3)
    ]
    every = Counter(word for texts in shards for text in texts for word in text.split())
    words = count_words(shards, limit)["source"]
    ranked = sorted(every.items(), key=lambda item: (-item[1], item[0]))
    assert list(words["words"].items()) == ranked[:30]
    assert words["total"] == every.total()
    assert words["distinct"] == len(every)
    assert words["once"] == sum(count == 1 for count in every.values())
    assert not words["complete"]
