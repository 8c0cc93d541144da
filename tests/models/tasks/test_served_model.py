"""What is written of a module that is served."""

import pytest
import tensorflow as tf

from regard.models.tasks.served_model import with_signature
from tests.models.tasks.exported import created
from tests.models.tasks.tokenizers import write_tokenizers


def test_every_weight_is_stored_once_and_no_layer_is(tmp_path):
    write_tokenizers(tmp_path)
    small = {"encoder": {"type": "embedding"}, "decoder": {"type": "luong", "units": 4}}
    served = created(tmp_path, **small)
    prefix = str(tmp_path / "saved" / "variables" / "variables")
    stored = {name for name, _ in tf.train.list_variables(prefix)}
    weights = {f"weights/{i}/.ATTRIBUTES/VARIABLE_VALUE" for i in range(len(served.module.weights))}
    assert stored == weights | {"_CHECKPOINTABLE_OBJECT_GRAPH"}
    assert not hasattr(tf.saved_model.load(str(tmp_path / "saved")), "_model")


def test_a_signature_is_one_graph_for_all_batches_and_rewrites_no_python():
    traced = []

    @with_signature([tf.TensorSpec([None], tf.float32)])
    def twice(x):
        traced.append(x)
        return 2.0 * x

    assert twice(tf.constant([1.0])).numpy().tolist() == [2.0]
    assert twice(tf.constant([1.0, 3.0])).numpy().tolist() == [2.0, 6.0]
    assert len(traced) == 1

    @with_signature([tf.TensorSpec([], tf.float32)])
    def chosen(x):
        return x if x > 0 else -x

    with pytest.raises(TypeError, match="AutoGraph"):
        chosen(tf.constant(1.0))
