"""A good file: defaults, variables, absolute paths, canonical JSON, digests."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from regard.components.data.sources import find_files
from regard.components.data.spans import resolve_spans
from regard.core.yaml_text import from_yaml, to_yaml
from regard.models.settings.search import BeamSearchConfig, GreedySearchConfig
from regard.pipeline.config import config_from_values, load
from tests.pipeline.config.refusals import load_text

MINIMAL = "name: tiny\ndata:\n  train: {source: a.en, target: a.de}\n"


def test_defaults(tmp_path: Path) -> None:
    config = load_text(tmp_path, MINIMAL)
    assert config.task == "translation"
    assert [feature.name for feature in config.features] == ["source", "target"]
    assert config.training.schedule.type == "constant"
    assert isinstance(config.search, BeamSearchConfig)
    assert config.data.split is not None
    assert config.data.checks.empty_side is not None
    assert config.data.checks.empty_side.action == "fail"
    assert config.evaluation.production is not None
    assert config.evaluation.production.metric == "bleu"


def test_the_root_is_absolute_and_the_files_are_found_below_it(tmp_path: Path) -> None:
    folder = tmp_path / "a [b]" / "d"  # signs of a pattern in the folder's name are no pattern
    folder.mkdir(parents=True)
    for name in ("a.tsv", "e1.tsv", "e2.ndjson"):
        (folder / name).write_text("x\ty\n")
    text = "name: a\ndata:\n  root: ../d\n  train: [a.tsv]\n  eval: e*.tsv\n  test: e2.ndjson\n"
    (folder.parent / "yaml").mkdir()
    config = load_text(folder.parent / "yaml", text)
    assert config.data.root == str(folder)
    assert config.data.split is None
    result = find_files(resolve_spans(config.corpus))
    assert [group.files for group in result["eval"]] == [(str(folder / "e1.tsv"),)]
    assert result["test"][0].format == "jsonl"


def test_relative_yaml_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.yaml").write_text(MINIMAL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REGARD_HOME", raising=False)
    config = load("x.yaml")
    assert config.data.root == str(tmp_path)


def test_home_is_always_defined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "name: a\ndata:\n  root: ${REGARD_HOME}/d\n  train: a.tsv\n"
    monkeypatch.setenv("REGARD_HOME", "/elsewhere")
    assert load_text(tmp_path, text).data.root == "/elsewhere/d"
    config = load_text(tmp_path, text, home=tmp_path / "home")
    assert config.data.root == str(tmp_path / "home" / "d")


def test_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPS", "12")
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.delenv("UNSET", raising=False)
    text = MINIMAL + (
        "training:\n  max_steps: ${STEPS}\n"
        "tokenizer:\n"
        "  user_defined_symbols: [\"${STEPS}\", '$${STEPS}', '${UNSET:-a}-${EMPTY:-b}']\n"
    )
    config = load_text(tmp_path, text)
    assert config.training.max_steps == 12
    assert config.tokenizer.user_defined_symbols == ("12", "${STEPS}", "a-b")


def test_numbers_of_yaml_1_2(tmp_path: Path) -> None:
    config = load_text(tmp_path, MINIMAL + "training: {learning_rate: 1e-3, clip_norm: 5}\n")
    assert config.training.learning_rate == 0.001
    assert config.training.clip_norm == 5.0


def test_anchors_and_merge_keys(tmp_path: Path) -> None:
    text = MINIMAL + (
        "model:\n  encoder: &shape {units: 64, layers: 2}\n"
        "  decoder:\n    <<: *shape\n    layers: 1\n"
    )
    model = load_text(tmp_path, text).model
    assert (model.encoder.units, model.encoder.layers) == (64, 2)
    assert (model.decoder.units, model.decoder.layers) == (64, 1)


def test_byte_order_mark(tmp_path: Path) -> None:
    assert load_text(tmp_path, "\ufeff" + MINIMAL).name == "tiny"


def test_variants(tmp_path: Path) -> None:
    text = (
        MINIMAL + "search: {type: greedy}\ntraining: {schedule: {type: exponential, rate: 0.9}}\n"
    )
    config = load_text(tmp_path, text)
    assert isinstance(config.search, GreedySearchConfig)
    assert config.training.schedule.type == "exponential"
    assert config.training.schedule.rate == 0.9


def test_a_check_given_in_part_keeps_its_own_defaults(tmp_path: Path) -> None:
    text = MINIMAL + "  checks: {empty_side: {limit: 0.5}, length_ratio: {action: fail}}\n"
    checks = load_text(tmp_path, text).data.checks
    assert checks.empty_side is not None
    assert checks.length_ratio is not None
    assert (checks.empty_side.limit, checks.empty_side.action) == (0.5, "fail")
    assert (checks.length_ratio.ratio, checks.length_ratio.limit) == (9.0, 0.05)


def test_a_check_is_left_out_by_null(tmp_path: Path) -> None:
    text = MINIMAL + "  checks: {near_overlap: null, empty_side: null, drift_oov: {limit: 0.1}}\n"
    checks = load_text(tmp_path, text).data.checks
    assert checks.near_overlap is None
    assert checks.empty_side is None
    assert checks.drift_oov is not None
    assert (checks.drift_oov.limit, checks.drift_oov.action) == (0.1, "warn")


def test_the_comparison_is_by_the_first_metric(tmp_path: Path) -> None:
    text = MINIMAL + "evaluation: {metrics: [exact_match], production: {tolerance: 0.1}}\n"
    production = load_text(tmp_path, text).evaluation.production
    assert production is not None
    assert (production.metric, production.tolerance) == ("exact_match", 0.1)


SPANS = "name: x\ndata:\n  train: '{SPAN}.tsv'\n  spans: {test_share: 0.1}\n"


@pytest.mark.parametrize(
    ("more", "by", "slices"),
    [
        ("", ("span",), ("span",)),
        ("evaluation: {samples: 0}", ("span",), ("span",)),
        ("evaluation: {slices: {oov: null, by: [span]}}", ("span",), ("span",)),
        ("evaluation: {production: {tolerance: 1.0}}", ("span",), ("span",)),
        ("evaluation: {production: {slices: []}}", (), ()),
        ("evaluation: {production: {slices: [length]}}", (), ("length",)),
        ("evaluation: {production: null}", (), None),
    ],
)
def test_a_newest_span_that_is_tested_on_is_compared_apart(
    more: str, by: tuple[str, ...], slices: tuple[str, ...] | None, tmp_path: Path
) -> None:
    evaluation = load_text(tmp_path, SPANS + more).evaluation
    assert evaluation.slices.by == by
    assert (evaluation.production and evaluation.production.slices) == slices
    if "tolerance" in more:
        assert evaluation.production is not None
        assert (evaluation.production.tolerance, evaluation.production.metric) == (1.0, "bleu")


def test_without_one_nothing_is_compared_apart(tmp_path: Path) -> None:
    evaluation = load_text(tmp_path, SPANS.replace("0.1", "0.0")).evaluation
    assert evaluation.slices.by == evaluation.production.slices == ()


def test_frozen(tmp_path: Path) -> None:
    config = load_text(tmp_path, MINIMAL)
    with pytest.raises(ValidationError, match="frozen"):
        config.training.seed = 3  # type: ignore[misc]


def test_section_json_is_canonical(tmp_path: Path) -> None:
    one = load_text(tmp_path, MINIMAL + "training: {seed: 1, max_steps: 2}\n")
    two = load_text(tmp_path, MINIMAL + "training:\n  max_steps: 2\n  seed: 1\n")
    assert one.section_json("training") == two.section_json("training")
    assert json.loads(one.section_json("training"))["max_steps"] == 2
    assert json.loads(one.section_json("name")) == "tiny"


def test_digest_is_of_the_named_sections(tmp_path: Path) -> None:
    one = load_text(tmp_path, MINIMAL)
    two = load_text(tmp_path, MINIMAL + "search: {beam_size: 4}\n")
    assert one.digest("training", "model") == two.digest("training", "model")
    assert one.digest("search") != two.digest("search")
    assert one.digest() != two.digest()


@pytest.mark.parametrize(
    ("task", "train", "search", "limits"),
    [
        ("captioning", "a.tsv", "{type: greedy}", (0.0, 30)),
        ("summarisation", "a.jsonl", "{beam_size: 8}", (0.25, 20)),
        ("summarisation", "a.jsonl", "{type: sampling, max_length_offset: 5}", (0.25, 5)),
        ("translation", "a.tsv", "{type: greedy}", (2.0, 10)),
    ],
)
def test_a_search_given_in_part_keeps_the_limits_of_its_task(
    task: str, train: str, search: str, limits: tuple[float, int], tmp_path: Path
) -> None:
    text = f"name: x\ntask: {task}\ndata: {{train: {train}}}\nsearch: {search}\n"
    result = load_text(tmp_path, text, home=tmp_path).search
    assert (result.max_length_factor, result.max_length_offset) == limits


SECRET_CONFIG = """\
name: tiny
data:
  root: ${FOLDER}/data
  train: {source: train.en, target: train.de}
