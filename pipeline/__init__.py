"""The Python API of pipelines: what ``regard run`` and ``regard predict`` do.

The names are imported when they are used, so the import itself costs nothing.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.pipeline.api import (
        Config,
        RunResult,
        UserError,
        load_config,
        load_model,
        predict,
        run,
    )

__all__ = ["Config", "RunResult", "UserError", "load_config", "load_model", "predict", "run"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from regard.pipeline import api

    return getattr(api, name)
