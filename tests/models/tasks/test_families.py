"""Each model family, from the configuration to a SavedModel with equal outputs."""

import numpy as np
import pytest
import tensorflow as tf

from regard.components.settings.trainer import TrainerConfig
from regard.components.trainer.optimizer import compile_model
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.text_to_text.settings import TextToTextModelConfig
from tests.marks import slow_except
from tests.models.tasks.exported import (
    assert_equal_outputs,
    build,
    save_signatures,
    servable,
    served,
)
from tests.models.tasks.tokenizers import write_tokenizers
from tests.models.tensors import train
from tests.tolerances import close_to

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
            "encoder": {"cell": "gru", "units": 6},
            "decoder": {"type": "bahdanau", "cell": "gru", "units": 8, "layers": 2},
            "attention": {"alignment": "hard"},
        },
        {**BEAM, "coverage_penalty": 0.2},
    ),
    "luong, split values, sampled": (
        {
            "encoder": {"units": 6},
            "decoder": {"type": "luong", "units": 8},
            "attention": {
                "score": {"type": "low_rank", "rank": 3},
                "alignment": {"type": "hard", "inference": "sample"},
                "values": "split",
            },
        },
        {"type": "greedy", "max_source_length": 20},
    ),
    "bahdanau, deep score, thresholded, split values": (
        {
            "encoder": {"units": 6},
            "decoder": {"type": "bahdanau", "units": 8},
            "attention": {
                "score": {"type": "additive", "layers": 2},
                "alignment": {"type": "thresholded", "threshold": 0.2},
                "values": "split",
            },
        },
        BEAM,
    ),
    "transformer, split values": (
        {
            "encoder": {"units": 6},
            "decoder": {"type": "transformer", **SMALL},
            "attention": {"values": "split"},
        },
        BEAM,
    ),
    "transformer read by luong, local-p": (
        {
            "encoder": {"type": "transformer", **SMALL},
            "decoder": {"type": "luong", "units": 8, "residual": True},
            "attention": {"score": "location", "alignment": {"type": "local_p", "window": 2}},
        },
        {"type": "sampling", "top_k": 5, "max_source_length": 20},
    ),
    "stack, heads": (
        {
            "encoder": [
                {"type": "convolutional", "units": 6, "layers": 1, "positions": "learned"},
                {"type": "recurrent", "units": 4, "cell": "rnn"},
                {"type": "transformer", "positions": "alibi", **SMALL},
            ],
            "decoder": {"type": "bahdanau", "cell": "rnn", "units": 8},
            "attention": {"heads": 2, "score": "additive"},
        },
        BEAM,
    ),
    "transformer, relative": (
        {
            "encoder": {"type": "transformer", "positions": "relative", "max_distance": 2, **SMALL},
            "decoder": {"type": "transformer", "positions": "relative", "max_distance": 2, **SMALL},
        },
        BEAM,
    ),
    "feed-forward, attention": (
        {
            "encoder": {"type": "embedding"},
            "decoder": {"type": "feed_forward", "units": 8, "context_size": 3, "smoothing": 1},
        },
        BEAM,
    ),
    "feed-forward, convolutions": (
        {
            "encoder": {"type": "convolutional", "units": 6, "layers": 2, "pooling": True},
            "decoder": {"type": "feed_forward", "units": 8, "pooling": "max"},
            "attention": None,
        },
        BEAM,
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


@pytest.mark.parametrize("name", slow_except(["feed-forward, attention"], FAMILIES))
def test_trained_a_little_and_exported(name, tmp_path):
    sections, search = FAMILIES[name]
    config = {
        "model": TextToTextModelConfig(embedding=8, dropout=0.0, **sections).model_dump(),
        "training": TrainingConfig(learning_rate=0.03).model_dump(),
        "search": search,
    }
    trainer_config = TrainerConfig(task="translation", **config)
    write_tokenizers(tmp_path)
    model, tokenizers = build(tmp_path, trainer_config, seed=5)
    compile_model(model, trainer_config.training)
    random = np.random.default_rng(0)
    rows = {
        side: random.integers(4, int(tokenizers[side].vocab_size()), (8, tokens)).astype("int32")
        for side, tokens in (("source", 6), ("target", 5))
    }
    losses = train(model, rows, 6)
    assert losses[-1] < losses[0]

    translator = served(tmp_path, trainer_config, model, tokenizers, save=False)
    module = translator.module
    save_signatures(translator, ["align"], tmp_path / "saved")
    assert servable(tmp_path / "saved")
    align = tf.saved_model.load(str(tmp_path / "saved")).signatures["align"]
    batched = align(source=tf.constant(SENTENCES))
    assert_equal_outputs(batched, module.align(tf.constant(SENTENCES)))
    for row, sentence in enumerate(SENTENCES):
        alone = align(source=tf.constant([sentence]))
        assert alone["translation"][0] == batched["translation"][row]
        assert float(alone["score"][0]) == close_to(
            float(batched["score"][row]), roundings=1000, nan_ok=not sentence
        )
    assert align(source=tf.constant([], tf.string))["translation"].shape == (0,)
    alignments = batched["alignment"].numpy().sum(-1)
    assert (alignments.max() == 0.0) == (sections.get("attention", {}) is None)
