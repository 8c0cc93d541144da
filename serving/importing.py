"""Imports of TensorFlow and what comes with it, in two thirds of the time.

Imports nothing of ours, so that the serving check can load it by its path.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Iterator
from typing import Any, cast

# What Keras and TensorFlow Lite import where they find it, for what nothing here uses.
_OPTIONAL = ("jax", "sklearn")


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """While the block imports, no garbage is looked for; what it leaves is never looked through.

    TFX and TensorFlow make a million objects that live as long as the process. Python would walk
    through all of them again and again, at every import and in every loop after it.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collecting:
            gc.enable()


@contextlib.contextmanager
def lean() -> Iterator[None]:
    """While the block imports TensorFlow, and no more, JAX and scikit-learn are not found either.

    Others may need what is hidden here: KerasTuner does. JAX is found where it is Keras's backend
    (``KERAS_BACKEND``).
    """
    backend = os.environ.get("KERAS_BACKEND")
    hidden = [name for name in _OPTIONAL if name not in sys.modules and name != backend]
    # To import what is None raises ImportError.
    cast(dict[str, Any], sys.modules).update(dict.fromkeys(hidden))
    try:
        with uncollected():
            yield
    finally:
        for name in hidden:
            del sys.modules[name]
