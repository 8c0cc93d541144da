"""A small translator with the weights that it began with, exported as the Trainer exports it."""

import keras

from regard.components.settings.trainer import TrainerConfig
from regard.components.trainer.export import export, read_tokenizers
from regard.models import tasks

TRANSFORMER = {"type": "transformer", "layers": 2, "heads": 2, "feed_forward": 8}
TRAINING = {"precision": "float32", "label_smoothing": 0.0}
SEARCH = {"type": "greedy", "max_source_length": 20}


def config(encoder=TRANSFORMER, decoder=TRANSFORMER):
    score = "scaled_dot" if decoder["type"] == "transformer" else "general"
    model = {
        "embedding": 8,
        "dropout": 0.1,
        "tie_embeddings": "none",
        "pretrained": None,
        "encoder": encoder,
        "decoder": decoder,
        "attention": {"score": score, "alignment": "soft"},
    }
    return {"model": model, "training": TRAINING, "search": SEARCH}


def created(folder, **sides):
    """Writes ``saved`` into a folder with tokenizers; the parts are Transformers by default."""
    keras.utils.set_random_seed(3)  # before the tokenizers, which would be lost
    task, settings = tasks.get("translation"), TrainerConfig(task="translation", **config(**sides))
    tokenizers = read_tokenizers(folder, task.description.text_features)
    tokens = {name: int(t.vocab_size()) for name, t in tokenizers.items()}
    model = task.build(settings.model, settings.training, tokens)
    for weight in model.weights:
        weight.assign(weight * 2.0)
    export(model, task, settings, tokenizers, folder / "saved")
    return task.served_model(model, tokenizers, settings.model, settings.search)
