"""Imports of TensorFlow and what comes with it, in two thirds of the time.

Imports nothing of ours, so that the serving check can load it by its path.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """While the block imports, no garbage is looked for; what it leaves is never looked through.

    TFX and TensorFlow make a million objects that live as long as the process. Python would walk
    through all of them again and again, at every import and in every loop after it. Where all is
    imported already nothing is kept, for then it would be garbage.
    """
    collecting, modules = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if len(sys.modules) > modules:
            gc.freeze()
        if collecting:
            gc.enable()
