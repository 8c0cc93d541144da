"""Frozen parts and low-rank changes: what is trained, and that it equals Keras's LoRA."""

import re
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from regard.components.trainer import warm_start
from regard.components.trainer.batches import Batches
from regard.components.trainer.checkpoint import Checkpoints
from regard.components.trainer.export import read_warm_start
from regard.components.trainer.fine_tuning import (
    report_trained_weights,
    set_trainable,
    trained_parameters,
)
from regard.components.trainer.optimizer import compile_model
from regard.components.trainer.optimizer_state import adam_moments
from regard.components.trainer.starting_models import read_starting_model
from regard.components.trainer.tensor_batches import epoch_dataset
from regard.components.trainer.training_loop import fit
from regard.core import events
from regard.core.errors import UserError
from regard.models.settings.fine_tuning import LoraConfig
from tests.components.trainer.pairs import write_pairs
from tests.components.trainer.tiny_training import assert_equal_arrays
from tests.components.trainer.warm_start_models import (
    ARCHITECTURES,
    LSTM,
    NETWORK,
    NEW,
    OLD,
    TRANSFORMER,
    build,
    save,
    starting_model,
    trainer_config,
    with_training,
)
from tests.marks import slow
from tests.tolerances import assert_close

SHORT = {"max_steps": 6, "max_epochs": None, "evaluate_every": 3, "warm_start": None}
LORA = {"rank": 3, "alpha": 12.0}


@pytest.fixture(scope="module")
def batches(tmp_path_factory):
    random = np.random.default_rng(0)
    pairs = [(list(i), list(i)) for n in range(40) for i in [random.integers(4, 40, 3 + n % 5)]]
    path = write_pairs(tmp_path_factory.mktemp("data") / "rows.arrow", pairs)
    return Batches([path], NETWORK, 200, 20, seed=5)


@pytest.fixture
def log(tmp_path, monkeypatch):
    path = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(path))
    return path


def built(architecture, **training):
    """A model whose weights are not selected yet."""
    return build(trainer_config(architecture, **training), OLD)


def frozen(model):
    return {weight.path for weight in model.weights if not weight.trainable}


def train(model, batches, config, folder):
    return fit(model, batches, batches, config.training, Checkpoints(folder / "ck"), str(folder))


NAMES = {  # names, architecture: the frozen weights by a regular expression
    ("encoder", "transformer"): "/transformer_encoder",
    ("encoder", "lstm"): "/recurrent_encoder",
    ("recurrent_encoder", "lstm"): "/recurrent_encoder",
    ("embedding", "lstm"): "/embedding/",
    ("decoder/layer_0", "lstm"): "/luong_decoder[^/]*/layer_0",
    ("decoder/attention", "transformer"): "_decoder.*/attention",  # with its norm
    ("layer_0/cross/output", "transformer"): "/layer_0/cross/output/",
    ("bias", "transformer"): "bias$",
    ("feed_forward/kernel", "transformer"): "/feed_forward/.*kernel$",
}


@pytest.mark.parametrize(("name", "architecture"), NAMES)
def test_names_select_the_weights_of_parts(name, architecture):
    model = built(ARCHITECTURES[architecture])
    set_trainable(model, NETWORK, SimpleNamespace(freeze=(name,), lora=None))
    expected = {w.path for w in model.weights if re.search(NAMES[name, architecture], w.path)}
    assert 0 < len(expected) < len(model.weights)
    assert frozen(model) == expected


@pytest.mark.parametrize(
    ("freeze", "lora", "where", "message"),
    [
        (("embeddings",), None, "training.freeze", "'embeddings'. Did you mean embedding?"),
        (("attention/encoder",), None, "training.freeze", "No weight of the model belongs to"),
        (("encoder", "cod"), None, "training.freeze", "belongs to 'cod'"),
        (("encoder", "decoder"), None, "training.freeze", "freezes all weights"),
        ((), LoraConfig(rank=32), "training.lora.rank", "its change of rank 32"),
        (("kernel",), LoraConfig(rank=2), "training.lora.rank", "No kernel that is not frozen"),
    ],
)
def test_impossible_selections_are_refused(freeze, lora, where, message):
    model = built(LSTM)
    with pytest.raises(UserError) as error:
        set_trainable(model, NETWORK, SimpleNamespace(freeze=freeze, lora=lora))
    assert message in error.value.message
    assert error.value.where == where
    if "belongs" in message:
        listed = "recurrent_encoder, embedding, table, layer_0, kernel, recurrent_kernel, bias"
        assert listed in error.value.remedy


def prepared(architecture, folder, serialized=OLD, **training):
    """A model that starts from another one, its configuration, and the earlier weights."""
    config = trainer_config(architecture, **{**SHORT, "warm_start": {}, **training})
    plain = with_training(config, freeze=[], lora=None)
    old = build(plain, OLD, seed=7)
    origin = starting_model(save(folder / "saved", old, plain, OLD))
    model = build(config, serialized, seed=2)
    checkpoints = Checkpoints(folder / "ck")
    start = warm_start.initialize_weights(
        model, NETWORK, config, read_starting_model(origin), serialized, checkpoints
    )
    report_trained_weights(model, NETWORK, config.training, start)
    return model, config, old.get_weights()