beam:
  options:
    s3_secret_access_key: ${KEY}
    s3_access_key_id: "${PIN}"
    job_name: ${PIN}
training:
  max_steps: ${STEPS:-100}
serving: {registry: "/r/$${x}/${UNSET:-default}"}
"""


def test_references_stay_references(tmp_path, monkeypatch):
    for name, value in {"FOLDER": "/srv", "KEY": "hunter2 ${x}", "PIN": "31337"}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "a.yaml").write_text(SECRET_CONFIG)
    config = load(tmp_path / "a.yaml")
    assert config.data.root == "/srv/data"
    assert config.beam.options["s3_secret_access_key"] == "hunter2 ${x}"
    recorded = config.recorded()
    assert recorded["data"]["root"] == "${FOLDER}/data"
    assert recorded["serving"]["registry"] == "/r/$${x}/default"
    assert recorded["beam"]["options"]["job_name"] == "${PIN}"
    text = to_yaml(recorded)
    assert "hunter2" not in text
    assert "31337" not in text
    again = config_from_values(from_yaml(text))
    assert again.recorded() == recorded
    assert again.beam.arguments() == config.beam.arguments()
    assert again.data == config.data
    assert again.serving == config.serving
    (tmp_path / "b.yaml").write_text(text)
    assert load(tmp_path / "b.yaml").recorded() == recorded
    monkeypatch.delenv("KEY")
    with pytest.raises(LookupError):
        config_from_values(from_yaml(text))
