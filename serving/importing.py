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
def lean() -> Iterator[None]:
    """While the block imports, no garbage is looked for, and JAX and scikit-learn are not found.

    JAX is, where it is Keras's backend (``KERAS_BACKEND``).

    TensorFlow alone makes some hundred thousand objects that live as long as the process. Python
    would walk through all of them again and again, at every import and in every loop after it; so
    what the block leaves is never looked through.
    """
    backend, collecting = os.environ.get("KERAS_BACKEND"), gc.isenabled()
    hidden = [name for name in _OPTIONAL if name not in sys.modules and name != backend]
    gc.disable()
    # To import what is None raises ImportError.
    cast(dict[str, Any], sys.modules).update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
        gc.freeze()
        if collecting:
            gc.enable()
