"""TFX components, and what joins them to other components of TFX; imported at their first use."""

from __future__ import annotations

import importlib
from typing import Any

# The names of each module, which imports TensorFlow or TFX.
_MODULES = {
    "regard.components.data_nodes": (
        "CorpusGen",
        "ExampleValidator",
        "Preprocess",
        "TokenizerTrainer",
    ),
    "regard.components.interop.dataset": ("tf_dataset",),
    "regard.components.interop.evaluation": ("eval_config",),
    "regard.components.interop.notebook": ("register_visualizations",),
    "regard.components.interop.own_model": ("load_tokenizers", "write_contract"),
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
_OWNERS = {name: module for module, names in _MODULES.items() for name in names}
__all__ = sorted(_OWNERS)


def __getattr__(name: str) -> Any:
    if name not in _OWNERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_OWNERS[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
