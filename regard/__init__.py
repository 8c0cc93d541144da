"""Regard: attention models as a TFX pipeline, from data to TensorFlow Serving.

The names of the Python API are imported when they are used, so the import itself costs nothing.
The subpackages are ``pipeline``, ``components``, ``models``, ``serving`` and ``core``. In the
repository they are folders at the top level, and this folder links to them.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.core.errors import UserError
    from regard.pipeline.api.models import evaluate, load_model, predict, score
    from regard.pipeline.api.pipelines import (
        Config,
        RunResult,
        compare,
        load_config,
        report,
        run,
        run_schedule,
        schedule,
        tune,
        validate,
    )

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
    "run_schedule",
    "schedule",
    "score",
    "tune",
    "validate",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"} - {"Any", "TYPE_CHECKING"})


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from regard.core.provenance import package_version

        return package_version() or "unknown"
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from regard.core import errors
    from regard.pipeline.api import models, pipelines

    owner = next(module for module in (errors, models, pipelines) if hasattr(module, name))
    return getattr(owner, name)
