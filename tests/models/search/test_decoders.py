"""Searches with real decoders, whose states a search reorders."""

import keras
import numpy as np
import pytest

from regard.models.decoders import DECODERS
from regard.models.encoders import ENCODERS
from regard.models.search import BeamSearch, SamplingSearch
from regard.models.seq2seq import Seq2Seq
from regard.models.vocabulary import BOS, PAD
from tests.models.search.test_phrases import padded
from tests.models.search.toy import arrays
from tests.tolerances import assert_close, close_to

SOURCE = np.array([[5, 6, 7, 3], [4, 3, 0, 0], [6, 4, 3, 0]], "int32")
LIMITS = np.array([5, 9, 7])
RECURRENT = {"units": 8, "layers": 2}
TRANSFORMER = {"heads": 2, "feed_forward": 16, "layers": 2}
PAIRS = {
    "luong": ("recurrent", RECURRENT, "luong", RECURRENT),
    "bahdanau": ("recurrent", RECURRENT, "bahdanau", {**RECURRENT, "cell": "gru"}),
    "transformer": ("transformer", TRANSFORMER, "transformer", TRANSFORMER),
    "feed-forward": ("embedding", {}, "feed_forward", {"units": 8, "context_size": 3}),
}
BEAM = BeamSearch(3, 0.6, 0.3, 2, no_repeat_ngram_size=2)
SAMPLING = SamplingSearch(samples=2)


def make(name):
    encoder_type, encoder_options, decoder_type, decoder_options = PAIRS[name]
    keras.utils.set_random_seed(4)
    encoder = ENCODERS[encoder_type](8, embedding=8, **encoder_options)
    attention = {"score": "scaled_dot" if decoder_type == "transformer" else "general"}
    decoder = DECODERS[decoder_type](
        7, encoder.depth, encoder.final_depth, embedding=8, attention=attention, **decoder_options
    )
    model = Seq2Seq(encoder, decoder)
    model.build()
    for weight in model.weights:  # far from uniform, so that hypotheses differ
        weight.assign(weight * 2.0)
    return model


@pytest.fixture(scope="module", params=PAIRS)
def model(request):
    return make(request.param)


def uncached(model, memory, length):
    """Steps that keep the tokens alone, and unroll the whole decoder over them every time."""

    def step(tokens, state):
        here = keras.ops.equal(keras.ops.arange(length), state["position"][:, None])
        read = keras.ops.where(here, tokens[:, None], state["read"])
        memory = state["memory"]
        each = read.shape[0] // memory["mask"].shape[0]
        repeated = keras.tree.map_structure(lambda x: keras.ops.repeat(x, each, axis=0), memory)
        logits, alignments = model.decoder.unroll(read, repeated)
        gather = keras.ops.cast(here, logits.dtype)[..., None]
        logits, alignment = (keras.ops.sum(x * gather, axis=1) for x in (logits, alignments))
        new = {"memory": state["memory"], "read": read, "position": state["position"] + 1}
        return logits, new, alignment

    empty = keras.ops.zeros((SOURCE.shape[0], length), dtype="int32")
    return step, {"memory": memory, "read": empty, "position": empty[:, 0]}


def test_phrases_hold_and_their_score_is_forced():
    """Also where phrases compete with the limit, and rows have different phrases."""
    model = make("transformer")
    phrases = [[[4, 5, 4]], [[6, 5], [4, 4]], [[5] * 3, [6] * 3]]
    limits = np.array([5, 9, 7])
    result = arrays(model.search(SOURCE, BeamSearch(3, 0.6), limits, phrases=padded(*phrases)))
    for row, n in np.ndindex(result.lengths.shape):
        if not result.lengths[row, n]:
            continue
        ids = result.ids[row : row + 1, n]
        text = ",".join(map(str, ids[0]))
        for phrase in phrases[row]:
            assert ",".join(map(str, phrase)) in text
        score = float(model.score(SOURCE[row : row + 1], ids)[0])
        assert result.log_probabilities[row, n] == close_to(score, roundings=1000)
    assert (result.lengths[:, 0] > 0).all()


# Each sample copies the cache that the hypotheses of a beam share; only Transformers have one.
@pytest.mark.parametrize(
    ("model", "search"),
    [*((name, BEAM) for name in PAIRS), ("transformer", SAMPLING)],
    indirect=["model"],
)
def test_reported_is_forced_and_cached_is_uncached(model, search):
    prefix = np.array([[PAD], [5], [PAD]])
    result = arrays(model.search(SOURCE, search, LIMITS, prefix=prefix))
    assert (result.ids[1, :, 0] == 5).all()
    for n in range(result.ids.shape[1]):
        teacher_forced = model.score(SOURCE, result.ids[:, n])
        assert_close(result.log_probabilities[:, n], teacher_forced, roundings=1000)
    step, state = uncached(model, model.encoder(SOURCE), LIMITS.max())
    again = arrays(search(step, state, LIMITS, prefix=prefix))
    np.testing.assert_array_equal(result.ids, again.ids)
    assert_close(result.scores, again.scores, roundings=1000)


def test_batched_is_one_by_one(model):
    batched = arrays(model.search(SOURCE, BEAM, LIMITS))
    for row in range(3):
        one = slice(row, row + 1)
        real = SOURCE[one, : (SOURCE[row] != PAD).sum()]
        alone = arrays(model.search(real, BEAM, LIMITS[one]))
        np.testing.assert_array_equal(batched.ids[row, :, : LIMITS[row]], alone.ids[0])
        assert_close(batched.scores[row], alone.scores[0], roundings=1000)
        assert BOS not in batched.ids[row]
