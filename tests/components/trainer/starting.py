"""Models that trainings start from, as the Trainer makes, exports and takes them."""

import keras
import sentencepiece
import tensorflow as tf

from components.registry.publishing import content_digest
from components.trainer.kept import keep
from components.trainer.optimizer import compile_model
from models import tasks
from pipeline.config.sections import config_of
from tests.models.tasks.tokenizers import trained

WORDS = ["the cat sat", "a dog ran", "some bird flew", "the fish swam", "a cat ran", "one dog sat"]
NEW_WORDS = [*WORDS, "the catfish swam", "birds ran", "dogs", "quick"]
SIDES = ("source", "target")
TASK = tasks.get("translation")
LSTM = {
    "embedding": 16,
    "dropout": 0.0,
    "encoder": {"type": "recurrent", "units": 8},
    "decoder": {"type": "luong", "units": 16},
}
_TRANSFORMER = {"type": "transformer", "layers": 1, "heads": 2, "feed_forward": 16}
TRANSFORMER = {
    "embedding": 16,
    "dropout": 0.0,
    "tie_embeddings": "all",
    "encoder": _TRANSFORMER,
    "decoder": _TRANSFORMER,
}
KINDS = {"lstm": LSTM, "transformer": TRANSFORMER}


def tokenizers(lines, size):
    one = trained(lines, vocab_size=size, model_type="bpe")
    return dict.fromkeys(SIDES, one)


OLD, NEW = tokenizers(WORDS, 40), tokenizers(NEW_WORDS, 52)


def settings(model, task="translation", **training):
    """The sections as the Trainer gets them; ``start`` names a model."""
    small = {"batch_tokens": 200, "max_length": 20, "learning_rate": 0.02, "early_stop": None}
    sections = {"training": {"warm_start": {}, **small, **training}, "model": model}
    if task == "translation":  # the two sides have one vocabulary here
        sections["tokenizer"] = {"shared": True}
    made = config_of(task).model_validate(
        {"name": "tiny", "task": task, "data": {"train": "a.tsv"}, **sections}
    )
    dumped = made.model_dump(mode="json")
    return {
        "task": task,
        **{name: dumped[name] for name in ("model", "training", "search")},
        "start": {},
    }


def start_of(folder):
    return {"model": "tiny@1", "path": str(folder), "digest": content_digest(folder)}


def build(config, serialized, seed=1):
    """A new model, as the Trainer makes it."""
    keras.utils.set_random_seed(seed)
    task = tasks.get(config["task"])
    sizes = {
        side: sentencepiece.SentencePieceProcessor(model_proto=one).get_piece_size()
        for side, one in serialized.items()
    }
    model = task.build(config["model"], config["training"], sizes)
    compile_model(model, config["training"])
    return model


def put(folder, model, config, serialized):
    """A SavedModel of the weights as every export holds them, and what is kept beside it."""
    module = tf.Module()
    module.weights = [weight.value for weight in model.weights]
    tf.saved_model.save(module, str(folder))
    keep(folder, model, config, serialized)
    return folder
