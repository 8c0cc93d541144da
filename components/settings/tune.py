"""The section ``tune``: the search space of `regard tune`, and how it is searched."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, JsonValue
from typing_extensions import Self

from regard.core.bounds import Positive, PositiveFloat
from regard.models.settings.base import Listed, Section
from regard.models.settings.training import TrainingConfig

DEFAULT_TRIALS = 20  # of random and Bayesian search
DEFAULT_FACTOR = 3  # of Hyperband
MAX_SEED = 2**32 - 2  # NumPy takes 32 bits, and KerasTuner gets the seed plus one


class Range(Section):
    """The values of one key: exactly one of linear, log and choice.

    Attributes:
        linear: [LOW, HIGH], sampled uniformly.
        log: [LOW, HIGH], sampled uniformly on a logarithmic scale.
        choice: A list of values of any type, including whole sections.
        step: Difference between two values of linear, or ratio of two values of log. null:
            continuous.
    """

    linear: Listed[float] | None = None
    log: Listed[float] | None = None
    choice: Listed[JsonValue] | None = None
    step: PositiveFloat | None = None


class TuneConfig(Section):
    """The hyperparameter search of `regard tune`; other commands ignore it.

    Attributes:
        search_space: The keys of the sections model and training to search, with their ranges.
        algorithm: Search algorithm. hyperband: many short trials, the best of which continue (Li
            2018); bayesian: what a Gaussian process rates best; random: random values.
        objective: Measure to optimise on the eval split: loss, or a metric of the task such as
            bleu. null: early_stopping.metric.
        max_epochs: Maximum epochs of a trial. null: training.max_epochs.
        max_minutes: Maximum training time of a trial in minutes. null: training.max_minutes.
        iterations: Hyperband: repetitions of the whole algorithm. null: 1.
        max_failed_trials: Consecutive failed trials after which the search stops.
        seed: Random seed of the search; training.seed is not affected.
    """

    search_space: Annotated[
        dict[str, Range],
        Field(min_length=1, examples=[{"training.learning_rate": {"log": [0.0001, 0.01]}}]),
    ]
    algorithm: Literal["hyperband", "bayesian", "random"] = "hyperband"
    objective: str | None = None
    max_trials: Positive | None = Field(
        default=None,
        description=f"Number of trials; null: {DEFAULT_TRIALS}. Hyperband derives it from "
        "max_epochs and factor.",
    )
    max_epochs: Positive | None = None
    max_minutes: PositiveFloat | None = None
    factor: Annotated[int, Field(ge=2)] | None = Field(
        default=None,
        description="Hyperband: one trial in `factor` continues, for `factor` times the epochs. "
        f"null: {DEFAULT_FACTOR}.",
    )
    iterations: Positive | None = None
    max_failed_trials: Positive = 3
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] = 17

    def algorithm_problems(self, limit: int | None) -> Iterator[tuple[str, str]]:
        """Yield the names and the messages of keys that do not fit the algorithm.

        Args:
            limit: ``training.max_epochs``.
        """
        epochs, factor = self.max_epochs or limit, self.factor or DEFAULT_FACTOR
        if self.algorithm != "hyperband":
            for name in ("factor", "iterations"):
                if getattr(self, name) is not None:
                    yield name, f"applies to hyperband, not to {self.algorithm}; remove it"
        elif self.max_trials is not None:
            message = "hyperband derives it from max_epochs, factor and iterations; remove it"
            yield "max_trials", message
        elif epochs is None:
            yield "max_epochs", "hyperband needs it because training.max_epochs is null; set it"
        elif epochs < factor:
            name = "max_epochs" if self.factor is None else "factor"
            yield name, f"{epochs} epochs are less than factor: {factor}; use algorithm: random"
        if self.max_epochs is not None and limit is not None and self.max_epochs > limit:
            yield "max_epochs", f"{self.max_epochs} exceeds training.max_epochs: {limit}; use less"

    def with_defaults(self, training: TrainingConfig) -> Self:
        """Return the section with the defaults that other sections and keys determine."""
        stop = training.early_stopping
        defaults: dict[str, str | int | None] = {"objective": stop.metric if stop else "loss"}
        if self.algorithm == "hyperband":
            defaults |= {"max_epochs": training.max_epochs}
            defaults |= {"factor": DEFAULT_FACTOR, "iterations": 1}
        else:
            defaults |= {"max_trials": DEFAULT_TRIALS}
        missing = {name: value for name, value in defaults.items() if getattr(self, name) is None}
        return self.model_copy(update=missing)
