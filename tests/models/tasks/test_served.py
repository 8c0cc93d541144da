"""What is written of a module that is served."""

import tensorflow as tf

from tests.models.tasks.exported import made
from tests.models.tasks.tokenizers import write_tokenizers


def test_every_weight_is_stored_once_and_no_layer_is(tmp_path):
    write_tokenizers(tmp_path)
    served = made(tmp_path)
    prefix = str(tmp_path / "saved" / "variables" / "variables")
    stored = {name for name, _ in tf.train.list_variables(prefix)}
    weights = {f"weights/{i}/.ATTRIBUTES/VARIABLE_VALUE" for i in range(len(served.module.weights))}
    assert stored == weights | {"_CHECKPOINTABLE_OBJECT_GRAPH"}
    assert not hasattr(tf.saved_model.load(str(tmp_path / "saved")), "_model")
