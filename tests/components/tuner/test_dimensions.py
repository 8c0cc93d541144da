from types import SimpleNamespace

from regard.components.settings.tune import TuneConfig
from regard.components.tuner.dimensions import dimensions
from regard.models import tasks
from regard.models.settings.training import TrainingConfig


def dimensions_of(space, **model):
    section = tasks.describe("translation").model.model_validate(model)
    sections = SimpleNamespace(model=section, training=TrainingConfig())
    return dimensions(TuneConfig.model_validate({"search_space": space}), sections)


def test_number_type_follows_from_the_key():
    rate, dropout, layers, tokens, warmup, clip = dimensions_of(
        {
            "training.learning_rate": {"log": [1e-4, 1e-2]},
            "model.dropout": {"linear": [0, 0.5]},
            "model.encoder.layers": {"linear": [1, 3]},
            "training.batch_tokens": {"log": [1024, 8192], "step": 2},
            "training.schedule.warmup_steps": {"linear": [0, 100], "step": 50},
            "training.clip_norm": {"choice": [None, 1.0, 5]},
        }
    )
    assert (rate.low, rate.high, rate.log, rate.integer) == (1e-4, 1e-2, True, False)
    assert (dropout.log, dropout.integer) == (False, False)
    assert layers.integer
    assert (tokens.log, tokens.integer, tokens.step) == (True, True, 2)
    assert (warmup.integer, warmup.step) == (True, 50)
    assert clip.choices == [None, 1.0, 5]


def test_choices_of_whole_sections():
    choices = [{"score": "general"}, {"score": "additive", "alignment": "local_p"}]
    (attention,) = dimensions_of({"model.attention": {"choice": choices}})
    assert attention.choices[0] == {"score": "general"}


def test_keys_of_the_items_of_a_list():
    kernel, cell = dimensions_of(
        {
            "model.encoder.0.kernel_size": {"linear": [2, 5]},
            "model.encoder.1.cell": {"choice": ["gru", "rnn"]},
        },
        encoder=[{"type": "convolutional", "units": 64}, {"units": 32}],
    )
    assert (kernel.key, kernel.integer, kernel.low) == ("model.encoder.0.kernel_size", True, 2)
    assert cell.choices == ["gru", "rnn"]
