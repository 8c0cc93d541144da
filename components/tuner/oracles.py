"""KerasTuner's oracles: what says which values are tried next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras_tuner
from keras_tuner.oracles import (
    BayesianOptimizationOracle,
    HyperbandOracle,
    RandomSearchOracle,
)

from components.tuner.sizes import hyperband_trials
from components.tuner.space import Space

# Hyperparameters that Hyperband sets beside those of the space.
EPOCHS, CONTINUED = "tuner/epochs", "tuner/trial_id"


def make(tune: Mapping[str, Any], space: Space) -> keras_tuner.Oracle:
    """The oracle of a search.

    Args:
        tune: ``algorithm``, ``objective`` and its ``direction`` (``min`` or ``max``), ``seed``;
            ``trials`` for random and bayesian search, ``epochs``, ``factor`` and ``iterations``
            for hyperband.
        space: what is searched.
    """
    shared = {
        "objective": keras_tuner.Objective(tune["objective"], tune["direction"]),
        "hyperparameters": space.hyperparameters(),
        "seed": 1 + tune["seed"],  # KerasTuner takes 0 for none
        # The search counts failures itself, so that it can tell what to do about them.
        "max_consecutive_failed_trials": None,
    }
    if tune["algorithm"] == "hyperband":
        sizes = (tune["epochs"], tune["factor"], tune["iterations"])
        oracle = HyperbandOracle(
            max_epochs=sizes[0], factor=sizes[1], hyperband_iterations=sizes[2], **shared
        )
        # It would end by itself, but TFX asks for the best of so many.
        oracle.max_trials = hyperband_trials(*sizes)
    else:
        kinds = {"random": RandomSearchOracle, "bayesian": BayesianOptimizationOracle}
        oracle = kinds[tune["algorithm"]](max_trials=tune["trials"], **shared)
    oracle.verbose = 0
    return oracle
