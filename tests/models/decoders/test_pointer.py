import itertools

import keras
import numpy as np
import pytest

from regard.models.decoders import PointerDecoder
from regard.models.vocabulary import BOS, EOS, FIRST_POSITION, PAD
from tests.models.attention import batches
from tests.models.decoders.conftest import Reference
from tests.models.tensors import gradients, numpy
from tests.tolerances import assert_close

# Two rows of three and two points: the chosen ones, one step late.
TOKENS = np.array([[BOS, 6, 4, 5], [BOS, 5, 4, PAD]], "int32")
VARIANTS = [
    {},
    {"cell": "gru", "visits": "once"},
    {"layers": 2, "glimpse": True, "visits": "any"},
    {"cell": "gru", "layers": 2, "glimpse": True},
    {"score": "dot", "glimpse": True, "clip": 2.0, "visits": "once"},
    {"score": {"type": "concat", "units": 3}, "clip": 10.0, "visits": "once"},
    {"score": "general", "final_depth": 0, "visits": "any"},
]
every_variant = pytest.mark.parametrize("settings", VARIANTS, ids=str)


def make(**settings):
    keras.utils.set_random_seed(3)
    settings = {"units": 5, "final_depth": 6, **settings}
    decoder = PointerDecoder(5, **settings)
    decoder.build()
    random = np.random.default_rng(5)  # far from uniform
    for weight in decoder.weights:
        weight.assign(weight + random.normal(size=weight.shape) * 0.5)
    return decoder


def created(settings, memory, **changes):
    decoder = make(**settings, **changes)
    return decoder, memory(states=2 if decoder.settings["final_depth"] else 0)


def allowed(visits, points, visited):
    """The valid next ids after ``visited``."""
    left = [i for i in range(points) if i not in visited]
    if visits == "all":
        return [FIRST_POSITION + i for i in left] or [EOS]
    ends = [EOS] if visited or not points else []
    return ends + [FIRST_POSITION + i for i in (range(points) if visits == "any" else left)]


class Pointing(Reference):
    """Vinyals et al. 2015, §2.3, in NumPy's float64 for one row, step by step."""

    def __init__(self, decoder):
        super().__init__(decoder)
        self.settings = {**decoder.settings, "residual": False}
        self.decoder = decoder

    def scores(self, part, query):
        layer = getattr(self.decoder, part)
        weights = [numpy(weight) for weight in layer.score.weights]
        known = np.concatenate([self.weights["last"], self.values])
        name = self.settings["score"]
        name = name["type"] if isinstance(name, dict) else name
        result = batches.scores(name, query[None, None], known[None], weights)
        return result[0, 0], known

    def steps(self, tokens):
        points, visited, logits, alignments = len(self.values), [], [], []
        for token in tokens:
            if token >= FIRST_POSITION:
                visited.append(token - FIRST_POSITION)
            last = token - FIRST_POSITION
            x = self.values[last] if token >= FIRST_POSITION else self.weights["first"][0]
            hidden = self.advance(x, np.zeros(0))
            choices = [id - EOS for id in allowed(self.settings["visits"], points, visited)]
            if self.settings["glimpse"]:
                scores, known = self.scores("glimpse", hidden)
                weights = np.exp(scores[choices]) / np.exp(scores[choices]).sum()
                context = weights @ known[choices]
                hidden = np.tanh(np.concatenate([context, hidden]) @ self.weights["combine/kernel"])
            scores, _ = self.scores("pointer", hidden)
            if self.settings["clip"]:
                scores = self.settings["clip"] * np.tanh(scores)
            step = np.full(4 + points, -np.inf)
            step[[EOS + i for i in choices]] = scores[choices]
            logits.append(step)
            probabilities = np.exp(step) / np.exp(step).sum()
            alignments.append(probabilities[FIRST_POSITION:])
        return np.array(logits), np.array(alignments)


@every_variant
def test_equals_the_paper(settings, memory):
    decoder, source_memory = created(settings, memory)
    logits, alignments = (numpy(x) for x in decoder.unroll(TOKENS, source_memory))
    assert logits.shape == (2, 4, 7)
    for row, steps in enumerate((4, 3)):  # the second row is over after two points
        one = keras.tree.map_structure(lambda x, row=row: x[row], source_memory)
        reference = Pointing(decoder)
        reference.start(one)
        expected, weights = reference.steps(TOKENS[row, :steps])
        width, points = expected.shape[1], weights.shape[1]
        there = np.isfinite(expected)
        result = logits[row, :steps, :width]
        assert_close(result[there], expected[there])
        assert (result[~there] < -1e8).all()
        assert (logits[row, :steps, width:] < -1e8).all()
        assert_close(alignments[row, :steps, :points], weights)
        assert (alignments[row, :, points:] == 0).all()


