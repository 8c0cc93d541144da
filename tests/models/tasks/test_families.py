"""Each family of models, from the YAML's sections to a SavedModel that answers alike."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from components.trainer.export import export, read_tokenizers
from components.trainer.optimizer import compile_model
from models import tasks
from models.settings.text_to_text import Model
from pipeline.config.training import Training
from serving.ops import core_ops, unsupported, used_ops
from tests.models.tasks.tokenizers import write_tokenizers

SENTENCES = ["a cat sat", "the dog ran far away", "", "unseen ☃ words"]
BEAM = {"type": "beam", "beam_size": 3, "length_penalty": 0.6, "max_source_length": 20}
SMALL = {"layers": 2, "heads": 2, "feed_forward": 12}
FAMILIES = {
    "transformer, rotary": (
        {
            "tie_embeddings": "output",
            "encoder": {"type": "transformer", "positions": "rotary", **SMALL},
            "decoder": {"type": "transformer", "activation": "swiglu", "norm": "post", **SMALL},
        },
        BEAM,
    ),
    "bahdanau, hard": (
        {
            "encoder": {"cell": "gru", "units": 6, "dropout_type": "variational"},
            "decoder": {"type": "bahdanau", "cell": "gru", "units": 8, "layers": 2},
            "attention": {"alignment": "hard"},
        },
        {**BEAM, "coverage_penalty": 0.2},
    ),
    "transformer read by luong, local-p": (
        {
            "encoder": {"type": "transformer", **SMALL},
            "decoder": {"type": "luong", "units": 8, "residual": True},
            "attention": {"score": "location", "alignment": {"type": "local_p", "window": 2}},
        },
        {"type": "sampling", "top_k": 5, "max_source_length": 20},
    ),
    "no attention": (
        {
            "encoder": {"units": 6, "reverse": True},
            "decoder": {"type": "luong", "units": 8},
            "attention": None,
        },
        {"type": "greedy", "max_source_length": 20},
    ),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_trained_a_little_and_exported(name, tmp_path):
    sections, search = FAMILIES[name]
    config = {
        "model": Model(embedding=8, dropout=0.0, **sections).model_dump(),
        "training": Training(learning_rate=0.03).model_dump(),
        "search": search,
    }
    keras.utils.set_random_seed(5)
    write_tokenizers(tmp_path)
    task = tasks.get("translation")
    tokenizers = read_tokenizers(tmp_path, task.description.text_features)
    pieces = {side: int(t.vocab_size()) for side, t in tokenizers.items()}
    model = task.build(config["model"], config["training"], pieces)
    compile_model(model, config["training"])
    random = np.random.default_rng(0)
    rows = {
        "source": random.integers(4, pieces["source"], (8, 6)).astype("int32"),
        "target": random.integers(4, pieces["target"], (8, 5)).astype("int32"),
    }
    history = model.fit(rows, epochs=6, batch_size=8, verbose=0).history
    assert history["plain_loss"][-1] < history["plain_loss"][0]

    export(model, task, config, tokenizers, tmp_path / "saved")
    ops = used_ops(tmp_path / "saved")
    assert not unsupported(ops, core_ops(ops), "2.14")
    module = task.served(model, tokenizers, config).module
    align = tf.saved_model.load(str(tmp_path / "saved")).signatures["align"]
    together = align(source=tf.constant(SENTENCES))
    for key, value in module.align(tf.constant(SENTENCES)).items():
        if value.dtype == tf.string:
            assert together[key].numpy().tolist() == value.numpy().tolist()
        else:
            np.testing.assert_allclose(together[key], value, atol=1e-5)
    for row, sentence in enumerate(SENTENCES):
        alone = align(source=tf.constant([sentence]))
        assert alone["translation"][0] == together["translation"][row]
        assert float(alone["score"][0]) == pytest.approx(float(together["score"][row]), abs=1e-4)
    assert align(source=tf.constant([], tf.string))["translation"].shape == (0,)
    looks = together["alignment"].numpy().sum(-1)
    assert (looks.max() == 0.0) == (name == "no attention")
