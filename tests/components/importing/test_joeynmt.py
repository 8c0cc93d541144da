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
from regard.models.vocabulary import EOS
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
        ("testing.max_output_length", "x"),
        ("testing.max_output_length", 1.5),
        ("model.tied_softmax", []),
        ("model.tied_embeddings", {}),
        ("model.encoder.embeddings.scale", "yes"),
        ("data.special_symbols.bos_token", 7),
        ("data.special_symbols.pad_token", "[PAD]"),
    ],
)
def test_what_computes_something_else_is_named(folder, key, value):
    change(folder, key, value)
    name = key.rpartition(".")[2]
    words = {
        "beam_alpha": "length_penalty",
        "num_heads": "heads",
        "model_file": str(folder),
        "pad_token": "src_vocab.txt",
    }
    refused(folder, words.get(name, name))
    is_plain = isinstance(value, float) or (isinstance(value, list) and value)
    if is_plain and "model" in key:
        refused(folder, str(value))


@pytest.mark.parametrize(
    "name", ["config.yaml", "best.ckpt", "src_vocab.txt", "trg_vocab.txt", "joint.model"]
)
@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe\x00", b"[]"])
def test_missing_and_damaged_files_are_named(folder, name, content):
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    refused(folder, str(folder / name))


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


def edit(path, function):
    path.write_text(function(path.read_text()))


def test_special_tokens_may_have_other_names(folder):
    expected = read_joeynmt(folder)
    for name in ("src_vocab.txt", "trg_vocab.txt"):
        edit(folder / name, lambda text: text.replace("<s>", "[BOS]").replace("<pad>", "[PAD]"))
    refused(folder, "src_vocab.txt", "<pad>")
    change(folder, "data.special_symbols.pad_token", "[PAD]")
    refused(folder, "src_vocab.txt", "<s>")
    change(folder, "data.special_symbols.bos_token", "[BOS]")
    model = read_joeynmt(folder)
    for side, table in expected.read_weight._tables.items():
        assert model.read_weight._tables[side].rows.tolist() == table.rows.tolist()
        assert table.rows[:4].tolist() == [1, 0, 2, 3]
    assert model.read_weight._never == expected.read_weight._never
    # A model whose decoder begins with the end of a sentence can still end its outputs.
    for name in ("src_vocab.txt", "trg_vocab.txt"):
        edit(folder / name, lambda text: text.replace("[BOS]\n", "[FREE]\n"))
    change(folder, "data.special_symbols.bos_token", "</s>")
    assert EOS not in read_joeynmt(folder).read_weight._never


def test_two_tokenizers_that_joeynmt_copied_to_one_file_are_refused(folder):
    change(folder, "data.src.tokenizer_cfg.model_file", "/data/src/joint.model")
    change(folder, "data.trg.tokenizer_cfg.model_file", "/data/trg/joint.model")
    refused(folder, "data.trg.tokenizer_cfg.model_file", "joint.model")


@pytest.mark.parametrize("names", [("src.model", "trg.model"), ("src_vocab.txt", "trg_vocab.txt")])
def test_files_of_two_sides_in_the_wrong_order_are_refused(tmp_path, names):
    folder = shutil.copytree(JOEYNMT / UNTIED, tmp_path / "model")
    first, second = ((folder / name).read_bytes() for name in names)
    (folder / names[0]).write_bytes(second)
    (folder / names[1]).write_bytes(first)
    refused(folder, "src_vocab.txt", "SentencePiece")


def test_lines_of_a_vocabulary(folder):
    expected = read_joeynmt(folder).read_weight._tables["source"].rows.tolist()
    edit(folder / "src_vocab.txt", lambda text: text.rstrip("\n").replace("\n", "\r\n"))
    assert read_joeynmt(folder).read_weight._tables["source"].rows.tolist() == expected
    edit(folder / "trg_vocab.txt", lambda text: text.replace("\n", "\n\n", 1))
    refused(folder, "trg_vocab.txt", "Line 2")
    edit(folder / "trg_vocab.txt", lambda text: text.replace("\n\n", "\n<unk>\n", 1))
    refused(folder, "trg_vocab.txt", "Lines 1 and 2", "<unk>")


def test_the_older_key_of_the_length_penalty_has_priority(folder):
    change(folder, "testing.alpha", 0.3)
    assert read_joeynmt(folder).config.search.length_penalty == 0.3


def test_hostile_settings_are_errors_of_the_file(folder):
    change(folder, "data.src.tokenizer_cfg.model_file", "m" * 5000)
    refused(folder, "mmm")
    (folder / "config.yaml").write_text("[" * 5000)
    refused(folder, "config.yaml")


def test_a_weight_that_is_not_finite_is_named(folder):
    foreign = read_joeynmt(folder)
    read = foreign.read_weight.tensor
    foreign.read_weight.tensor = lambda name: read(name) * np.nan
    with pytest.raises(UserError, match="not finite"):
        foreign.build()


def test_weights_that_do_not_exist_are_named():
    model = joeynmt(UNTIED)
    weights = model.foreign.read_weight
    assert not [*weights.unread()]
    with pytest.raises(UserError, match=r"layers\.7"):
        weights("encoder/layer_7/attention/output/kernel")
    kernel = weights("encoder/layer_0/attention/project/kernel")
    assert kernel.shape == (8, 24)
    assert kernel.dtype == np.float32
