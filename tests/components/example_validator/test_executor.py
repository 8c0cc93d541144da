from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import tensorflow as tf
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import artifact_utils, standard_artifacts

from components.artifacts import Findings
from components.corpus_gen.images import Images
from components.corpus_gen.records import Encoder
from components.errors import UserError
from components.example_validator.executor import Executor
from models.tasks.features import Feature

BEAM = [
    "--runner=FnApiRunner",
    "--direct_running_mode=in_memory",
    "--sdk_container_image=unused",  # else TFX packs itself up for remote workers each time: 2 s
]
PAIR = [Feature("source", "text"), Feature("target", "text", role="reference")]
CHECKS = {
    "empty_side": {"limit": 0.01, "action": "fail"},
    "length_ratio": {"ratio": 9.0, "limit": 0.05, "action": "warn"},
    "too_long": {"characters": 50, "limit": 0.01, "action": "warn"},
    "duplicates": {"limit": 0.2, "action": "warn"},
    "overlap": {"limit": 0.0, "action": "warn"},
}


def artifact(kind, tmp_path):
    made = kind()
    made.uri = str(tmp_path / kind.__name__)
    return made


def write_examples(tmp_path, features=PAIR, **splits):
    examples = artifact(standard_artifacts.Examples, tmp_path)
    examples.split_names = artifact_utils.encode_split_names(list(splits))
    for split, rows in splits.items():
        folder = tmp_path / "Examples" / f"Split-{split}"
        folder.mkdir(parents=True)
        encoded = Encoder(features, f"{split}.tsv", Images({"root": str(tmp_path)}))
        with tf.io.TFRecordWriter(str(folder / "data_tfrecord-00000-of-00001.gz"), "GZIP") as out:
            for line, row in enumerate(rows, 1):
                out.write(encoded(line, row))
    return examples


def describe(tmp_path, examples, features=PAIR):
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


@pytest.fixture
def validate(tmp_path, monkeypatch):
    """Runs the executor; TFX's part is left out unless statistics and schema are given."""
    told = tmp_path / "events.jsonl"
    monkeypatch.setenv("REGARD_EVENTS", str(told))

    def run(examples, checks, statistics=None, schema=None, features=PAIR) -> SimpleNamespace:
        anomalies = artifact(standard_artifacts.ExampleAnomalies, tmp_path)
        findings = artifact(Findings, tmp_path)
        if statistics is None:
            module = "components.example_validator.executor"
            monkeypatch.setattr(f"{module}.tfx_executor.Executor.Do", lambda *_: None)
            anomalies.split_names = "[]"
        context = BaseBeamExecutor.Context(beam_pipeline_args=BEAM, tmp_dir=str(tmp_path / "tmp"))
        inputs = {"examples": [examples], "statistics": [statistics], "schema": [schema]}
        error = None
        try:
            Executor(context).Do(
                inputs,
                {"anomalies": [anomalies], "findings": [findings]},
                {
                    "checks": json.dumps(checks),
                    "features": json.dumps([feature.to_json() for feature in features]),
                },
            )
        except UserError as refusal:
            error = refusal
        lines = told.read_text("utf-8").splitlines() if told.exists() else []
        return SimpleNamespace(
            error=error,
            anomalies=anomalies,
            warnings=[json.loads(line)["text"] for line in lines],
            content=json.loads((tmp_path / "Findings" / "checks.json").read_text("utf-8")),
            files=sorted(path.name for path in (tmp_path / "Findings").iterdir()),
        )

    return run


def plain(count, start=0):
    return [(f"source number {i}", f"target number {i}") for i in range(start, start + count)]


def test_clean_examples_pass_together_with_tfx(tmp_path, validate):
    examples = write_examples(tmp_path, train=plain(30), eval=plain(5, 100), test=plain(5, 200))
    result = validate(examples, CHECKS, *describe(tmp_path, examples))
    assert result.error is None
    assert result.warnings == []
    assert result.content["rows"] == {"train": 30, "eval": 5, "test": 5}
    assert {name: f["count"] for name, f in result.content["checks"].items()} == dict.fromkeys(
        CHECKS, 0
    )
    assert json.loads(result.anomalies.split_names) == ["train", "eval", "test"]
    assert result.anomalies.get_json_value_custom_property("blessed") == {
        "train": 1,
        "eval": 1,
        "test": 1,
    }


