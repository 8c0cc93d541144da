"""What a folder of MarianMT may contain, and what is refused."""

import json
import os
import shutil

import numpy as np
import pytest

from regard.components.importing.marian import read_marian
from regard.components.importing.tokenizer_files import ordinary_tokens
from regard.core.errors import UserError
from tests.components.importing.huggingface_fixtures import FOLDER, load
from tests.components.importing.safetensors_files import read_arrays, write_arrays


@pytest.fixture
def folder(tmp_path):
    """A copy of a model that may change."""
    return shutil.copytree(FOLDER / "marian-opus", tmp_path / "opus")


def change(path, **values):
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, **values}))


def refused(folder, *words):
    with pytest.raises(UserError) as error:
        read_marian(folder).build()
    text = str(error.value)
    assert error.value.remedy
    for word in words:
        assert word in text
    return text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model_type", "bart"),
        ("activation_function", "tanh"),
        ("activation_function", ["relu"]),
        ("normalize_before", True),
        ("normalize_embedding", True),
        ("add_final_layer_norm", True),
        ("static_position_embeddings", False),
        ("quantization_config", {"bits": 4}),
        ("decoder_start_token_id", 5),
        ("encoder_layers", "two"),
        ("encoder_layers", 0),
        ("encoder_layers", True),
        ("d_model", -1),
        ("d_model", 13),
        ("vocab_size", 71),
        ("vocab_size", 10**9),
        ("dropout", "much"),
        ("pad_token_id", -1),
        ("eos_token_id", 71),
    ],
)
def test_settings_of_other_models_are_refused_by_name(folder, name, value):
    change(folder / "config.json", **{name: value})
    assert str(folder) in refused(folder, name.partition("_")[0])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("do_sample", True),
        ("repetition_penalty", 1.2),
        ("num_beam_groups", 2),
        ("min_length", 5),
        ("length_penalty", -1.0),
        ("num_beams", "four"),
        ("max_length", None),
        ("no_repeat_ngram_size", -2),
    ],
)
def test_searches_that_regard_lacks_are_refused(folder, name, value):
    change(folder / "generation_config.json", **{name: value})
    if name == "max_length":  # a default
        assert read_marian(folder).config.search.max_length_offset == 18
    else:
        refused(folder, name)


@pytest.mark.parametrize("name", ["config.json", "vocab.json", "source.spm", "target.spm"])
@pytest.mark.parametrize("content", [None, b"", b"[]", b"{", b"\xff\xfe\x00", b"[" * 10**5])
def test_missing_and_damaged_files_are_named(folder, name, content):
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    refused(folder, name)


def test_a_folder_without_weights_or_without_anything(folder, tmp_path):
    (folder / "model.safetensors").unlink()
    refused(folder, "weights")
    refused(tmp_path / "nothing", "nothing")


def test_ids_that_are_no_ids_of_the_vocabulary(folder):
    content = json.loads((folder / "vocab.json").read_text())
    for wrong in (72, -1, 1.5, "3", None, content["</s>"]):
        changed = {**content, next(text for text in content if text.startswith("▁")): wrong}
        (folder / "vocab.json").write_text(json.dumps(changed))
        refused(folder, "vocab.json")
    del content["<unk>"]
    (folder / "vocab.json").write_text(json.dumps(content))
    refused(folder, "<unk>")


@pytest.mark.parametrize("kind", ["missing", "more", "shape", "nan"])
def test_weights_that_differ_from_the_settings_are_named(folder, kind):
    path, name = folder / "model.safetensors", "model.encoder.layers.0.fc1.weight"
    arrays = read_arrays(path)
    expected = name
    if kind == "missing":
        del arrays[name]
    elif kind == "more":
        expected = "model.encoder.layers.1.fc3.weight"
        arrays[expected] = np.zeros((2, 2), np.float32)
    elif kind == "shape":
        name = "model.decoder.layers.1.fc2.bias"
        arrays[name], expected = arrays[name][:5], "feed_forward/contract/bias"
    else:
        arrays[name], expected = arrays[name] * np.nan, "feed_forward/expand/kernel"
    write_arrays(path, arrays)
    refused(folder, expected)


def test_sizes_that_differ_from_the_settings_are_refused_before_anything_is_built(folder):
    change(folder / "config.json", encoder_layers=60_000)
    refused(folder, "encoder_layers", "2 in the weights")
    change(folder / "config.json", encoder_layers=2, decoder_ffn_dim=900_000)
    refused(folder, "decoder_ffn_dim")


