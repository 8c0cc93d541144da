"""Scheduled sampling against a loop of single steps, its schedules, and its gradient."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from regard.models.noise import gumbel_noise
from regard.models.scheduled_sampling import ScheduledSampling
from regard.models.seq2seq import shift
from tests.models.tensors import round_trip
from tests.models.test_seq2seq import SOURCE, TARGET, make
from tests.tolerances import assert_close

ALWAYS = {"schedule": "linear", "steps": 1}  # from the second batch on every token is sampled
PREVIOUS = np.asarray(shift(tf.constant(TARGET)))


def at(batch, **settings):
    layer = ScheduledSampling(**settings)
    layer.seed_generator.state.assign([5, batch])
    return layer


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"schedule": "linear", "steps": 100, "minimum": 0.2}, lambda i: max(0.2, 1 - 0.008 * i)),
        ({"schedule": "exponential", "k": 0.99}, lambda i: 0.99**i),
        ({"schedule": "exponential", "k": 0.9, "minimum": 0.3}, lambda i: max(0.3, 0.9**i)),
        ({"schedule": "inverse_sigmoid", "k": 20.0}, lambda i: 20 / (20 + np.exp(i / 20))),
    ],
)
@pytest.mark.parametrize("batches_per_step", [1, 3])
def test_schedules_follow_the_paper(settings, expected, batches_per_step):
    layer = ScheduledSampling(**settings, batches_per_step=batches_per_step)
    for batch in (0, 1, 2, 50, 99, 100, 1000):
        value = float(layer.target_probability(batch))
        assert value == pytest.approx(expected(batch // batches_per_step), rel=1e-5, abs=1e-7)
    assert round_trip(layer).get_config() == layer.get_config()


def reference(model, memory, seed, batch):
    """Every row of its own, one step at a time, with the Gumbel-max trick."""
    rows, length = PREVIOUS.shape
    result = PREVIOUS.copy()
    for row in range(rows):
        one = {
            name: value[row : row + 1] for name, value in memory.items() if name != "final_states"
        }
        if "final_states" in memory:
            one["final_states"] = [x[row : row + 1] for x in memory["final_states"]]
        state = model.decoder.start(one)
        for t in range(length - 1):
            logits, state, _ = model.decoder.step(tf.constant(result[row : row + 1, t]), state)
            noise = np.asarray(gumbel_noise(1, seed, batch, t, row, np.arange(9)))
            values = np.asarray(logits)[0] + noise
            values[[0, 2, 3]] = -np.inf
            if PREVIOUS[row, t + 1]:
                result[row, t + 1] = values.argmax()
    return result


@pytest.mark.parametrize("pair", ["luong", "bahdanau"])
def test_samples_are_inputs_of_the_next_step(pair):
    model = make(pair)
    memory, layer = model.encode(SOURCE), at(7, **ALWAYS)
    sample = tf.function(lambda: layer(PREVIOUS, memory, decoder=model.decoder))
    result = np.asarray(sample())
    np.testing.assert_array_equal(result, reference(model, memory, 5, 7))
    assert (result != PREVIOUS).any()


def test_a_transformer_samples_after_the_targets_own_tokens():
    model = make("transformer")
    memory = model.encode(SOURCE)
    result = np.asarray(at(7, **ALWAYS)(PREVIOUS, memory, decoder=model.decoder))
    logits = np.asarray(model.decoder.unroll(PREVIOUS, memory)[0])
    expected = PREVIOUS.copy()
    for row, t in zip(*np.nonzero(PREVIOUS[:, 1:]), strict=True):
        values = logits[row, t] + np.asarray(gumbel_noise(1, 5, 7, t, row, np.arange(9)))
        values[[0, 2, 3]] = -np.inf
        expected[row, t + 1] = values.argmax()
    np.testing.assert_array_equal(result, expected)


def test_at_first_no_token_changes_and_coins_are_fair_later():
    model, rows = make(), 400
    previous = np.tile(PREVIOUS[1:], (rows, 1))
    memory = model.encode(np.tile(SOURCE[:1], (rows, 1)))
    layer = at(0, schedule="linear", steps=10)
    ratios = []
    for _ in range(7):
        result = np.asarray(layer(previous, memory, decoder=model.decoder))
        ratios.append((result == previous)[:, 1:].mean())
    assert ratios[0] == 1.0
    assert int(layer.seed_generator.state[1]) == 7
    # A sample may be the target's token too, with a probability of about 1 / 6.
    assert ratios[6] == pytest.approx(0.4 + 0.6 / 6, abs=0.08)


def test_the_gradient_is_that_of_the_mixed_tokens():
    """Of a training step; evaluations read the target's tokens."""
    model = make(scheduled_sampling=ALWAYS)
    plain = make()
    plain.set_weights(model.get_weights())
    model.sampling.seed_generator.state.assign([5, 7])
    inputs = {"source": SOURCE, "target": TARGET}
    mixed = reference(plain, plain.encode(SOURCE), 5, 7)

    @functools.partial(tf.function, autograph=False)
    def gradients():
        with tf.GradientTape() as tape, tf.GradientTape() as other:
            outputs = model(inputs, training=True)
            loss = model.compute_loss(x=inputs, y_pred=outputs)
            logits, _ = plain.decoder.unroll(mixed, plain.encode(SOURCE))
            expected = plain.compute_loss(x=inputs, y_pred={"logits": logits})
        pairs = ((tape, loss, model), (other, expected, plain))
        return [t.gradient(x, [w.value for w in m.trainable_weights]) for t, x, m in pairs]

    for one, expected in zip(*gradients(), strict=True):
        dense = (np.asarray(tf.convert_to_tensor(x)) for x in (one, expected))
        assert_close(*dense)
    assert_close(model(inputs)["logits"], plain(inputs)["logits"])


def test_the_generator_is_all_that_a_resume_needs():
    model = make(scheduled_sampling={"schedule": "exponential", "k": 0.9})
    generator = model.sampling.seed_generator.state
    assert generator.path in {variable.path for variable in model.variables}
    assert generator.path not in {weight.path for weight in model.weights}
    before = [np.asarray(variable) for variable in model.variables]
    runs = []
    for _ in range(2):
        for variable, value in zip(model.variables, before, strict=True):
            variable.assign(value)
        memory = model.encode(SOURCE)
        samples = [
            np.asarray(model.sampling(PREVIOUS, memory, decoder=model.decoder)) for _ in range(12)
        ]
        runs.append(samples)
    np.testing.assert_array_equal(*runs)
    assert not all((draw == PREVIOUS).all() for draw in runs[0])


def test_an_unknown_schedule_is_refused():
    with pytest.raises(
        ValueError, match=r"Unknown schedule 'cosine'\. Choices: exponential, inverse"
    ):
        ScheduledSampling("cosine")
    assert make(scheduled_sampling=None).sampling is None
    copy = round_trip(make(scheduled_sampling=ALWAYS))
    assert copy.sampling.settings["steps"] == 1
    assert isinstance(copy, keras.Model)
