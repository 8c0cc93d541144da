"""The same weights give the same answers on JAX as on TensorFlow."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json, sys
import numpy as np, keras
from models.decoders import RecurrentDecoder
from models.encoders import RecurrentEncoder
from models.search import BeamSearch, GreedySearch
from models.seq2seq import Seq2Seq

source = np.array([[5, 6, 7, 3], [4, 3, 0, 0]], "int32")
target = np.array([[4, 5, 3, 0], [7, 6, 5, 3]], "int32")
encoder = RecurrentEncoder(9, embedding=6, units=8, layers=2)
decoder = RecurrentDecoder(8, encoder.depth, encoder.final_depth, embedding=6, units=8, layers=2)
model = Seq2Seq(encoder, decoder)
model.build()
random = np.random.default_rng(0)
model.set_weights([random.normal(size=w.shape) for w in model.get_weights()])
logits, alignments = model.teacher_force(source, target)
beam = model.search(source, BeamSearch(3, 0.6), np.array([6, 7]))
greedy = model.search(source, GreedySearch(), np.array([6, 7]))
model.compile(optimizer=keras.optimizers.SGD(0.1))
history = model.fit({"source": source, "target": target}, epochs=2, verbose=0, shuffle=False)
arrays = [logits, alignments, *beam, *greedy, history.history["nll"]]
assert keras.backend.backend() == sys.argv[1]
print(json.dumps([np.asarray(keras.ops.convert_to_numpy(a), "float64").tolist() for a in arrays]))
"""


def outputs(backend):
    environment = {**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
    environment["JAX_PLATFORMS"] = "cpu"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, backend],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_jax_equals_tensorflow():
    pytest.importorskip("jax", reason="jax is not installed (pip install regard[dev])")
    for ours, theirs in zip(outputs("tensorflow"), outputs("jax"), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-4)
