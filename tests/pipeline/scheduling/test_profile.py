"""The profile is the one that ExampleValidator writes of the same rows."""

import json

import pytest

from components.corpus_gen import resolve
from components.example_validator.rows import Shard
from components.example_validator.scan import scan
from components.example_validator.tally import Tally
from components.example_validator.vocabulary import joined, summed
from models.tasks.features import Feature
from pipeline.scheduling.look import look
from pipeline.scheduling.profile import keep, profile_of, remembered
from pipeline.workspace import Workspace
from tests.pipeline.scheduling.growing import CONFIG, Corpus

SPLIT = CONFIG.replace("  eval: eval.tsv\n  test: test.tsv\n", "  spans: {test_share: 0.2}\n")


@pytest.fixture
def corpus(tmp_path):
    made = Corpus(tmp_path)
    for number in (1, 2, 3):
        made.span(number, count=300)
    return made


def validated(data, folder):
    """The profile by way of tf.Examples, without the pipeline around it."""
    from components.corpus_gen.convert import convert
    from components.corpus_gen.splits import Draws
    from components.example_validator.executor import _lengths, _profile

    draws, given = Draws(data, resolve(data)), resolve(data)["train"]
    for name in ("train", "eval", "test"):
        (folder / f"Split-{name}").mkdir(parents=True)
    for index, group in enumerate(given):
        convert(index, group, data, draws.of(group), str(folder))
    parts = sorted((folder / "Split-train").iterdir())
    shards = [Shard(index, "train", str(path)) for index, path in enumerate(parts)]
    features = [Feature.from_json(feature) for feature in data["features"]]
    tallies, words = [], {}
    for shard in shards:
        for one in scan(shard, [], features, {}):
            if isinstance(one, Tally):
                tallies.append(one)
            elif one.tag == "words":
                key, counts = one.value
                words.setdefault(key, []).append(counts)
    buckets = {}
    for key, counts in words.items():
        feature, bucket = summed(key, counts)
        buckets.setdefault(feature, []).append(bucket)
    tally = Tally.total(tallies)
    rows = {"train": sum(tally.rows.values())}
    profile = _profile(
        rows, dict(joined(*item) for item in buckets.items()), _lengths(tally, shards, features)
    )
    return json.loads(json.dumps(profile))


def test_it_is_the_same(corpus, tmp_path):
    paths = Workspace(tmp_path / "home").pipeline("tiny")
    data = look(corpus.config(text=SPLIT), paths).data
    assert profile_of(data) == validated(data, tmp_path / "examples")


def test_it_is_made_once_for_the_same(corpus, tmp_path):
    paths = Workspace(tmp_path / "home").pipeline("tiny")
    data = look(corpus.config(), paths).data
    kept = tmp_path / "profile.json"
    made = remembered(data, "a", kept)
    assert made["rows"] == 900
    corpus.span(3, count=10)
    assert remembered(data, "a", kept) == made
    assert remembered(data, "b", kept)["rows"] == 610


@pytest.mark.parametrize("text", ["[]", "3", "{}"])
def test_one_of_another_shape_is_made_anew(corpus, tmp_path, text):
    kept, trained = tmp_path / "profile.json", tmp_path / "trained.json"
    kept.write_text(text)
    keep(kept, trained, "a")
    assert not trained.exists()
    paths = Workspace(tmp_path / "home").pipeline("tiny")
    assert remembered(look(corpus.config(), paths).data, "a", kept)["rows"] == 900
