"""The same weights give the same numbers on JAX and on PyTorch as on TensorFlow."""

import functools
import importlib
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import keras
import numpy as np
import pytest

from tests.marks import slow_except
from tests.tolerances import assert_close

# Modules of tests.models.backends, and how many roundings of float32 may add up in their numbers.
PARTS = {
    "attention": 100,
    "images": 100,
    "pointer": 1000,
    "recurrent": 2000,
    "searches": 1000,
    "seq2seq": 2000,
    "similarity": 1000,
    "span": 1000,
    "transformer": 200,
}
# The others compile for long.
QUICK_PARTS = ("attention", "images", "searches", "seq2seq", "transformer")


def compiled(function):
    """The function as one graph on JAX, which compiles every single operation otherwise.

    New states of random generators are lost.
    """
    if keras.backend.backend() != "jax":
        return function
    import jax

    def stateless(*arguments):
        with keras.StatelessScope(collect_losses=True):
            return function(*arguments)

    return jax.jit(stateless)


@functools.cache  # the parts draw from generators of their own
def outputs(part):
    """What a part computes on this process's backend, as plain data."""
    result = importlib.import_module(f"tests.models.backends.{part}").outputs()
    return [np.asarray(keras.ops.convert_to_numpy(x), "float64").tolist() for x in result]


@pytest.fixture(scope="module", params=["jax", "torch"])
def theirs(request):
    """The numbers of all selected parts on another backend, computed in one process."""
    backend = request.param
    if find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed (pip install {backend})")
    items = [item for item in request.session.items if item.path == request.path]
    every = [item.callspec.params for item in items]
    selected = [each["part"] for each in every if each["theirs"] == backend]
    environment = {**os.environ, "KERAS_BACKEND": backend, "JAX_PLATFORMS": "cpu"}
    environment["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"  # compiling is all that takes time here
    program = (
        "import json, sys, keras; from tests.models.test_backends import outputs; "
        "assert keras.backend.backend() == sys.argv[1]; "
        "print(json.dumps({part: outputs(part) for part in sys.argv[2:]}))"
    )
    completed = subprocess.run(
        [sys.executable, "-c", program, backend, *selected],
        cwd=Path(__file__).parents[2],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout.splitlines()[-1])


@pytest.mark.parametrize("part", slow_except(QUICK_PARTS, PARTS))
def test_other_backends_equal_tensorflow(theirs, part):
    assert keras.backend.backend() == "tensorflow"
    ours = outputs(part)
    assert len(ours) == len(theirs[part])
    for one, other in zip(ours, theirs[part], strict=True):
        assert_close(one, other, roundings=PARTS[part])
