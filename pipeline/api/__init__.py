"""What the commands do, from Python; the names are imported from ``regard``."""

from regard.core.errors import UserError
from regard.pipeline.api.models import evaluate, load_model, predict, score
from regard.pipeline.api.pipelines import (
    compare,
    load_config,
    report,
    run,
    schedule,
    tune,
    validate,
)
from regard.pipeline.config import Config
from regard.pipeline.runs.launch import RunResult

__all__ = [
    "Config",
    "RunResult",
    "UserError",
    "compare",
    "evaluate",
    "load_config",
    "load_model",
    "predict",
    "report",
    "run",
    "schedule",
    "score",
    "tune",
    "validate",
]
