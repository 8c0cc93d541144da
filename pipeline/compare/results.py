"""The results of a comparison."""

from __future__ import annotations

from pydantic import BaseModel

from regard.components.evaluator.results import (
    BaselineResult,
    LengthBucket,
    MetricResult,
)

WAITING = "waiting"
FINISHED = "finished"


class ModelResult(BaseModel):
    """The state of one model, and its figures if it has been evaluated."""

    label: str
    state: str
    recipe: str | None = None  # equal for models that differ only in the seed
    data: str | None = None  # a digest of all rows
    predictions: str | None = None
    pipeline: str | None = None
    log: str | None = None
    error: str | None = None
    run: str | None = None
    parameters: int | None = None
    training_seconds: float | None = None
    epochs: int | None = None
    steps: int | None = None
    stop_reason: str | None = None
    perplexity: float | None = None
    metrics: dict[str, MetricResult] = {}
    baselines: list[BaselineResult] = []
    test_rows: int | None = None
    sentences_per_second: float | None = None
    decode_batch_size: int | None = None
    device: str | None = None
    by_length: list[LengthBucket] = []
    length_unit: str | None = None
    history: list[dict[str, int | float]] = []


class ComparisonResults(BaseModel):
    """The results of all models, and of baselines that need no model.

    Attributes:
        best: the label of the model that is significantly the best, by metric.
        models: the models with their states, metrics and figures.
        baselines: the metrics of systems that need no model.
        directory: the folder with the results, the table, the plots, the logs.
    """

    name: str
    best: dict[str, str] = {}
    models: list[ModelResult]
    baselines: list[ModelResult] = []
    directory: str | None = None

    def __repr__(self) -> str:
        states = {model.label: model.state for model in self.models}
        return f"ComparisonResults({self.name!r}, models={states}, best={self.best})"

    def to_json(self) -> dict[str, object]:
        """Return what is known, as JSON values."""
        return self.model_dump(exclude_unset=True)
