import json
from types import SimpleNamespace

import pytest
import tensorflow as tf
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import artifact_utils, standard_artifacts

from regard.components.checks import script
from regard.components.common.artifact_types import Findings
from regard.components.corpus_gen.example_writer import ExampleEncoder
from regard.components.data.images import Images
from regard.components.data.near_duplicates import NearDuplicateIndex
from regard.components.data.target_overlap import read_overlap, text_hash
from regard.components.example_validator import shard_scan
from regard.components.example_validator.executor import ExampleValidatorExecutor
from regard.components.example_validator.target_checks import TargetSettings
from regard.core.errors import UserError
from regard.core.features import Feature
from regard.core.kinds import IMAGE, NUMBER, POINTS, POSITIONS, TEXT
from tests.components.corpora import BEAM, TRANSLATION, checks_of, write_files

CHECKS = {
    "empty_side": {"limit": 0.01, "action": "fail"},
    "length_ratio": {"ratio": 9.0, "limit": 0.05},
    "too_long": {"characters": 50, "limit": 0.01},
    "duplicates": {"limit": 0.2},
    "overlap": {"limit": 0.0},
    "near_overlap": {"similarity": 0.8, "limit": 0.05},
    "target_overlap": {"limit": 0.5},
    "same_sides": {"limit": 0.05},
    "script": {"limit": 0.01},
    "control_characters": {"limit": 0.01},
    "encoding": {"limit": 0.01},
    "html_entities": {"limit": 0.01},
    "tokenization": {"limit": 0.01},
    "drift_words": {"limit": 0.05},
    "drift_oov": {"limit": 0.02},
    "drift_lengths": {"limit": 0.05},
}
MIXED = (
    *TRANSLATION,
    Feature("places", POINTS, role="extra"),
    Feature("width", NUMBER, role="extra", optional=True),
)
ROW_CHECKS = [name for name in CHECKS if not name.startswith("drift")]


def artifact(kind, tmp_path):
    new = kind()
    new.uri = str(tmp_path / kind.__name__)
    return new


def write_examples(tmp_path, features=TRANSLATION, shards=1, **splits):
    examples = artifact(standard_artifacts.Examples, tmp_path)
    examples.split_names = artifact_utils.encode_split_names(list(splits))
    for split, rows in splits.items():
        folder = tmp_path / "Examples" / f"Split-{split}"
        folder.mkdir(parents=True)
        encode = ExampleEncoder(features, f"{split}.tsv", Images(str(tmp_path)))
        for i in range(shards):
            name = f"data_tfrecord-{i:05d}-of-{shards:05d}.gz"
            with tf.io.TFRecordWriter(str(folder / name), "GZIP") as out:
                for line in range(i, len(rows), shards):
                    out.write(encode(line + 1, rows[line]))
    return examples


def describe(tmp_path, examples, features=TRANSLATION):
    """Statistics and schema by TFX's own executors, with TFDV's schema of the train split."""
    import tensorflow_data_validation as tfdv
    from tfx.components.schema_gen.executor import Executor as SchemaGen
    from tfx.components.statistics_gen.executor import Executor as StatisticsGen

    statistics = artifact(standard_artifacts.ExampleStatistics, tmp_path)
    schema = artifact(standard_artifacts.Schema, tmp_path)
    names = [feature.name for feature in features]
    options = tfdv.StatsOptions(feature_allowlist=names).to_json()
    context = BaseBeamExecutor.Context(beam_pipeline_args=BEAM, tmp_dir=str(tmp_path / "tmp"))
    StatisticsGen(context).Do(
        {"examples": [examples]}, {"statistics": [statistics]}, {"stats_options_json": options}
    )
    SchemaGen().Do({"statistics": [statistics]}, {"schema": [schema]}, {"exclude_splits": "[]"})
    return statistics, schema


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    """Examples with features of several kinds, and their statistics and schema."""
    root = tmp_path_factory.mktemp("described")
    splits = {"train": plain(30), "eval": plain(5, 100), "test": plain(5, 200)}
    rows = {
        name: [(*pair, [float(i), 0.5], None if i % 2 else 0.5) for i, pair in enumerate(pairs)]
        for name, pairs in splits.items()
    }
    examples = write_examples(root, MIXED, **rows)
    statistics, schema = describe(root, examples, MIXED)
    text = (root / "Schema" / "schema.pbtxt").read_text()
    return SimpleNamespace(examples=examples, statistics=statistics, schema=schema, text=text)