def test_settings_become_those_of_regard():
    config = load("marian-opus").foreign.config
    assert config.model.tie_embeddings == "all"
    assert config.model.encoder.activation == "silu"
    assert config.search.effective_patience == "present_length"
    assert config.search.length_offset == 0
    assert load("marian-separate").foreign.config.model.tie_embeddings == "output"
    assert load("marian-untied").foreign.config.model.tie_embeddings == "none"
    assert load("marian-multilingual").foreign.config.tags.known == ("deu", "fra", "cmn_Hans")


def test_sources_have_the_tokens_of_hugging_face():
    """Except codes inside of a text, special tokens, and characters that only vocab.json has.

    These are ordinary text, and unknown.
    """
    fixture = load("marian-opus")
    known = {*ordinary_tokens((fixture.path / "source.spm").read_bytes()), "<unk>", "</s>"}
    compared = 0
    for row in fixture.outputs["tokenization"]:
        has_mark = any(mark in row["text"] for mark in ("</s>", "<pad>", "<unk>", ">>"))
        if not has_mark and known.issuperset(row["tokens"]):
            ids = fixture.tokenizers["source"].tokenize(row["text"]).numpy().tolist()
            assert fixture.foreign_ids(ids, "encoder") == row["ids"][:-1], row["text"]
            compared += 1
    assert compared >= 4


def test_the_licence_of_the_model_card(folder):
    assert read_marian(folder).licence == ""
    for header, licence in (
        ("---\nlicense: cc-by-4.0\nlanguage: en\n---\n# Card", "cc-by-4.0"),
        ("---\nlicense:\n- apache-2.0\n- mit\n---\n", "apache-2.0, mit"),
        ("---\nlicense: [\n---\n", ""),
        ("# No header\nlicense: mit\n", ""),
        ("---\n- a list\n---\n", ""),
    ):
        (folder / "README.md").write_text(header)
        assert read_marian(folder).licence == licence


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bad_words_ids", [[5]]),
        ("early_stopping", "soon"),
        ("num_beams", 2.7),
        ("num_beams", 10**6),
        ("guidance_scale", 2.0),
        ("forced_bos_token_id", 3),
        ("renormalize_logits", "false"),
        ("decoder_start_token_id", 3),
    ],
)
def test_settings_of_generate_that_change_outputs_are_refused(folder, name, value):
    change(folder / "generation_config.json", **{name: value})
    refused(folder, name)


@pytest.mark.parametrize(("value", "patience"), [(True, 1.0), ("never", None)])
def test_the_rule_of_early_stopping(folder, value, patience):
    change(folder / "generation_config.json", early_stopping=value)
    assert read_marian(folder).config.search.effective_patience == patience


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scale_embedding", "false"),
        ("tie_word_embeddings", "no"),
        ("dropout", 1.5),
        ("attention_dropout", -1),
        ("pad_token_id", 999_999),
    ],
)
def test_values_that_no_model_can_have_are_refused(folder, name, value):
    change(folder / "config.json", **{name: value})
    refused(folder, name.partition("_")[0])


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("final_logits_bias", (1, 3)),
        ("model.encoder.layers.0.self_attn.q_proj.weight", (12,)),
        ("model.encoder.layers.0.self_attn.q_proj.bias", ()),
    ],
)
def test_tensors_of_another_shape_are_refused(folder, name, shape):
    path = folder / "model.safetensors"
    write_arrays(path, {**read_arrays(path), name: np.zeros(shape, np.float32)})
    refused(folder, "shape")


def test_a_matrix_that_is_tied_in_the_settings_and_differs_is_refused(folder):
    path = folder / "model.safetensors"
    arrays = read_arrays(path)
    table = arrays["model.shared.weight"]
    write_arrays(path, {**arrays, "model.encoder.embed_tokens.weight": table})
    read_marian(folder).build()
    write_arrays(path, {**arrays, "model.encoder.embed_tokens.weight": table + 1})
    refused(folder, "model.shared.weight")


def test_a_pipe_in_place_of_the_settings_of_generate_is_refused(folder):
    (folder / "generation_config.json").unlink()
    os.mkfifo(folder / "generation_config.json")
    refused(folder, "generation_config.json")
    refused(folder.parent / ("x" * 300))


def test_stored_positions_must_be_the_sinusoids(folder):
    path = folder / "model.safetensors"
    arrays, name = read_arrays(path), "model.encoder.embed_positions.weight"
    position = np.arange(64)[:, None] / 10000 ** (np.arange(6) / 6)
    table = np.concatenate([np.sin(position), np.cos(position)], axis=1)
    write_arrays(path, {**arrays, name: table.astype(np.float16)})
    read_marian(folder).build()
    for wrong in (np.zeros((64, 12)), table[:, ::-1], table[1:], np.zeros(3), np.zeros((0, 12))):
        write_arrays(path, {**arrays, name: wrong})
        refused(folder, name)
