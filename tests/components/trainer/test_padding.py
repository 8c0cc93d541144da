"""A device whose part of a batch is padding alone, for there are fewer rows than devices.

What it finds counts nothing, for it is weighted by its number of units: 0 times what is no number
would still be no number.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
import yaml

from components.trainer.optimizer import compile_model
from components.trainer.team import Team
from components.trainer.together import Together
from models import tasks
from pipeline import starters
from pipeline.config.sections import config_of
from tests.components.trainer import devices
from tests.components.trainer.records import write

SHAPES = {
    "captioning": {"source": [128, 128, 3]},
    "pointer": {"source": [None, 3]},
    "similarity": {"first": [None], "second": [None], "score": []},
    "summarisation": {"source": [None]},
    "translation": {"source": [None]},
}
FLOATS = {"pointer": ("source",), "similarity": ("score",)}


def padding(task, rows, length):
    """A part of a batch as the shares of devices make it of nothing."""
    shapes = SHAPES[task] if task == "similarity" else {**SHAPES[task], "target": [None]}
    return {
        name: tf.zeros(
            [rows, *(length if size is None else size for size in shape)],
            tf.float32 if name in FLOATS.get(task, ()) else tf.int32,
        )
        for name, shape in shapes.items()
    }


@pytest.mark.parametrize("name", tasks.TASKS)
def test_a_starter_s_model_finds_nothing_in_padding(name):
    sections = config_of(name).model_validate(yaml.safe_load(starters.text(name, "a")))
    config = sections.model_dump(mode="json")
    task = tasks.get(name)
    pieces = dict.fromkeys(task.description.text_features, 20)
    model = task.build(config["model"], config["training"], pieces)
    compile_model(model, config["training"])
    team = Team(tf.distribute.MirroredStrategy(["CPU:0"]))
    together = Together(team, model, lambda: None)
    together.begin()
    for rows, length in ((1, 1), (2, 5)):
        found = together._found(model, padding(name, rows, length)).numpy()
        np.testing.assert_array_equal(found, np.zeros_like(found))


@pytest.mark.slow
def test_three_devices_and_one_row(tmp_path):
    """Two have padding alone, and the training is that of one device."""
    write(tmp_path / "train.gz", [([4, 5, 6], [7, 8])])
    write(tmp_path / "eval.gz", [([4, 5], [7, 9, 8])])
    training = {"changes": {"max_steps": 3, "evaluate_every": 1}, "split": "train"}
    arguments = (str(tmp_path), str(tmp_path), json.dumps({"three": training}))
    subprocess.run(
        [sys.executable, "-m", "tests.components.trainer.devices", *arguments],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", devices.DEVICES: "3"},
        check=True,
    )
    (tmp_path / "one").mkdir()
    model, _ = devices.train(tmp_path / "one", tmp_path, None, **training)
    three = np.load(tmp_path / "three" / "weights.npz")
    for weight, name in zip(model.get_weights(), three.files, strict=True):
        np.testing.assert_allclose(three[name], weight, rtol=0, atol=1e-6)
