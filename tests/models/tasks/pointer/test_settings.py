"""What a section ``model`` of pointers may say, and what is refused."""

from pathlib import Path

import pytest

from models.decoders.pointer import VISITS, PointerDecoder
from models.encoders import ENCODERS
from models.layers.cells import CELLS
from models.layers.positions import POSITIONS
from models.tasks import describe
from models.tasks.pointer.settings import Decoder, Encoder, Model, Score, SetEncoder
from pipeline.config import load
from pipeline.config.annotations import choices_in, models_in, type_of
from tests.pipeline.config.refusals import compare, problems_of

HEAD = "name: x\ntask: pointer\ndata: {train: train.jsonl.gz}\n"


# What is given here begins in line 4.
CASES = {
    "heads that do not divide": (
        "model:\n  width: 100\n  encoder: {heads: 8}",
        [
            "6: model.encoder.heads: 8 heads do not divide the width model.width: 100; use 4, 5, "
            "10, or another width"
        ],
    ),
    "what trains looks": (
        "training: {penalties: {coverage: 0.1}, reinforce: {reward_weight: 2.0}}",
        [
            "4: training.penalties: pointer learns from its answers alone; leave it out",
            "4: training.reinforce: pointer learns from its answers alone; leave it out",
        ],
    ),
    "odd heads cannot turn": (
        "model: {width: 12, encoder: {heads: 4, positions: rotary}}",
        ["4: model.encoder.positions: rotary turns pairs of numbers, but a head is 3 wide"],
    ),
    "dot of different widths": (
        "model: {width: 96, decoder: {score: dot}}",
        [
            "4: model.decoder.score: dot needs decoder and encoder of the same width, but the "
            "decoder has 128 units and the encoder gives 96; set model.decoder.units: 96, or use "
            "score: general"
        ],
    ),
    "dot with both directions": (
        "model: {encoder: {type: recurrent, units: 128}, decoder: {score: {type: cosine}}}",
        ["4: model.decoder.score: cosine needs decoder and encoder of the same width, but the"],
    ),
    "a score of places": (
        "model: {decoder: {score: location}}",
        ["4: model.decoder.score: 'location' is not a choice; choices: dot, scaled_dot, general"],
    ),
    "unknown visits": (
        "model: {visits: twice}",
        ["4: model.visits: 'twice' is not a choice"],
    ),
    "smoothing": (
        "training: {label_smoothing: 0.1}",
        ["4: training.label_smoothing: there is no probability to give to points that cannot"],
    ),
    "rounded points": (
        "training: {precision: mixed_bfloat16}",
        ["4: training.precision: mixed_bfloat16 would round the points; use float32"],
    ),
    "XLA": (
        "training: {jit_compile: true}",
        ["4: training.jit_compile: XLA cannot compile the training of recurrent layers"],
    ),
    "a metric that needs the points": (
        "training: {early_stop: {metric: tour_length}}",
        ["4: training.early_stop.metric: tour_length is known only of the test split; use loss"],
    ),
    "lengths of text": (
        "search: {max_length_factor: 3.0, max_length_offset: 0, min_length_factor: 1.0}",
        [
            "4: search.max_length_factor: does not apply to points; leave it out",
            "4: search.max_length_offset: does not apply to points; leave it out",
            "4: search.min_length_factor: does not apply to points; leave it out",
        ],
    ),
    "repetitions": (
        "search: {type: greedy, no_repeat_ngram: 1, repetition_penalty: 1.5}",
        [
            "4: search.no_repeat_ngram: does not apply to points; leave it out, and see "
            "model.visits",
            "4: search.repetition_penalty: does not apply to points; leave it out, and see",
        ],
    ),
    "coverage": (
        "search: {coverage_penalty: 0.2}",
        ["4: search.coverage_penalty: does not apply to points; leave it out"],
    ),
    "cut rows": (
        "search: {long_source: truncate}",
        ["4: search.long_source: what is left of a row without its last points has another"],
    ),
    "more than the beam": (
        "search: {beam_size: 2, n_best: 3}",
        ["4: search.n_best: 3 is more than beam_size: 2 can give"],
    ),
    "too little patience": (
        "search: {beam_size: 3, n_best: 2, patience: 0.5}",
        ["4: search.patience: too little for n_best: 2 of beam_size: 3; use at least 0.667"],
    ),
    "a tokenizer": (
        "tokenizer: {type: char}",
        ["4: tokenizer: "],
    ),
    "a metric of text": (
        "evaluation: {metrics: [exact_match, bleu]}",
        ["4: evaluation.metrics.1: 'bleu' is not a choice; choices: exact_match, hull_accuracy"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_refused(name: str, tmp_path: Path) -> None:
    text, expected = CASES[name]
    compare(problems_of(tmp_path, HEAD + text), expected)


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
    assert {str(type_of(part)) for part in models_in(Encoder)} <= set(ENCODERS)
    assert set(choices_in(SetEncoder.model_fields["positions"].annotation)) == set(POSITIONS)
    assert set(choices_in(Decoder.model_fields["cell"].annotation)) == set(CELLS)
    assert set(choices_in(Model.model_fields["visits"].annotation)) == set(VISITS)


@pytest.mark.parametrize("part", models_in(Score))
def test_the_decoder_takes_every_score(part: type) -> None:
    score = part().model_dump()
    PointerDecoder(8, **Decoder.model_validate({"score": score}).model_dump())


@pytest.mark.parametrize("part", models_in(Encoder))
def test_the_encoders_take_every_option(part: type) -> None:
    options = part().model_dump(exclude={"type"})
    ENCODERS[str(type_of(part))](None, **options)


def test_the_fewest_points_are_the_models(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(f"{HEAD}model: {{least: 3, visits: once}}\n")
    points, answer = load(path).features
    assert (points.name, points.kind, points.role, points.least) == ("points", "points", "input", 3)
    assert (answer.name, answer.kind, answer.role) == ("answer", "positions", "reference")


def test_what_the_preprocessing_depends_on() -> None:
    section = Model(visits="once", normalise=False).model_dump(mode="json")
    description = describe("pointer")
    assert description.preprocessing(section) == {"visits": "once", "normalise": False}
    assert (description.text_features, description.answers) == ((), "positions")