@every_variant
def test_steps_equal_unroll(settings, memory):
    """With two hypotheses per row that share one memory."""
    decoder, source_memory = created(settings, memory)
    tokens = np.repeat(TOKENS, 2, axis=0)
    tokens[1] = [BOS, 4, 6, 5]
    repeated = keras.tree.map_structure(lambda x: np.repeat(x, 2, axis=0), source_memory)
    logits, alignments = (numpy(x) for x in decoder.unroll(tokens, repeated))
    state = decoder.start(source_memory)
    shared = state.pop("memory")
    state = keras.tree.map_structure(lambda x: keras.ops.repeat(x, 2, axis=0), state)
    for t in range(4):
        step, state, alignment = decoder.step(tokens[:, t], {**state, "memory": shared})
        assert_close(step, logits[:, t])
        assert_close(alignment, alignments[:, t])


@pytest.mark.parametrize("visits", ["all", "once", "any"])
def test_valid_next_positions(visits, memory):
    decoder = make(visits=visits)
    source_memory = memory()
    for row, points in enumerate((3, 2)):
        one = keras.tree.map_structure(lambda x, row=row: x[row : row + 1], source_memory)
        for length in range(points + 1):
            for visited in itertools.permutations(range(points), length):
                tokens = np.array([[BOS, *(FIRST_POSITION + i for i in visited)]], "int32")
                last = numpy(decoder.unroll(tokens, one)[0])[0, -1]
                valid = np.flatnonzero(last > -1e8).tolist()
                assert valid == allowed(visits, points, visited)


@pytest.mark.parametrize("visits", ["all", "once", "any"])
def test_a_row_of_padding_can_only_end(visits, memory):
    source_memory = memory()
    source_memory["mask"] = source_memory["mask"] & [[True], [False]]
    logits, alignments = map(numpy, make(visits=visits).unroll(TOKENS[:, :1], source_memory))
    assert np.flatnonzero(logits[1, 0] > -1e8).tolist() == [EOS]
    assert (alignments[1] == 0).all()


@every_variant
def test_padding_changes_nothing(settings, memory):
    decoder, source_memory = created(settings, memory)
    wide = {
        **source_memory,
        "values": np.pad(source_memory["values"], [(0, 0), (0, 2), (0, 0)]),
        "mask": np.pad(source_memory["mask"], [(0, 0), (0, 2)]),
    }
    logits, alignments = decoder.unroll(TOKENS, source_memory)
    more, wider = decoder.unroll(TOKENS, wide)
    assert_close(more[:, :, :7], logits)
    assert_close(wider[:, :, :3], alignments)
    assert (numpy(more)[:, :, 7:] < -1e8).all()


def test_dropout_changes_no_valid_position(memory):
    decoder, source_memory = make(dropout=0.5, layers=2, glimpse=True), memory()
    still = numpy(decoder.unroll(TOKENS, source_memory)[0])
    dropped = numpy(decoder.unroll(TOKENS, source_memory, training=True)[0])
    np.testing.assert_array_equal(dropped < -1e8, still < -1e8)


@every_variant
def test_gradients_are_finite_and_reach_every_weight(settings, memory):
    decoder, source_memory = created(settings, memory, dropout=0.2)
    targets = np.array([[6, 4, 5, 3], [5, 4, 3, 0]])

    def value():
        logits, _ = decoder.unroll(TOKENS, source_memory, training=True)
        logp = keras.ops.take_along_axis(keras.ops.log_softmax(logits), targets[..., None], -1)
        return -keras.ops.sum(logp[..., 0] * (targets != PAD))

    assert float(value()) < 100  # no invalid target
    result = gradients(value, layer=decoder)
    for weight, gradient in zip(decoder.trainable_weights, result, strict=True):
        assert np.isfinite(gradient).all()
        # If every point must be visited, the end is never one of several choices.
        always_zero = decoder.visits == "all" and weight.path.endswith("last")
        assert np.any(gradient) != always_zero, weight.path
