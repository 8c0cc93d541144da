"""The formulas in NumPy give what Transformers computed, so the fixtures and readers are right."""

import numpy as np
import pytest

from tests.components.importing.huggingface_reference import (
    NAMES,
    Model,
    generate,
    read_expected,
)


@pytest.mark.parametrize("name", NAMES)
def test_hidden_states_and_logits(name):
    model = Model(name)
    arrays, _ = read_expected(name)
    memory = model.encode(arrays["input_ids"], arrays["attention_mask"])
    rows = arrays["attention_mask"] > 0
    np.testing.assert_allclose(memory[rows], arrays["encoder"][rows], atol=2e-5, rtol=2e-5)
    logits = model.logits(arrays["decoder_input_ids"], memory, arrays["attention_mask"])
    np.testing.assert_allclose(logits, arrays["logits"], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("search", ["greedy", "beam"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_outputs_and_scores(name, search, count):
    model = Model(name)
    _, expected = read_expected(name)
    sentences, outputs = expected["sentences"][:count], expected[search][:count]
    longest = max(len(sentence["ids"]) for sentence in sentences)
    ids = np.full((count, longest), model.config["pad_token_id"])
    for row, sentence in zip(ids, sentences, strict=True):
        row[: len(sentence["ids"])] = sentence["ids"]
    mask = np.array([[1] * len(s["ids"]) + [0] * (longest - len(s["ids"])) for s in sentences])
    first = [sentence.get("forced_bos_token_id") for sentence in sentences]
    beams = model.generation["num_beams"] if search == "beam" else 1
    results = generate(model, ids, mask, beams, first)
    assert [list(tokens) for _, tokens in results] == [output["ids"] for output in outputs]
    scores = [output["score"] for output in outputs]
    np.testing.assert_allclose([score for score, _ in results], scores, rtol=2e-5, atol=2e-5)
