"""Imports of TensorFlow and what comes with it, in two thirds of the time.

Imports nothing of ours, so that the serving check can load it by its path.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator
from typing import Any, cast

# Keras imports it where it finds it, and SciPy's statistics with it, for wrappers that nothing
# here uses.
_UNUSED = "sklearn"


@contextlib.contextmanager
def lean() -> Iterator[None]:
    """While the block imports, no garbage is looked for, and scikit-learn is not found.

    TensorFlow alone makes some hundred thousand objects that live as long as the process. Python
    would walk through all of them again and again, at every import and in every loop after it; so
    what the block leaves is never looked through.
    """
    collecting, hides = gc.isenabled(), _UNUSED not in sys.modules
    gc.disable()
    if hides:
        cast(dict[str, Any], sys.modules)[_UNUSED] = None  # to import it raises ImportError
    try:
        yield
    finally:
        if hides:
            del sys.modules[_UNUSED]
        gc.freeze()
        if collecting:
            gc.enable()
