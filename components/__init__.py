"""The nodes of a pipeline as TFX components, for pipelines of your own.

The names are imported when they are used: TFX takes seconds.
"""

from importlib import import_module
from typing import Any

# The names by the module that defines them.
_MODULES = {
    "regard.components.data_nodes": (
        "CorpusGen",
        "ExampleValidator",
        "Preprocess",
        "TokenizerTrainer",
    ),
    "regard.components.nodes": (
        "Evaluator",
        "Predictor",
        "Pusher",
        "Reporter",
        "ServingCheck",
        "Trainer",
    ),
    "regard.components.tuner.component": ("Tuner",),
}
__all__ = sorted(name for names in _MODULES.values() for name in names)


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