@pytest.fixture
def validate(tmp_path, monkeypatch):
    """Runs the executor; without statistics and schema TFX's part is skipped."""
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv("REGARD_EVENTS", str(log))

    def run(
        examples,
        checks,
        statistics=None,
        schema=None,
        features=TRANSLATION,
        production="",
        pinned="",
    ) -> SimpleNamespace:
        anomalies = artifact(standard_artifacts.ExampleAnomalies, tmp_path)
        findings = artifact(Findings, tmp_path)
        if statistics is None:
            module = "regard.components.example_validator.executor"
            monkeypatch.setattr(f"{module}.tfx_executor.Executor.Do", lambda *_: None)
            anomalies.split_names = "[]"
        context = BaseBeamExecutor.Context(beam_pipeline_args=BEAM, tmp_dir=str(tmp_path / "tmp"))
        inputs = {"examples": [examples], "statistics": [statistics], "schema": [schema]}
        error = None
        try:
            ExampleValidatorExecutor(context).Do(
                inputs,
                {"anomalies": [anomalies], "findings": [findings]},
                {
                    "checks": checks_of(**checks).model_dump_json(),
                    "features": json.dumps([feature.to_json() for feature in features]),
                    "production": production,
                    "pinned_schema": pinned,
                    "targets": TargetSettings().to_json(),
                },
            )
        except UserError as raised:
            error = raised
        lines = log.read_text("utf-8").splitlines() if log.exists() else []
        return SimpleNamespace(
            error=error,
            anomalies=anomalies,
            warnings=[json.loads(line)["text"] for line in lines],
            content=json.loads((tmp_path / "Findings" / "checks.json").read_text("utf-8")),
            profile=json.loads((tmp_path / "Findings" / "profile.json").read_text("utf-8")),
            files=sorted(path.name for path in (tmp_path / "Findings").iterdir()),
        )

    return run


def plain(count, start=0):
    return [(f"source number {i}", f"target number {i}") for i in range(start, start + count)]


def test_valid_examples_with_a_pinned_schema(described, validate):
    checks = {**CHECKS, "near_overlap": {**CHECKS["near_overlap"], "limit": 1.0}}
    result = validate(
        described.examples,
        checks,
        described.statistics,
        described.schema,
        features=MIXED,
        pinned=f"# a.pbtxt\n{described.text}",
    )
    assert result.error is None
    assert result.warnings == []
    assert result.content["rows"] == {"train": 30, "eval": 5, "test": 5}
    counts = {name: f["count"] for name, f in result.content["checks"].items()}
    assert counts.pop("near_overlap") == 10  # they differ in a number
    assert counts == dict.fromkeys(ROW_CHECKS[:5] + ROW_CHECKS[6:], 0)
    assert "drift" not in result.content
    assert json.loads(result.anomalies.split_names) == ["train", "eval", "test"]
    blessed = result.anomalies.get_json_value_custom_property("blessed")
    assert blessed == {"train": 1, "eval": 1, "test": 1}


def test_anomalies_become_warnings(described, tmp_path, validate):
    schema = artifact(standard_artifacts.Schema, tmp_path)
    (tmp_path / "Schema").mkdir()
    text = described.text.replace('name: "target"', 'name: "goal"')
    (tmp_path / "Schema" / "schema.pbtxt").write_text(text)
    result = validate(described.examples, {}, described.statistics, schema, MIXED)
    assert result.error is None
    assert {a["feature"] for a in result.content["anomalies"]} == {"goal", "target"}
    assert any("train: target: " in text for text in result.warnings)


def test_anomalies_of_a_pinned_schema_fail(described, validate):
    pinned = "# a.pbtxt\n" + described.text.replace('name: "target"', 'name: "goal"')
    result = validate(
        described.examples,
        {},
        described.statistics,
        described.schema,
        features=MIXED,
        pinned=pinned,
    )
    assert result.error.where == "data.schema (a.pbtxt)"
    assert "train: target: New column" in result.error.message
    assert "test: goal: Column is completely missing" in result.error.message
    assert {a["feature"] for a in result.content["anomalies"]} == {"goal", "target"}