def test_tfdvs_anomalies_become_warnings(tmp_path, validate):
    examples = write_examples(tmp_path, train=plain(30))
    statistics, schema = describe(tmp_path, examples)
    path = tmp_path / "Schema" / "schema.pbtxt"
    path.write_text(path.read_text().replace('name: "target"', 'name: "goal"'))
    result = validate(examples, CHECKS, statistics, schema)
    assert {a["feature"] for a in result.content["anomalies"]} == {"goal", "target"}
    assert any("train: target: " in text for text in result.warnings)


def test_every_check_finds_its_rows(tmp_path, validate):
    train = [*plain(20), ("long " * 11, "long " * 11), ("a", "b" * 20), plain(1)[0]]
    result = validate(
        write_examples(tmp_path, train=train, test=[plain(20)[7], ("new", " ")]),
        {**CHECKS, "empty_side": {"limit": 0.5, "action": "fail"}},
    )
    found = result.content["checks"]
    where = {name: [e["where"] for e in f["examples"]] for name, f in found.items()}
    assert where == {
        "empty_side": ["test.tsv:2"],
        "length_ratio": ["train.tsv:22"],
        "too_long": ["train.tsv:21"],
        "duplicates": ["train.tsv:23"],
        "overlap": ["test.tsv:1"],
    }
    assert found["duplicates"]["examples"][0]["same_as"] == "train.tsv:1"
    assert found["overlap"]["examples"][0]["same_as"] == "train.tsv:8"
    assert found["overlap"]["share"] == 0.5
    assert result.error is None
    assert [text.split(":")[0] for text in result.warnings] == ["too_long", "overlap"]
    assert result.files == ["checks.json"]


def test_too_many_empty_sides_end_the_run(tmp_path, validate):
    result = validate(write_examples(tmp_path, train=[("a", ""), *plain(9)]), CHECKS)
    assert result.error.where == "train.tsv:1"
    assert "1 of 10 rows (10.00%)" in result.error.message
    assert result.content["checks"]["empty_side"]["exceeded"]


def test_a_check_that_is_off_is_not_in_the_findings(tmp_path, validate):
    rows = plain(3) * 2
    checks = {"duplicates": None, "empty_side": CHECKS["empty_side"]}
    result = validate(write_examples(tmp_path, train=rows, test=rows), checks)
    assert list(result.content["checks"]) == ["empty_side"]


def test_rows_without_any_text(tmp_path, validate):
    features = [Feature("points", "points"), Feature("order", "positions", role="reference")]
    features.append(Feature("width", "number", role="extra", optional=True))
    train = [([float(i), 0.0, 0.0, 1.0], [0, 1], 0.5) for i in range(30)]
    train.append(train[3])
    test = [(train[4][0], [1, 0], None), ([0.5, 0.5], [0], 1.0)]
    examples = write_examples(tmp_path, features, train=train, test=test)
    described = describe(tmp_path, examples, features)
    result = validate(examples, CHECKS, *described, features)
    assert result.error is None
    found = result.content["checks"]
    assert {name: f["count"] for name, f in found.items()} == {
        "empty_side": 0,
        "length_ratio": 0,
        "too_long": 0,
        "duplicates": 1,
        "overlap": 1,
    }
    (again,) = found["duplicates"]["examples"]
    assert again["text"] == "2 points: (3, 0) (0, 1) | 0 1 | 0.5"
    assert (again["where"], again["same_as"]) == ("train.tsv:31", "train.tsv:4")
    (shared,) = found["overlap"]["examples"]
    assert (shared["text"], shared["same_as"]) == (
        "2 points: (4, 0) (0, 1) | 1 0 | ",
        "train.tsv:5",
    )
    assert "1 of 2 rows (50.00%) of the other splits have inputs that are" in result.warnings[-1]


def test_an_image_under_two_names_is_the_same_input(tmp_path, validate):
    features = [Feature("image", "image")]
    features.append(Feature("caption", "text", role="reference", several=True))
    for name, content in (("a", b"x"), ("b", b"y"), ("copy", b"x")):
        (tmp_path / f"{name}.png").write_bytes(content)
    train = [("a.png", ["a dog", "one dog"]), ("b.png", ["a cat", ""])]
    examples = write_examples(tmp_path, features, train=train, test=[("copy.png", ["a dog"])])
    checks = {**CHECKS, "empty_side": {"limit": 0.5, "action": "fail"}}
    found = validate(examples, checks, features=features).content["checks"]
    assert found["overlap"]["examples"] == [
        {"where": "test.tsv:1", "text": "copy.png | a dog", "same_as": "train.tsv:1"}
    ]
    assert found["empty_side"]["examples"][0]["text"] == "b.png | a cat /"
    assert found["duplicates"]["count"] == found["length_ratio"]["count"] == 0
