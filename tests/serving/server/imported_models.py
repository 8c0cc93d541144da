"""Imported models in a registry, with few signatures, because tracing all takes long."""

import json
from unittest import mock

import numpy as np

from regard.components.trainer.export import export_float32, write_warm_start
from regard.models.settings.search import GreedySearchConfig
from regard.models.tasks.text_to_text.served import ServedText
from regard.models.vocabulary import EOS
from tests.components.importing.huggingface_fixtures import load

SIGNATURES = ("serving_default", "align", "nbest")


def publish(root, name, search):
    """Publish a model of Hugging Face's fixtures as ``regard import`` does.

    Args:
        root: the registry's folder.
        name: the name of the fixture.
        search: ``beam``, as the model has it with two outputs, or ``greedy``.
    """
    fixture, version = load(name), root / name / "1"
    settings = fixture.search.model_copy(update={"n_best": 2})
    if search == "greedy":
        limits = {"max_source_length", "max_length_factor", "max_length_offset"}
        settings = GreedySearchConfig(**fixture.search.model_dump(include=limits))
    config = fixture.foreign.config.model_copy(update={"search": settings})
    network, model, tokenizers = fixture.foreign.build()
    (bias,) = [weight for weight in model.weights if weight.path.endswith("logits_bias")]
    bias.assign(bias + 2.0 * (np.arange(bias.shape[0]) == EOS))  # so that more outputs end
    every = ServedText.signatures
    with mock.patch.object(
        ServedText,
        "signatures",
        lambda self: {key: value for key, value in every(self).items() if key in SIGNATURES},
    ):
        texts = [fixture.text(row) for row in fixture.outputs["sentences"][:3]]
        rows = [{"source_ids": tokenizers["source"].tokenize(text).numpy()} for text in texts]
        export_float32(model, network, config, tokenizers, version, rows)
    write_warm_start(version, model, config, fixture.foreign.tokenizers)
    values = config.model_dump(mode="json")
    record = {"config": {key: values[key] for key in ("task", "model", "search")}}
    (version / "regard.json").write_text(json.dumps(record))
    return version


def sources(name, count):
    """Return sources of a fixture with their tags, not UTF-8, blank, and one without a tag."""
    fixture = load(name)
    texts = [fixture.text(row).encode() for row in fixture.outputs["sentences"][:count]]
    tag = texts[0].split(b" ")[0]
    return [*texts, tag, tag + b" ", b"", texts[1].split(b" ", 1)[1], b" " + texts[2], b"\xff"]