def test_rows_of_every_check(tmp_path, validate, monkeypatch):
    monkeypatch.setattr(script, "USUAL_SHARE", 0.05)
    train = [*plain(20), ("long " * 11, "lang " * 11), ("a", "b" * 20), plain(1)[0]]
    train += [("Tom!", "Tom!"), ("всё хорошо", "all is well"), ("a\u200bb", "c"), ("Ã¼ber", "over")]
    train += [("Ein Mann läuft mit seinem Hund am Strand.", "A man walks his dog.")]
    train += [("&quot;Go", "Los"), ("Oh , no", "Ah")]
    test = [plain(20)[7], ("new", " "), ("Source  number 13.", "target")]
    checks = {**CHECKS, "empty_side": {"limit": 0.5, "action": "fail"}}
    checks["language"] = {"languages": {"source": "en"}}
    result = validate(write_examples(tmp_path, train=train, test=test), checks)
    findings = result.content["checks"]
    where = {name: [e["where"] for e in f["examples"]] for name, f in findings.items()}
    assert where == {
        "empty_side": ["test.tsv:2"],
        "length_ratio": ["train.tsv:22"],
        "too_long": ["train.tsv:21"],
        "duplicates": ["train.tsv:23"],
        "overlap": ["test.tsv:1"],
        "near_overlap": ["test.tsv:3"],
        "target_overlap": ["test.tsv:1"],
        "same_sides": ["train.tsv:24"],
        "script": ["train.tsv:25"],
        "language": ["train.tsv:28"],
        "control_characters": ["train.tsv:26"],
        "encoding": ["train.tsv:27"],
        "html_entities": ["train.tsv:29"],
        "tokenization": ["train.tsv:30"],
    }
    same_as = {
        n: e["same_as"] for n, f in findings.items() for e in f["examples"] if "same_as" in e
    }
    assert same_as == {
        "duplicates": "train.tsv:1",
        "overlap": "train.tsv:8",
        "near_overlap": "train.tsv:14",
        "target_overlap": "train.tsv:8",
    }
    assert findings["encoding"]["examples"][0]["detail"] == "source should be 'über'"
    assert findings["script"]["examples"][0]["detail"] == "source is Cyrillic"
    assert findings["language"]["examples"][0]["detail"] == "source is de"
    assert findings["overlap"]["share"] == pytest.approx(1 / 3)
    assert result.error is None
    exceeded = ["too_long", "overlap", "near_overlap", "script", "language"]
    exceeded += ["control_characters", "encoding", "html_entities", "tokenization"]
    assert [text.split(":")[0] for text in result.warnings] == exceeded
    assert result.files == ["checks.json", "profile.json", "target_overlap.json"]
    assert read_overlap(tmp_path / "Findings", "") == {text_hash("target number 7")}


def test_empty_targets_do_not_overlap(tmp_path, validate):
    train, test = [*plain(9), ("a", "")], [("b", " "), ("c", "target number 3")]
    checks = {"target_overlap": {"limit": 0.9}}
    result = validate(write_examples(tmp_path, train=train, test=test), checks)
    assert result.content["checks"]["target_overlap"]["splits"] == {"test": 1}


def test_checks_that_are_off(tmp_path, validate):
    rows = plain(3) * 2
    checks = {"duplicates": None, "empty_side": CHECKS["empty_side"]}
    result = validate(write_examples(tmp_path, train=rows, test=rows), checks)
    assert list(result.content["checks"]) == ["empty_side"]
    assert result.files == ["checks.json", "profile.json"]


def test_rows_without_any_text(tmp_path, validate):
    features = [Feature("points", POINTS), Feature("order", POSITIONS, role="reference")]
    features.append(Feature("width", NUMBER, role="extra", optional=True))
    train = [([float(i), 0.0, 0.0, 1.0], [0, 1], 0.5) for i in range(30)]
    train.append(train[3])
    test = [(train[4][0], [1, 0], None), ([0.5, 0.5], [0], 1.0)]
    examples = write_examples(tmp_path, features, train=train, test=test)
    result = validate(examples, CHECKS, features=features)
    assert result.error is None
    findings = result.content["checks"]
    counts = {name: f["count"] for name, f in findings.items()}
    assert counts == {**dict.fromkeys(ROW_CHECKS, 0), "duplicates": 1, "overlap": 1}
    assert result.content["lengths"]["points"]["unit"] == "point"
    assert list(result.profile["features"]) == ["points"]
    (duplicate,) = findings["duplicates"]["examples"]
    assert duplicate["text"] == "2 points: 3 0 0 1 | 0 1 | 0.5"
    assert (duplicate["where"], duplicate["same_as"]) == ("train.tsv:31", "train.tsv:4")
    (overlap,) = findings["overlap"]["examples"]
    assert (overlap["text"], overlap["same_as"]) == (
        "2 points: 4 0 0 1 | 1 0 | ",
        "train.tsv:5",
    )
    assert "1 of 2 rows (50.00%) of the other splits have inputs of the" in result.warnings[-1]


def test_image_with_two_names(tmp_path, validate):
    features = [Feature("image", IMAGE)]
    features.append(Feature("caption", TEXT, role="reference", multiple=True))
    write_files(tmp_path, {"a.png": "x", "b.png": "y", "copy.png": "x"})
    train = [("a.png", ["a dog", "one dog"]), ("b.png", ["a cat", ""])]
    test = [("copy.png", ["dogs", "a cat"])]
    examples = write_examples(tmp_path, features, train=train, test=test)
    checks = {**CHECKS, "empty_side": {"limit": 0.5, "action": "fail"}}
    findings = validate(examples, checks, features=features).content["checks"]
    assert findings["overlap"]["examples"] == [
        {"where": "test.tsv:1", "text": "copy.png | dogs / a cat", "same_as": "train.tsv:1"}
    ]
    (overlap,) = findings["target_overlap"]["examples"]
    assert (overlap["where"], overlap["same_as"]) == ("test.tsv:1", "train.tsv:2")
    assert findings["empty_side"]["examples"][0]["text"] == "b.png | a cat / "
    assert findings["duplicates"]["count"] == findings["length_ratio"]["count"] == 0


