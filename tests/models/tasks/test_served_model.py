"""What is written of a module that is served."""

import numpy as np
import pytest
import tensorflow as tf

from regard.components.settings.serving import ServingConfig
from regard.components.settings.trainer import TrainerConfig
from regard.components.trainer.export import RebuiltModel, export, write_warm_start
from regard.models import tasks
from regard.models.tasks import served_model
from regard.models.tasks.served_model import quantize, with_signature
from regard.serving import saved_model
from tests.marks import slow
from tests.models.tasks.exported import build, config, created
from tests.models.tasks.tokenizers import write_tokenizers
from tests.tolerances import close_to


def test_every_weight_is_stored_once_and_no_layer_is(tmp_path):
    write_tokenizers(tmp_path)
    small = {"encoder": {"type": "embedding"}, "decoder": {"type": "luong", "units": 4}}
    served = created(tmp_path, **small)
    prefix = str(tmp_path / "saved" / "variables" / "variables")
    stored = {name for name, _ in tf.train.list_variables(prefix)}
    weights = {f"weights/{i}/.ATTRIBUTES/VARIABLE_VALUE" for i in range(len(served.module.weights))}
    assert stored == weights | {"_CHECKPOINTABLE_OBJECT_GRAPH"}
    assert not hasattr(tf.saved_model.load(str(tmp_path / "saved")), "_model")


@pytest.mark.parametrize("shape", [(5, 40), (40, 5), (3, 4, 20)])
def test_quantized_weights_differ_by_half_a_step_of_their_channel(shape):
    weight = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    weight[weight == weight.max()] = 50.0  # spoils its own channel only
    weight[..., 0] = 0.0
    integers, scales = quantize(weight)
    assert (integers.dtype, scales.dtype, integers.shape) == (np.int8, np.float32, shape)
    assert sorted(scales.shape)[-1] == scales.size == max(shape)
    assert (np.abs(integers * scales - weight) <= scales * 0.501).all()
    assert np.median(scales) < 0.03


@pytest.mark.parametrize("kind", ["luong", slow("transformer")])
def test_an_int8_model_computes_with_rounded_weights(kind, tmp_path, monkeypatch):
    """It gives what a float32 model with these weights does, and can be built again."""
    monkeypatch.setattr(served_model, "_MIN_QUANTIZED", 50)
    write_tokenizers(tmp_path)
    network = {}
    if kind == "luong":
        network["encoder"] = {"type": "recurrent", "units": 4}
        network["decoder"] = {"type": "luong", "units": 8}
    settings = TrainerConfig(
        task="translation", **config(**network), serving={"quantization": "int8"}
    )
    model, tokenizers = build(tmp_path, settings, 3)
    for weight in model.weights:
        weight.assign(weight * 2.0)
    sources = [{"source": text} for text in ("abc", "", "b a c")]
    export(model, tasks.get_network("translation"), settings, tokenizers, tmp_path / "int8")
    serialized = {side: (tmp_path / f"{side}.model").read_bytes() for side in tokenizers}
    write_warm_start(tmp_path / "int8", model, settings, serialized)
    rebuilt = RebuiltModel(tmp_path / "int8", "int8")
    weights = list(zip(model.get_weights(), rebuilt.model.get_weights(), strict=True))
    assert all(np.abs(old - new).max() <= np.abs(old).max() / 253 for old, new in weights)
    assert sum((old != new).any() for old, new in weights) > 5
    plain = settings.model_copy(update={"serving": ServingConfig()})
    export(rebuilt.model, tasks.get_network("translation"), plain, tokenizers, tmp_path / "float")
    int8, wide = (saved_model.load(tmp_path / name) for name in ("int8", "float"))
    for signature in ("serving_default", "align"):
        pairs = zip(int8.predict(signature, sources), wide.predict(signature, sources), strict=True)
        for one, other in pairs:
            assert one.hypothesis == other.hypothesis
            assert one.score == close_to(other.score)
    files = [
        tmp_path / name / "variables/variables.data-00000-of-00001" for name in ("int8", "float")
    ]
    small, large = (file.stat().st_size for file in files)
    assert small < 0.8 * large  # the biases and the scales of these tiny matrices weigh much


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
