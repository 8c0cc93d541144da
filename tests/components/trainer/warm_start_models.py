"""Models to start from, as the Trainer builds and exports them."""

import keras
import sentencepiece
import tensorflow as tf

from regard.components.settings.trainer import StartingModel, TrainerConfig
from regard.components.trainer.export import write_warm_start
from regard.components.trainer.fine_tuning import set_trainable
from regard.components.trainer.optimizer import compile_model
from regard.models import tasks
from regard.serving.content_digest import content_digest
from tests.models.tasks.tokenizers import trained

WORDS = ["the cat sat", "a dog ran", "some bird flew", "the fish swam", "a cat ran", "one dog sat"]
NEW_WORDS = [*WORDS, "the catfish swam", "birds ran", "dogs", "quick"]
SIDES = ("source", "target")
NETWORK = tasks.get_network("translation")
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
STACK = {
    **LSTM,
    "encoder": [
        {"type": "convolutional", "units": 8, "layers": 1},
        {"type": "recurrent", "units": 8},
    ],
}
ARCHITECTURES = {"lstm": LSTM, "transformer": TRANSFORMER}


def shared_tokenizers(lines, size):
    """One serialized SentencePiece model for both sides."""
    return dict.fromkeys(SIDES, trained(lines, vocab_size=size, model_type="bpe"))


OLD, NEW = shared_tokenizers(WORDS, 40), shared_tokenizers(NEW_WORDS, 52)


def trainer_config(model, task="translation", **training):
    """The configuration of the Trainer, without a model to start from."""
    small = {"batch_tokens": 200, "max_length": 20, "learning_rate": 0.02, "early_stopping": None}
    search = tasks.describe(task).search
    return TrainerConfig(
        task=task,
        model=model,
        training={"precision": "float32", "warm_start": {}, **small, **training},
        search=search[1].model_dump(mode="json") if search else None,
    )


def starting_model(folder):
    """The model in a folder as one to start from."""
    return StartingModel(model="tiny@1", path=str(folder), digest=content_digest(folder))


def with_training(config, **changes):
    """The configuration with other settings of the training."""
    training = {**config.training.model_dump(mode="json"), **changes}
    return TrainerConfig.model_validate({**config.model_dump(mode="json"), "training": training})


def build(config, serialized, seed=1):
    """A new compiled model, as the Trainer builds it."""
    keras.utils.set_random_seed(seed)
    sizes = {
        side: sentencepiece.SentencePieceProcessor(model_proto=one).get_piece_size()
        for side, one in serialized.items()
    }
    task = tasks.get_network(config.task)
    model = task.build(config.model, config.training, sizes)
    set_trainable(model, task, config.training)
    compile_model(model, config.training)
    return model


def save(folder, model, config, serialized):
    """Write a SavedModel with the weights as every export holds them, and return its folder."""
    module = tf.Module()
    module.weights = [weight.value for weight in model.weights]
    tf.saved_model.save(module, str(folder))
    write_warm_start(folder, model, config, serialized)
    return folder