def test_lengths_and_words(tmp_path, validate):
    train = [("one two, two", "x" * 6000), ("three", "我有 two")]
    result = validate(write_examples(tmp_path, train=train, test=plain(3)), {})
    lengths = result.content["lengths"]["target"]
    assert lengths["unit"] == "character"
    train_counts, test_counts = (lengths["splits"][split] for split in ("train", "test"))
    assert (train_counts[1], train_counts[-1], sum(train_counts)) == (1, 1, 2)
    assert sum(test_counts) == 3
    assert result.profile["rows"] == 2
    source, target = (result.profile["features"][name] for name in ("source", "target"))
    assert source["words"] == {"two": 2, "one": 1, "three": 1}
    assert set(target["words"]) == {"x" * 6000, "我", "有", "two"}
    assert target["lengths"]["counts"] == train_counts


def test_drift_from_production(tmp_path, validate):
    train = [(f"red {i % 7} dogs", "hunde") for i in range(40)]
    before = validate(write_examples(tmp_path / "a", train=train), CHECKS)
    assert "drift" not in before.content
    (tmp_path / "before.json").write_text(json.dumps(before.profile), "utf-8")
    production = json.dumps({"version": "3", "profile": str(tmp_path / "before.json")})
    cats = [(source.replace("dogs", "cats"), target) for source, target in train]
    checks = {**CHECKS, "drift_oov": {"limit": 0.02, "action": "fail"}, "drift_lengths": None}
    after = validate(write_examples(tmp_path / "b", train=cats), checks, production=production)
    assert after.content["drift"]["version"] == "3"
    findings = after.content["drift"]["checks"]
    assert list(findings) == ["drift_words", "drift_oov"]
    assert findings["drift_words"]["feature"] == "source"
    assert findings["drift_words"]["features"]["target"]["value"] == pytest.approx(0, abs=1e-9)
    assert findings["drift_oov"]["features"]["source"]["rate"] == pytest.approx(1 / 3)
    assert "drift_words: since version 3 in production, the words of source" in after.warnings[-2]
    assert after.error.where == "data.checks.drift_oov"
    assert "33.33% of the running words of source are new" in after.error.message
    assert "mainly 'cats'" in after.error.message


def test_index_of_near_overlap_is_built_once(tmp_path, validate, monkeypatch):
    """Not for every shard of train, and only of as many other rows as the check allows."""
    sizes = []

    class Counted(NearDuplicateIndex):
        def __init__(self, rows, min_similarity):
            sizes.append(len(rows))
            super().__init__(rows, min_similarity)

    monkeypatch.setattr(shard_scan, "NearDuplicateIndex", Counted)
    train, test = plain(20), [(f"{source}!", "x") for source, _ in plain(20)]
    examples = write_examples(tmp_path, shards=4, train=train, test=test)
    near = {"similarity": 0.8, "limit": 1.0}
    finding = validate(examples, {"near_overlap": near}).content["checks"]["near_overlap"]
    assert sizes == [20]
    assert (finding["count"], finding["total"]) == (20, 20)
    assert "left_out" not in finding
    result = validate(examples, {"near_overlap": {**near, "max_rows": 6}})
    finding = result.content["checks"]["near_overlap"]
    assert sizes == [20, 6]
    assert (finding["count"], finding["total"], finding["left_out"]) == (6, 6, 14)
    assert "(14 other rows were left out: see `max_rows`)" in result.warnings[-1]


def test_examples_that_are_not_whole(tmp_path, validate):
    examples = write_examples(tmp_path, shards=2, train=plain(6), test=plain(4, 50))
    examples.set_string_custom_property("rows", '{"train": 6, "test": 4}')
    assert validate(examples, {}).error is None
    examples.set_string_custom_property("rows", '{"train": 7, "test": 4}')
    error = validate(examples, {}).error
    assert "have {'train': 6, 'test': 4} rows, but CorpusGen wrote {'train': 7" in error.message
    (tmp_path / "Examples" / "Split-test" / "data_tfrecord-00001-of-00002.gz").unlink()
    error = validate(examples, {}).error
    assert error.message == "data_tfrecord-00001-of-00002.gz is missing."
    assert error.where.endswith("Split-test")
