"""Models of JoeyNMT: the same numbers and outputs, and what is refused."""

import json
import os
import shutil

import numpy as np
import pytest
import tensorflow as tf
import yaml

from regard.components.importing.joeynmt import read_joeynmt
from regard.core.errors import UserError
from tests.components.importing.toolkit_fixtures import JOEYNMT, joeynmt

NAMES = sorted(path.name for path in JOEYNMT.iterdir())
UNTIED = "post-untied"


@pytest.fixture
def folder(tmp_path):
    """A copy of a model that may change."""
    return shutil.copytree(JOEYNMT / "pre-tied", tmp_path / "model")


def change(folder, key, value):
    """Set a key of config.yaml, or remove it with None."""
    path = folder / "config.yaml"
    content = json.loads(json.dumps(yaml.safe_load(path.read_text())))  # without aliases
    *parents, last = key.split(".")
    section = content
    for parent in parents:
        section = section.setdefault(parent, {})
    section[last] = value
    if value is None:
        del section[last]
    path.write_text(yaml.safe_dump(content))


def refused(folder, *words, **options):
    with pytest.raises(UserError) as error:
        read_joeynmt(folder, **options).build()
    text = str(error.value)
    assert error.value.remedy
    for word in words:
        assert word in text


@pytest.mark.parametrize("name", NAMES)
def test_states_and_logits_are_those_of_joeynmt(name):
    states, logits, largest = joeynmt(name).differences()
    assert states < 1e-5
    assert logits < 1e-4
    assert largest > 3


@pytest.mark.parametrize("name", NAMES)
def test_greedy_outputs_are_those_of_joeynmt(name):
    model = joeynmt(name)
    expected = model.outputs["greedy"]
    detokenize = model.tokenizers["target"].detokenize
    texts = [
        detokenize(tf.constant(ids, tf.int32)).numpy().decode()
        for ids in model.greedy(len(expected))
    ]
    assert len(set(expected)) > 20
    # JoeyNMT writes an unknown token for an output without text.
    outputs = [[text.strip().strip("\u2047") for text in side] for side in (texts, expected)]
    assert outputs[0] == [text if text != "<unk>" else "" for text in outputs[1]]


def test_the_settings_become_those_of_regard():
    model, search = joeynmt("pre-tied").foreign.config.model, joeynmt("pre-tied").foreign.config
    assert (model.tie_embeddings, model.scale_embeddings, model.embedding) == ("all", True, 8)
    assert (model.encoder.norm, model.encoder.layers, model.decoder.layers) == ("pre", 2, 1)
    assert model.encoder.norm_epsilon == model.decoder.norm_epsilon == 1e-6
    assert model.encoder.attention_dropout == model.dropout == 0.1
    assert (search.search.beam_size, search.search.length_penalty) == (4, 1.0)
    assert search.search.longest_output == 20
    other = joeynmt(UNTIED).foreign.config.model
    assert (other.tie_embeddings, other.scale_embeddings) == ("none", False)
    assert (other.encoder.norm, other.encoder.activation) == ("post", "gelu")
    assert joeynmt("post-softmax").foreign.config.model.tie_embeddings == "output"
    assert joeynmt("post-softmax").foreign.config.model.decoder.activation == "silu"


def test_the_search_without_a_length_and_with_one_beam(folder):
    change(folder, "testing.max_output_length", None)
    change(folder, "testing.beam_size", 1)
    search = read_joeynmt(folder).config.search
    assert (search.type, search.max_length_factor) == ("greedy", 1.5)


