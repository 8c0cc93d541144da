"""Two trainings of one seed give the same weights, however many threads there are."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from pathlib import Path
import numpy as np
import tensorflow as tf
from components.trainer.seeding import seed
from tests.components.trainer import tiny

training = tiny.settings(deterministic=True)
found = []
for name in ("one", "two"):
    seed(training)
    tiny._MADE.clear()
    model, _ = tiny.train(Path(sys.argv[1]) / name, deterministic=True)
    found.append(model.get_weights())
assert all(np.array_equal(one, two) for one, two in zip(*found, strict=True))
try:
    tf.random.Generator.from_non_deterministic_state()
except RuntimeError as error:
    assert "determinism" in str(error)
else:
    raise AssertionError("chance is still allowed")
"""


def test_deterministic_trainings_are_the_same(tmp_path):
    # A process of its own, since what is ruled out there stays ruled out.
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root), "TF_CPP_MIN_LOG_LEVEL": "3"}
    environment.pop("TF_NUM_INTRAOP_THREADS", None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
