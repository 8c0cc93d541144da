"""Streams of exported models have exactly the output of ``serving_default``."""

import math

import pytest

from regard.components.settings.trainer import TrainerConfig
from regard.models.search import BeamSearch, GreedySearch, SamplingSearch
from regard.models.settings.text_to_text import TextToTextModelConfig
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.streaming import stream_problem
from regard.serving import saved_model
from tests.marks import slow_except
from tests.models.tasks.exported import build, servable, served
from tests.models.tasks.tokenizers import trained

SENTENCES = ["a cat sat 中文", "the dog ran far away", " \n", "unseen ☃ words", "x " * 50]
SMALL = {"layers": 2, "heads": 2, "feed_forward": 12}
RECURRENT = {"encoder": {"units": 6}, "tie_embeddings": "all"}
FAMILIES = {
    "transformer": (
        {"encoder": {"type": "transformer", **SMALL}, "decoder": {"type": "transformer", **SMALL}},
        {"type": "greedy", "no_repeat_ngram_size": 2},
    ),
    "bahdanau with a copying pointer": (
        {
            **RECURRENT,
            "decoder": {"type": "bahdanau", "units": 8, "layers": 2, "pointer_generator": True},
        },
        {"type": "beam", "beam_size": 1, "length_penalty": 0.0, "min_length_factor": 0.7},
    ),
    "luong": (
        {**RECURRENT, "decoder": {"type": "luong", "units": 8}},
        {"type": "sampling", "top_k": 9, "temperature": 2.0, "max_length_offset": 20},
    ),
    "no attention": (
        {"encoder": {"units": 6}, "decoder": {"type": "luong", "units": 8}, "attention": None},
        {"type": "greedy"},
    ),
}


QUICK = ["transformer"]


@pytest.mark.parametrize("name", slow_except(QUICK, FAMILIES))
def test_a_stream_is_the_output(name, tmp_path):
    sections, search = FAMILIES[name]
    config = TrainerConfig(
        task="translation",
        model=TextToTextModelConfig(embedding=8, dropout=0.0, **sections).model_dump(),
        training=TrainingConfig().model_dump(),
        search={**search, "max_source_length": 20},
    )
    # Bytes for what has no piece, so that characters are split between tokens.
    model = trained(["a cat", "the dog ran far", "▁"], vocab_size=290, byte_fallback=True)
    for side in ("source", "target"):
        (tmp_path / f"{side}.model").write_bytes(model)
    model, tokenizers = build(tmp_path, config, seed=7)
    for weight in model.weights:
        weight.assign(weight * 3.0)
    served(tmp_path, config, model, tokenizers)
    assert servable(tmp_path / "saved")
    loaded = saved_model.load(tmp_path / "saved")
    assert loaded.contract["stream_problem"] is None
    rows = [{"source": sentence} for sentence in SENTENCES]
    for row, expected in zip(rows, loaded.predict("serving_default", rows), strict=True):
        *tokens, last = loaded.stream(row)
        outputs = {key: last.pop(key) for key in expected.outputs}
        assert outputs == pytest.approx(expected.outputs, abs=1e-4, nan_ok=True)
        assert "".join(token["text"] for token in [*tokens, last]) == expected.hypothesis
        if row["source"].strip():
            total = sum(token["log_probability"] for token in [*tokens, last])
            assert total == pytest.approx(expected.score, abs=1e-3)
            assert last["token"] == "</s>"
        else:
            assert not tokens
            assert last["text"] == ""
            assert math.isnan(last["log_probability"])


def test_only_searches_that_never_take_a_token_back_stream():
    streaming = [GreedySearch(), SamplingSearch(), BeamSearch(1, length_penalty=0.0)]
    assert [stream_problem(search) for search in streaming] == [None] * 3
    for search in (BeamSearch(), BeamSearch(1)):
        assert "search (beam) compares several" in stream_problem(search)
    assert "search (sampling) compares several" in stream_problem(SamplingSearch(samples=2))
