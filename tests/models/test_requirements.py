"""The layers work where only Keras, NumPy and a backend are installed."""

import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import importlib, pkgutil, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1:]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())

from regard.models.attention import ALIGNMENTS, SCORES, Attention, MultiHeadAttention, Pointer
from regard.models import decoders, encoders, layers, reinforce

for module in pkgutil.iter_modules(layers.__path__):
    importlib.import_module(f"regard.models.layers.{module.name}")

import numpy as np
import keras

assert keras.backend.backend() == "jax"
query, memory = np.ones((2, 3, 4), "float32"), np.ones((2, 5, 4), "float32")
for score in SCORES:
    print(score, *Attention(score)(query, memory)[0].shape)
for alignment in ALIGNMENTS:
    print(alignment, *Attention("dot", alignment)(query, memory)[0].shape)
print("heads", *MultiHeadAttention(2, 4)(query, memory)[0].shape)
print("pointer", *Pointer()(query, memory).shape)
"""


def distributions(*names):
    """The distributions and everything that they require, extras aside."""
    closure, waiting = set(), set(names)
    while waiting:
        name = waiting.pop()
        closure.add(name)
        try:
            lines = [line for line in requires(name) or [] if "extra ==" not in line]
        except PackageNotFoundError:  # for another Python or system
            continue
        required = {re.match(r"[\w.-]+", line)[0].lower().replace("_", "-") for line in lines}
        waiting |= required - closure
    return closure


def test_the_layers_need_no_other_packages():
    pytest.importorskip("jax", reason="jax is not installed (pip install regard[dev])")
    allowed = distributions("keras", "numpy", "annotated-types", "jax") | {"regard"}
    blocked = [
        module
        for module, owners in packages_distributions().items()
        if not {owner.lower().replace("_", "-") for owner in owners} & allowed
    ]
    assert {"pydantic", "tensorflow", "tfx", "matplotlib", "typer"} <= set(blocked)
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, *blocked],
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    shapes = dict(line.split(" ", 1) for line in result.stdout.splitlines())
    assert shapes.pop("pointer") == "2 3 5"
    assert len(shapes) == 8 + 7 + 1
    assert set(shapes.values()) == {"2 3 4"}
