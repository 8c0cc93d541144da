"""Imports without garbage collection."""

import contextlib
import gc
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def without_gc() -> Iterator[None]:
    """Disable garbage collection while the block imports TensorFlow or TFX.

    The imports create a million objects that live as long as the process; without repeated
    collections they take two thirds of the time. The new objects are frozen, so that later
    collections skip them too. If the block imports nothing, nothing is frozen.
    """
    was_enabled, modules = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if len(sys.modules) > modules:
            gc.freeze()
        if was_enabled:
            gc.enable()
