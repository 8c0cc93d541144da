import keras
import pytest

from models.schedules import schedule


def rate(settings, step):
    return float(schedule(2.0, settings)(step - 1))  # Keras counts steps from 0


@pytest.mark.parametrize(
    ("settings", "step", "expected"),
    [
        ({"type": "constant", "warmup_steps": 0}, 1, 2.0),
        ({"type": "constant", "warmup_steps": 10}, 5, 1.0),
        ({"type": "constant", "warmup_steps": 10}, 99, 2.0),
        ({"type": "inverse_sqrt", "warmup_steps": 100}, 50, 1.0),
        ({"type": "inverse_sqrt", "warmup_steps": 100}, 100, 2.0),
        ({"type": "inverse_sqrt", "warmup_steps": 100}, 400, 1.0),
        ({"type": "exponential", "start_step": 10, "decay_steps": 5, "rate": 0.5}, 10, 2.0),
        ({"type": "exponential", "start_step": 10, "decay_steps": 5, "rate": 0.5}, 15, 1.0),
        ({"type": "exponential", "start_step": 10, "decay_steps": 5, "rate": 0.5}, 20, 0.5),
    ],
)
def test_rates(settings, step, expected):
    assert rate(settings, step) == pytest.approx(expected, rel=1e-5)


def test_config_round_trip():
    one = schedule(0.1, {"type": "inverse_sqrt", "warmup_steps": 7})
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(one))
    assert float(again(30)) == float(one(30))
