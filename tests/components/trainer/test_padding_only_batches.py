"""A device that gets no rows, only padding, because there are fewer rows than devices.

Its contribution must be zero and not NaN: the weight 0 times NaN would still be NaN.
"""

import numpy as np
import pytest
import tensorflow as tf

from regard.components.trainer.distributed import DistributedTrainStep, StrategyGroup
from regard.components.trainer.optimizer import compile_model
from regard.core.yaml_text import from_yaml
from regard.models import tasks
from regard.pipeline.config.config import config_class
from regard.pipeline.config.reference import starter

SHAPES = {
    "captioning": {"source": [128, 128, 3]},
    "pointer": {"source": [None, 3]},
    "similarity": {"first": [None], "second": [None], "score": []},
    "span": {"passage": [None], "question": [None], "answer": [2]},
    "summarisation": {"source": [None]},
    "translation": {"source": [None]},
}
FLOATS = {"pointer": ("source",), "similarity": ("score",)}


def padding_batch(task, rows, length):
    """A batch without real rows, as sharding creates it."""
    shapes = SHAPES[task] if task in ("similarity", "span") else {**SHAPES[task], "target": [None]}
    return {
        name: tf.zeros(
            [rows, *(length if size is None else size for size in shape)],
            tf.float32 if name in FLOATS.get(task, ()) else tf.int32,
        )
        for name, shape in shapes.items()
    }


@pytest.mark.parametrize("name", tasks.TASKS)
def test_padding_contributes_nothing(name):
    config = config_class(name).model_validate(from_yaml(starter(name, "a")))
    task = tasks.get_network(name)
    sizes = dict.fromkeys(task.description.text_features, 20)
    model = task.build(config.model, config.training, sizes)
    compile_model(model, config.training)
    group = StrategyGroup(tf.distribute.MirroredStrategy(["CPU:0"]))
    step = DistributedTrainStep(group, model, lambda: None)
    step.initialize()
    for rows, length in ((1, 1), (2, 5)):
        contribution = step.device_contribution(model, padding_batch(name, rows, length)).numpy()
        np.testing.assert_array_equal(contribution, np.zeros_like(contribution))
