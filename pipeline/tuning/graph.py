"""The graph of a search: the pipeline's own up to its data, and the Tuner."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from components.files import source_digest
from components.tuner.component import Tuner
from components.tuner.sizes import hyperband_trials
from components.tuner.space import Space
from models.metrics import METRICS
from pipeline import keys, machine
from pipeline.config.tune import FACTOR, TRIALS
from pipeline.config.tune_checks import dimensions
from pipeline.graph import TRAINED, pipeline_at
from pipeline.place import here

if TYPE_CHECKING:
    from tfx.orchestration.pipeline import Pipeline

    from components.preprocess import Preprocess
    from pipeline.config import Config
    from pipeline.workspace import Workspace

# What a search can be given more of, or other, without having to begin anew.
_FREE = ("trials", "iterations", "parallel", "threads", "failures")


def create_tuning(config: Config, workspace: Workspace) -> Pipeline:
    """The pipeline of a configuration with a Tuner beside its Trainer.

    Run up to the Tuner, it shares all nodes before it, and what TFX has cached of them, with the
    pipeline that trains.
    """
    place = here(config, workspace)
    given = {
        "task": config.task,
        **{name: json.loads(config.section_json(name)) for name in TRAINED},
        "code": source_digest("components/tuner"),
        "vectors": place.word_vectors,
        "start": place.start,
        "tune": settings(config),
        "space": Space(dimensions(config)).plain(),
    }
    fixed = {name: value for name, value in given["tune"].items() if name not in _FREE}
    key = keys.digest(place.training, json.dumps({**given, "tune": fixed}, sort_keys=True))
    folder = workspace.pipeline(config.name).tuning / key

    def tuner(preprocess: Preprocess) -> Tuner:
        return Tuner(
            examples=preprocess.outputs["transformed_examples"],
            transform_graph=preprocess.outputs["transform_graph"],
            custom_config={**given, "folder": str(folder)},
        )

    # Not added to a pipeline that is made: TFX would give all nodes Beam's arguments once more,
    # and find none of them in its cache.
    return pipeline_at(place, config, tuner)


def settings(config: Config) -> dict[str, Any]:
    """The section ``tune`` as the search takes it, without what is searched."""
    tune = config.tune
    assert tune is not None
    stop = config.training.early_stop
    objective = tune.objective or (stop.metric if stop else "loss")
    rising = objective in METRICS and METRICS[objective].higher_is_better
    sizes = Sizes.of(config)
    at_once = min(tune.parallel, sizes.count())
    return {
        **dataclasses.asdict(sizes),
        "algorithm": tune.algorithm,
        "objective": objective,
        "direction": "max" if rising else "min",
        "minutes": tune.minutes,
        "parallel": tune.parallel,
        "threads": max(1, machine.cores() // at_once) if at_once > 1 else None,
        "failures": tune.failures,
        "seed": tune.seed,
    }


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How large a search is; what does not go with its algorithm is None."""

    trials: int | None
    epochs: int | None
    factor: int | None
    iterations: int | None

    @classmethod
    def of(cls, config: Config) -> Sizes:
        """With the defaults filled in."""
        tune = config.tune
        assert tune is not None
        if tune.algorithm == "hyperband":
            epochs = tune.epochs or config.training.max_epochs
            return cls(None, epochs, tune.factor or FACTOR, tune.iterations or 1)
        return cls(tune.trials or TRIALS, tune.epochs, None, None)

    def count(self) -> int:
        """The trials in all."""
        if self.trials is not None:
            return self.trials
        assert self.epochs is not None
        assert self.factor is not None
        assert self.iterations is not None
        return hyperband_trials(self.epochs, self.factor, self.iterations)
