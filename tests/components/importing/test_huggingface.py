"""Imported models compute what Hugging Face's classes compute with the same files."""

import numpy as np
import pytest

from regard.models.search import BeamSearch, GreedySearch
from regard.models.vocabulary import BOS, EOS
from tests.components.importing.huggingface_fixtures import M2M, MARIAN, load, pad

MODELS = [*MARIAN, *M2M]
# One of each kind; the others are slow.
SEARCHED = ["marian-opus", "m2m", "nllb"]
TOLERANCE = 1e-4


def slow(names):
    return [
        name if name in SEARCHED else pytest.param(name, marks=pytest.mark.slow) for name in names
    ]


@pytest.mark.parametrize("name", MODELS)
def test_encoder_states_and_logits_are_equal(name):
    fixture = load(name)
    arrays, is_token = fixture.arrays, fixture.arrays["attention_mask"]
    ids = fixture.own_ids(arrays["input_ids"], "encoder") * is_token
    states = np.asarray(fixture.model.encoder(ids)["values"])
    assert np.abs((states - arrays["encoder"]) * is_token[..., None]).max() <= TOLERANCE

    previous = fixture.own_ids(arrays["decoder_input_ids"], "decoder")
    previous[:, 0] = BOS
    logits, _ = fixture.model.decoder.unroll(previous, fixture.model.encode(ids))
    table = fixture.sides["decoder"]
    own = np.setdiff1d(np.arange(len(table.rows)), fixture.foreign.read_weight.never)
    expected = arrays["logits"][..., table.rows[own]]
    assert np.abs(np.asarray(logits)[..., own] - expected).max() <= TOLERANCE
    # What no output has takes no share of the probability.
    never = fixture.foreign.read_weight.never
    assert np.asarray(logits)[..., never].max() < expected.max() - 50


@pytest.mark.parametrize("name", slow(MODELS))
def test_searches_find_the_same_outputs(name):
    """A hypothesis ends at the maximum length with EOS here, whose probability counts."""
    fixture = load(name)
    sources = [
        [*fixture.tokenizers["source"].tokenize(fixture.text(row)).numpy().tolist(), EOS]
        for row in fixture.outputs["sentences"]
    ]
    settings = fixture.search
    limit = settings.max_length_offset + 1
    beam = BeamSearch(
        settings.beam_size,
        settings.length_penalty,
        n_best=1,
        patience=settings.effective_patience,
        length_offset=settings.length_offset,
    )
    begin = 1 + fixture.is_multilingual  # of the output after the first inputs of the decoder
    for kind, search in (("greedy", GreedySearch()), ("beam", beam)):
        result = fixture.model.search(pad(sources), search, np.full(len(sources), limit))
        compared = 0
        for ids, expected in zip(np.asarray(result.ids)[:, 0], fixture.outputs[kind], strict=True):
            output = expected["ids"][begin:]
            is_complete = len(output) < limit
            if is_complete:
                length = len(output)
            elif kind == "greedy":
                length = limit - 1
            else:
                continue
            assert fixture.foreign_ids(ids[:length]) == output[:length]
            compared += is_complete
        assert compared >= 20, f"only {compared} outputs of {kind} search end before the limit"