def test_a_restricted_vocabulary_segments_as_in_joeynmt():
    """The tokens that it lacks are avoided: none becomes unknown."""
    model = joeynmt("post-softmax")
    known = set((model.path / "src_vocab.txt").read_text().split("\n"))
    tokenizer = model.tokenizers["source"]
    ids = [tokenizer.tokenize(text).numpy() for text in model.outputs["sentences"]]
    texts = {tokenizer.id_to_string(int(number)).numpy().decode() for row in ids for number in row}
    assert len(texts) > 10
    assert {text for text in texts if len(text) > 1} <= known


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model.encoder.type", "recurrent"),
        ("model.encoder.layer_norm", None),
        ("model.encoder.layer_norm", "both"),
        ("model.decoder.alpha", 0.5),
        ("model.encoder.activation", "tanh"),
        ("model.encoder.activation", ["relu"]),
        ("model.encoder.num_layers", 3),
        ("model.encoder.num_layers", 60_000),
        ("model.decoder.ff_size", 13),
        ("model.encoder.hidden_size", 16),
        ("model.encoder.num_heads", 3),
        ("model.encoder.num_heads", "two"),
        ("data.src.level", "word"),
        ("data.src.tokenizer_type", "subword-nmt"),
        ("data.trg.lowercase", True),
        ("data.trg.normalize", True),
        ("data.src.tokenizer_cfg.pretokenizer", "moses"),
        ("data.src.tokenizer_cfg.model_file", None),
        ("data.src.tokenizer_cfg.model_file", "/data/absent.model"),
        ("data.src.tokenizer_cfg.model_file", "/.."),
        ("data.src.tokenizer_cfg.model_file", "/"),
        ("data.special_symbols.lang_tags", ["<de>"]),
        ("data.special_symbols.sep_token", "<sep>"),
        ("testing.repetition_penalty", 1.5),
        ("testing.no_repeat_ngram_size", 3),
        ("testing.beam_size", "many"),
        ("testing.beam_alpha", "much"),
    ],
)
def test_what_computes_something_else_is_named(folder, key, value):
    change(folder, key, value)
    name = key.rpartition(".")[2]
    words = {"beam_alpha": "length_penalty", "num_heads": "heads", "model_file": str(folder)}
    refused(folder, words.get(name, name))


@pytest.mark.parametrize(
    "name", ["config.yaml", "best.ckpt", "src_vocab.txt", "trg_vocab.txt", "joint.model"]
)
@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe\x00", b"[]"])
def test_missing_and_damaged_files_are_named(folder, name, content):
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    # A vocabulary of other tokens is found when the end of a sentence is missing.
    is_other = name.endswith("_vocab.txt") and content in (b"", b"[]")
    refused(folder, "joint.model" if is_other else name)


def test_embeddings_of_one_scale(folder):
    """With one matrix of all embeddings, JoeyNMT ignores the scale of the decoder."""
    change(folder, "model.decoder.embeddings.scale", False)
    assert read_joeynmt(folder).config.model.scale_embeddings
    change(folder, "model.tied_embeddings", False)
    refused(folder, "model.decoder.embeddings.scale")


def test_a_pipe_and_another_file_are_refused(folder):
    (folder / "best.ckpt").unlink()
    os.mkfifo(folder / "best.ckpt")
    refused(folder, "best.ckpt")
    refused(folder, "config.yaml", checkpoint="config.yaml")
    refused(folder, "--checkpoint", checkpoint="../best.ckpt")


def test_a_checkpoint_may_be_a_link_with_another_name(folder):
    (folder / "best.ckpt").rename(folder / "40.ckpt")
    (folder / "latest.ckpt").symlink_to("40.ckpt")
    read_joeynmt(folder, "latest.ckpt").build()


def test_tied_matrices_that_differ_are_refused(folder):
    """The settings say that a model without ties has some."""
    target = shutil.copytree(JOEYNMT / "pre-embeddings", folder.parent / "other")
    change(target, "model.tied_softmax", True)
    refused(target, "decoder.output_layer.weight")


def test_weights_that_are_not_finite_or_missing_are_named():
    model = joeynmt(UNTIED)
    weights = model.foreign.read_weight
    assert not [*weights.unread()]
    with pytest.raises(UserError, match=r"layers\.7"):
        weights("encoder/layer_7/attention/output/kernel")
    kernel = weights("encoder/layer_0/attention/project/kernel")
    assert kernel.shape == (8, 24)
    assert kernel.dtype == np.float32
