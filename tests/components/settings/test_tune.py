from regard.components.settings.tune import TuneConfig
from regard.models.settings.training import TrainingConfig

SPACE = {"training.learning_rate": {"log": [0.001, 0.1]}}


def with_defaults(metric="loss", **options):
    training = TrainingConfig.model_validate(
        {"max_epochs": 9, "early_stopping": {"metric": metric}}
    )
    return TuneConfig.model_validate({"search_space": SPACE, **options}).with_defaults(training)


def test_defaults_follow_from_the_training_and_the_algorithm():
    tune = with_defaults()
    assert (tune.algorithm, tune.max_trials) == ("hyperband", None)
    assert (tune.max_epochs, tune.factor, tune.iterations) == (9, 3, 1)
    assert tune.objective == "loss"
    tune = with_defaults("bleu", algorithm="bayesian")
    assert (tune.max_trials, tune.max_epochs) == (20, None)
    assert tune.objective == "bleu"
    tune = with_defaults("bleu", objective="ter", max_epochs=5, factor=2)
    assert (tune.objective, tune.max_epochs, tune.factor) == ("ter", 5, 2)
