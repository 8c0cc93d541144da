"""Modules that must not import TFX or TensorFlow, which take seconds and memory."""

import subprocess
import sys

import pytest

WORKERS = (  # of Beam
    "regard.components.corpus_gen.example_writer",
    "regard.components.example_validator.shard_scan",
    "regard.components.tokenizer_trainer.sampling",
    "regard.components.preprocess.transform_graph",
    "regard.components.predictor.decode",
)


PROFILES = (  # of `regard validate` and `regard schedule`
    "regard.components.data.profiles",
    "regard.components.example_validator.training_profile",
)


@pytest.mark.parametrize(("modules", "absent"), [(WORKERS, "tfx"), (PROFILES, "tensorflow")])
def test_imports(modules, absent):
    code = f"import sys, {', '.join(modules)}\nprint([m for m in sys.modules if m == {absent!r}])"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert completed.stdout.strip() == "[]", completed.stderr