@pytest.mark.parametrize("architecture", ["lstm", slow("transformer")])
def test_frozen_weights_do_not_change(architecture, batches, tmp_path, log):
    options = {"freeze": ["encoder", "decoder/layer_0"], "weight_decay": 0.1}
    model, config, old = prepared(ARCHITECTURES[architecture], tmp_path, **options)
    train(model, batches, config, tmp_path)
    trained = 0
    for weight, before in zip(model.weights, old, strict=True):
        if weight.trainable:
            trained += before.size
            assert (np.asarray(weight) != before).any(), weight.path
        else:
            assert np.asarray(weight).tobytes() == before.tobytes(), weight.path
    shapes = [moment.shape for moment in adam_moments(model.optimizer)]
    assert shapes == 2 * [weight.shape for weight in model.trainable_weights]
    assert trained == trained_parameters(model)
    text = f"training.freeze: {trained:,} parameters are trained; the model has"
    assert text in log.read_text()
    assert "frozen weights keep" not in log.read_text()


def test_a_change_of_zero_changes_nothing_and_training_changes_kernels_by_its_rank(
    batches, tmp_path, log
):
    options = {"lora": LORA, "gradient_accumulation_steps": 2}
    model, config, old = prepared(LSTM, tmp_path, **options)
    assert_equal_arrays(model.get_weights(), old)
    model.optimizer.adapters.merge()
    assert_equal_arrays(model.get_weights(), old)
    train(model, batches, config, tmp_path)
    changed = set()
    for weight, before in zip(model.weights, old, strict=True):
        change = np.asarray(weight, np.float64) - before
        if change.any():
            changed.add(weight.path.partition("/")[2])
            ranks = np.linalg.matrix_rank(change, tol=1e-4 * np.abs(change).max())
            # The moving average mixes the changes of six steps.
            assert 0 < np.max(ranks) <= 6 * LORA["rank"], weight.path
    assert {re.sub(r"_\d+/", "/", path) for path in changed} == {
        "recurrent_encoder/layer/kernel",
        "recurrent_encoder/layer/recurrent_kernel",
        "luong_decoder/layer/kernel",
        "luong_decoder/layer/recurrent_kernel",
        "luong_decoder/attention/score/kernel",
        "luong_decoder/bridge/h/kernel",
        "luong_decoder/bridge/c/kernel",
        "luong_decoder/combine/kernel",
    }
    sizes = (2 * (16 + 32), 2 * (8 + 32), 16 + 64, 32 + 64, 16 + 16, 16 + 16, 16 + 16, 32 + 16)
    count = 3 * sum(sizes)
    assert trained_parameters(model) == count
    assert f"training.lora: {count:,} parameters are trained" in log.read_text()


def test_it_trains_as_the_lora_of_keras_and_is_merged(batches, tmp_path):
    """All kernels of the Transformer are those of dense layers, which Keras can adapt as well."""
    model, config, old = prepared(TRANSFORMER, tmp_path, lora=LORA, clip_norm=0.5)
    plain = with_training(config, lora=None)
    unmerged = build(plain, OLD, seed=3)
    unmerged.set_weights(old)
    kernels = {id(one[0]): one for one in model.optimizer.adapters._kernels}
    layers = [one for one in unmerged._flatten_layers() if isinstance(one, keras.layers.Dense)]
    ours = [one for one in model._flatten_layers() if isinstance(one, keras.layers.Dense)]
    for weight in unmerged.weights:
        weight.trainable = False
    for layer, other in zip(layers, ours, strict=True):
        layer.enable_lora(LORA["rank"], LORA["alpha"])
        layer.lora_kernel_a.assign(kernels[id(other.kernel)][2])
    compile_model(unmerged, plain.training)
    for one in (model, unmerged):
        assert one.evaluate(epoch_dataset(batches), verbose=0, return_dict=True)
        one.fit(epoch_dataset(batches, 0), epochs=1, shuffle=False, verbose=0)
    for layer, other in zip(layers, ours, strict=True):
        _, _, a, b = kernels[id(other.kernel)]
        assert_close(a, layer.lora_kernel_a)
        assert_close(b, layer.lora_kernel_b)
        assert np.abs(np.asarray(b)).max() > 1e-3
    inputs = next(iter(epoch_dataset(batches)))
    expected = np.asarray(unmerged(inputs)["logits"])
    assert_close(np.asarray(model(inputs)["logits"]), expected)
    # What is exported is an ordinary model.
    exported = read_warm_start(save(tmp_path / "exported", model, config, OLD), "tiny@2")
    again = build(plain, OLD, seed=4)
    warm_start.load_weights(again, NETWORK, plain, OLD, exported)
    assert_close(np.asarray(again(inputs)["logits"]), expected)


@pytest.mark.parametrize("precision", ["mixed_float16", slow("mixed_bfloat16")])
def test_mixed_precision(precision, batches, tmp_path):
    model, config, old = prepared(TRANSFORMER, tmp_path, lora=LORA, precision=precision)
    state = train(model, batches, config, tmp_path)
    assert state.history[-1]["loss"] < state.history[0]["loss"]
    changed = [(np.asarray(w) != o).any() for w, o in zip(model.weights, old, strict=True)]
    assert changed == [weight.trainable for weight in model.weights]


@pytest.mark.parametrize("key", ["lora", "freeze"])
def test_frozen_random_weights_are_reported(key, log, tmp_path):
    value = {"lora": LORA, "freeze": ["embedding"]}[key]
    config = trainer_config(LSTM, **{**SHORT, key: value})
    model = build(config, OLD)
    report_trained_weights(model, NETWORK, config.training, {})
    assert f"training.{key}: frozen weights keep their initial values" in log.read_text()
    log.unlink()
    prepared(LSTM, tmp_path, NEW, **{key: value})
    assert re.search(rf"training.{key}: vectors of \d+ new tokens", log.read_text())
