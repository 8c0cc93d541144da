"""What a section ``model`` of pointers may say, and what is refused."""

from pathlib import Path

import pytest

from regard.core import kinds
from regard.models.decoders.pointer import VISITS, PointerDecoder
from regard.models.encoders import ENCODERS
from regard.models.layers.cells import CELLS
from regard.models.layers.positions import POSITIONS
from regard.models.settings.annotations import choices_in, models_in, type_of
from regard.models.tasks import describe
from regard.models.tasks.pointer.description import (
    EncoderConfig,
    PointerDecoderConfig,
    PointerModelConfig,
    ScoreConfig,
    SetEncoderConfig,
)
from regard.pipeline.config import load
from tests.pipeline.config.refusals import compare, problems_of

HEAD = "name: x\ntask: pointer\ndata: {train: train.jsonl.gz}\n"


# What is given here begins in line 4.
CASES = {
    "model:\n  width: 100\n  encoder: {heads: 8}": [
        "6: model.encoder.heads: 8 heads do not divide model.width: 100; use 4, 5, 10, or"
    ],
    "model: {encoder: [{type: recurrent, units: 5}, {heads: 3}, {type: embedding}]}": [
        "4: model.encoder.2.type: 'embedding' is not a choice. Choices: recurrent, transformer"
    ],
    "model: {encoder: [{type: recurrent, units: 5}, {heads: 3}]}": [
        "4: model.encoder.1.heads: 3 heads do not divide the width of the outputs of "
        "model.encoder.0: 10; use"
    ],
    "training: {penalties: {coverage: 0.1}, reinforce: {reward_weight: 2.0}}": [
        "4: training.penalties: does not apply to the task pointer; remove it",
        "4: training.reinforce: does not apply to the task pointer; remove it",
    ],
    "model: {width: 12, encoder: {heads: 4, positions: rotary}}": [
        "4: model.encoder.positions: rotary needs an even width per head, but it is 3"
    ],
    "model: {width: 96, decoder: {score: dot}}": [
        "4: model.decoder.score: dot needs equal widths of decoder and encoder, but the d"
    ],
    "model: {encoder: {type: recurrent, units: 128}, decoder: {score: {type: cosine}}}": [
        "4: model.decoder.score: cosine needs equal widths of decoder and encoder, but the d"
    ],
    "model: {decoder: {score: location}}": [
        "4: model.decoder.score.type: 'location' is not a choice. Choices: additive, "
    ],
    "model: {visits: twice}": ["4: model.visits: 'twice' is not a choice"],
    "training: {label_smoothing: 0.1}": [
        "4: training.label_smoothing: does not apply to the task pointer; remove it"
    ],
    "training: {precision: mixed_bfloat16}": [
        "4: training.precision: mixed_bfloat16 would round the coordinates; use float32"
    ],
    "training: {jit_compile: true}": [
        "4: training.jit_compile: XLA cannot compile the recurrent layers of a pointer decod"
    ],
    "training: {early_stopping: {metric: tour_length}}": [
        "4: training.early_stopping.metric: tour_length is computed on the test split only"
    ],
    "search: {max_length_factor: 3.0, max_length_offset: 0, min_length_factor: 1.0}": [
        "4: search.max_length_factor: does not apply to the task pointer, which has no te",
        "4: search.max_length_offset: does not apply to the task pointer, which has no te",
        "4: search.min_length_factor: does not apply to the task pointer, which has no te",
    ],
    "search: {type: greedy, no_repeat_ngram_size: 1}": [
        "4: search.no_repeat_ngram_size: does not apply to the task pointer, whose points model"
    ],
    "search: {coverage_penalty: 0.2}": [
        "4: search.coverage_penalty: does not apply to the task pointer, which has no te"
    ],
    "search: {long_source: truncate}": [
        "4: search.long_source: a row without its last points has another solution; use refu"
    ],
    "search: {beam_size: 2, n_best: 3}": ["4: search.n_best: 3 is more than beam_size: 2"],
    "search: {beam_size: 3, n_best: 2, patience: 0.5}": [
        "4: search.patience: too low for n_best: 2 with beam_size: 3; use at least 0.667"
    ],
    "tokenizer: {type: char}": ["4: tokenizer: "],
    "evaluation: {metrics: [exact_match, bleu]}": [
        "4: evaluation.metrics.1: 'bleu' is not a choice. Choices: exact_match, "
    ],
}


@pytest.mark.parametrize("text", CASES)
def test_refused(text: str, tmp_path: Path) -> None:
    compare(problems_of(tmp_path, HEAD + text), CASES[text])


@pytest.mark.parametrize(
    "search",
    ["{}", "{beam_size: 4, n_best: 2}", "{type: greedy}", "{type: sampling, samples: 3, seed: 1}"],
)
def test_every_search_refuses_what_is_too_long(search: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(f"{HEAD}search: {search}\n")
    config = load(path)
    assert config.search.long_source == "refuse"
    assert config.training.label_smoothing == 0.0
    assert config.evaluation.metrics == ("exact_match",)
    assert config.evaluation.length_buckets == (5, 10, 20)
    assert config.tokenizer is None


def test_the_choices_are_those_that_the_code_has() -> None:
    assert {str(type_of(part)) for part in models_in(EncoderConfig)} <= set(ENCODERS)
    assert set(choices_in(SetEncoderConfig.model_fields["positions"].annotation)) == set(POSITIONS)
    assert set(choices_in(PointerDecoderConfig.model_fields["cell"].annotation)) == set(CELLS)
    assert set(choices_in(PointerModelConfig.model_fields["visits"].annotation)) == set(VISITS)


@pytest.mark.parametrize("part", models_in(ScoreConfig))
def test_the_decoder_takes_every_score(part: type) -> None:
    score = part().model_dump()
    PointerDecoder(8, **PointerDecoderConfig.model_validate({"score": score}).model_dump())


@pytest.mark.parametrize("part", models_in(EncoderConfig))
def test_the_encoders_take_every_option(part: type) -> None:
    options = part().model_dump(exclude={"type"})
    ENCODERS[str(type_of(part))](None, **options)


def test_the_fewest_points_are_the_models(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(f"{HEAD}model: {{min_points: 3, visits: once}}\n")
    points, answer = load(path).features
    assert (points.name, points.kind.name, points.role, points.min_points) == (
        "points",
        "points",
        "input",
        3,
    )
    assert (answer.name, answer.kind.name, answer.role) == ("answer", "positions", "reference")


def test_what_the_preprocessing_depends_on() -> None:
    section = PointerModelConfig(visits="once", normalise=False)
    description = describe("pointer")
    settings = description.preprocessing_settings(section).model_dump()
    assert settings == {"dimensions": 2, "visits": "once", "normalise": False}
    assert (description.text_features, description.output_kind) == ((), kinds.POSITIONS)
