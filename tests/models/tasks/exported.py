"""Small translators, built and exported as the Trainer does it, and checks of what is exported."""

from unittest import mock

import keras
import tensorflow as tf

from regard.components.common.sentencepiece_models import read_sentencepiece_models
from regard.components.common.tokenizers import read_tokenizers
from regard.components.settings.trainer import TrainerConfig
from regard.components.trainer.export import export, write_warm_start
from regard.models import tasks
from regard.models.tasks.text_to_text.served import ServedText
from regard.serving.supported_ops import core_ops, unsupported, used_ops
from tests.models.tasks.task_parts import module_of
from tests.models.tasks.tokenizers import write_tokenizers
from tests.tolerances import assert_close

TRANSFORMER = {"type": "transformer", "layers": 2, "heads": 2, "feed_forward": 8}
TRAINING = {"precision": "float32", "label_smoothing": 0.0}
SEARCH = {"type": "greedy", "max_source_length": 20}


def config(encoder=TRANSFORMER, decoder=TRANSFORMER, search=SEARCH):
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
    return {"model": model, "training": TRAINING, "search": search}


def build(folder, settings, seed):
    """The model of a configuration with random weights, and the tokenizers of a folder."""
    keras.utils.set_random_seed(seed)  # before the tokenizers, which would be lost
    task = tasks.get_network("translation")
    tokenizers = read_tokenizers(folder, task.description.text_features)
    tokens = {name: int(t.vocab_size()) for name, t in tokenizers.items()}
    return task.build(settings.model, settings.training, tokens), tokenizers


def created(folder, seed=3, certain=2.0, save=True, **sections):
    """A translator, also as ``saved`` in a folder with tokenizers; by default of Transformers."""
    settings = TrainerConfig(task="translation", **config(**sections))
    model, tokenizers = build(folder, settings, seed)
    for weight in model.weights:
        weight.assign(weight * certain)
    return served(folder, settings, model, tokenizers, save)


def served(folder, settings, model, tokenizers, save=True):
    """A model as it is served; writes it to ``saved`` in the folder."""
    task = tasks.get_network("translation")
    if save:
        export(model, task, settings, tokenizers, folder / "saved")
    module = module_of("translation", model, tokenizers, settings.model, settings.search)
    return module.served_model()


def export_model(
    root, version, encoder, decoder, texts=(), seed=3, tokenizers=None, change=None, **settings
):
    """Export an untrained model; return a function that writes its files for a warm start."""
    write_tokenizers(root)
    for side, model in (tokenizers or {}).items():
        (root / f"{side}.model").write_bytes(model)
    keras.utils.set_random_seed(seed)
    task = tasks.get_network("translation")
    settings = {**config(encoder, decoder), **settings, "task": "translation"}
    settings["training"] = {**settings["training"], "warm_start": None}
    tokenizers = read_tokenizers(root, task.description.text_features)
    tokens = {name: int(t.vocab_size()) for name, t in tokenizers.items()}
    trainer_config = TrainerConfig.model_validate(settings)
    model = task.build(trainer_config.model, trainer_config.training, tokens)
    if change is not None:
        change(model)
    with mock.patch.object(ServedText, "raw_inputs", lambda self, row: row):
        rows = [{"source": text} for text in texts]
        export(model, task, trainer_config, tokenizers, version, rows)
    serialized = read_sentencepiece_models(root, task.description.text_features)
    return lambda: write_warm_start(version, model, trainer_config, serialized)


def save_signatures(served, names, folder):
    """Write some signatures of a served model, because writing all takes long."""
    module = tf.Module()
    module.weights, module.tokenizers = served.module.weights, served.module.tokenizers
    signatures = {name: served.signatures[name] for name in names}
    tf.saved_model.save(module, str(folder), signatures=signatures)


def assert_equal_outputs(result, expected):
    """Compare the outputs of a loaded signature with those of the module in memory."""
    assert set(result) == set(expected)
    for name, value in expected.items():
        if value.dtype == tf.string:
            assert result[name].numpy().tolist() == value.numpy().tolist()
        else:
            assert_close(result[name], value)


def servable(folder):
    """Whether there are only operations that a model server has."""
    ops = used_ops(folder)
    return not unsupported(ops, core_ops(ops), "2.14") and not {o for o in ops if "Xla" in o}


def serialized(**features):
    """A tf.Example of lists of bytes or numbers."""
    lists = {
        bytes: lambda values: tf.train.Feature(bytes_list=tf.train.BytesList(value=values)),
        float: lambda values: tf.train.Feature(float_list=tf.train.FloatList(value=values)),
        int: lambda values: tf.train.Feature(int64_list=tf.train.Int64List(value=values)),
    }
    stored = {name: lists[type(values[0])](values) for name, values in features.items()}
    return tf.train.Example(features=tf.train.Features(feature=stored)).SerializeToString()
