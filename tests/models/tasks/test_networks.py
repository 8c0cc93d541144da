"""The networks of all tasks need no TensorFlow."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

SCRIPT = """
import sys
from regard.core.yaml_text import from_yaml
from regard.models import tasks
from regard.pipeline.config.config import config_class
from regard.pipeline.config.reference import starter
import regard.components.trainer.batches

for name in tasks.TASKS.own:
    config = config_class(name).model_validate(from_yaml(starter(name, "a")))
    network = tasks.get_network(name)
    sizes = dict.fromkeys(network.description.text_features, 20)
    assert network.build(config.model, config.training, sizes).count_params() > 0
    assert "tensorflow" not in sys.modules, name
"""


@pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed")
def test_models_are_built_on_jax_without_tensorflow():
    environment = {**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", SCRIPT]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr[-2000:]
