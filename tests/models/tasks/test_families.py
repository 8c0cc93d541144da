"""Each model family, from the configuration to a SavedModel with equal outputs."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from regard.components.settings.trainer import TrainerConfig
from regard.components.trainer.export import export, read_tokenizers
from regard.components.trainer.optimizer import compile_model
from regard.models import tasks
from regard.models.settings.text_to_text import TextToTextModelConfig
from regard.models.settings.training import TrainingConfig
from regard.serving.supported_ops import core_ops, unsupported, used_ops
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
        "model": TextToTextModelConfig(embedding=8, dropout=0.0, **sections).model_dump(),
        "training": TrainingConfig(learning_rate=0.03).model_dump(),
        "search": search,
    }
    trainer_config = TrainerConfig(task="translation", **config)
    keras.utils.set_random_seed(5)
    write_tokenizers(tmp_path)
    task = tasks.get("translation")
    tokenizers = read_tokenizers(tmp_path, task.description.text_features)
    tokens = {side: int(t.vocab_size()) for side, t in tokenizers.items()}
    model = task.build(trainer_config.model, trainer_config.training, tokens)
    compile_model(model, TrainingConfig(learning_rate=0.03))
    random = np.random.default_rng(0)
    rows = {
        "source": random.integers(4, tokens["source"], (8, 6)).astype("int32"),
        "target": random.integers(4, tokens["target"], (8, 5)).astype("int32"),
    }
    history = model.fit(rows, epochs=6, batch_size=8, verbose=0).history
    assert history["plain_loss"][-1] < history["plain_loss"][0]

    export(model, task, trainer_config, tokenizers, tmp_path / "saved")
    ops = used_ops(tmp_path / "saved")
    assert not unsupported(ops, core_ops(ops), "2.14")
    module = task.served_model(
        model, tokenizers, trainer_config.model, trainer_config.search
    ).module
    align = tf.saved_model.load(str(tmp_path / "saved")).signatures["align"]
    batched = align(source=tf.constant(SENTENCES))
    for key, value in module.align(tf.constant(SENTENCES)).items():
        if value.dtype == tf.string:
            assert batched[key].numpy().tolist() == value.numpy().tolist()
        else:
            np.testing.assert_allclose(batched[key], value, atol=1e-5)
    for row, sentence in enumerate(SENTENCES):
        alone = align(source=tf.constant([sentence]))
        assert alone["translation"][0] == batched["translation"][row]
        assert float(alone["score"][0]) == pytest.approx(float(batched["score"][row]), abs=1e-4)
    assert align(source=tf.constant([], tf.string))["translation"].shape == (0,)
    alignments = batched["alignment"].numpy().sum(-1)
    assert (alignments.max() == 0.0) == (name == "no attention")
