"""What a folder of M2M-100 or NLLB may contain, and what is refused."""

import json
import shutil

import pytest

from regard.components.importing.m2m import read_m2m
from regard.core.errors import UserError
from tests.components.importing.huggingface_fixtures import FOLDER, load


@pytest.fixture(params=["m2m", "nllb"])
def folder(request, tmp_path):
    """A copy of a model that may change."""
    return shutil.copytree(FOLDER / request.param, tmp_path / request.param)


def languages(folder):
    return ("eng_Latn", "deu_Latn") if folder.name == "nllb" else ("en", "de")


def refused(folder, pairs, *words):
    with pytest.raises(UserError) as error:
        read_m2m(folder, pairs)
    assert error.value.remedy
    for word in words:
        assert word in str(error.value)


def test_each_pair_has_a_tag_with_the_weights_of_its_source_language():
    for name in ("m2m", "nllb"):
        fixture = load(name)
        table, config = fixture.sides["encoder"], fixture.foreign.config
        tags = config.tags.known
        firsts = dict(config.model.first_tokens)
        tokens = fixture.tokenizers["source"]
        for tag in tags:
            source, target = tag.split("-")
            ids = tokens.tokenize(f"<{tag}> x").numpy()
            texts = fixture.foreign_texts
            assert texts[int(table.rows[ids[0]])].strip("_") == source
            assert texts[int(table.rows[firsts[int(ids[0])]])].strip("_") == target


def test_an_unknown_language_is_refused_with_a_suggestion(folder):
    source, target = languages(folder)
    refused(folder, [(source, "xx")], "xx")
    refused(folder, [("", target)])
    refused(folder, [(source, target[:-1] + "x")], target)
    refused(folder, [("a", "e")], "'a'")  # ordinary tokens are no languages


@pytest.mark.parametrize("wrong", [{"x": {"content": "y"}}, {"90": {}}, {"90": "y"}, ["y"], "y"])
def test_a_list_of_tokens_that_cannot_be_read_is_refused(tmp_path, wrong):
    folder = shutil.copytree(FOLDER / "m2m", tmp_path / "m2m")
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({"added_tokens_decoder": wrong}))
    refused(folder, [("en", "de")], "tokenizer_config.json")
    path.write_text(json.dumps({"additional_special_tokens": [{}]}))
    refused(folder, [("en", "de")], "tokenizer_config.json")
    path.write_text(json.dumps({"legacy_behaviour": True}))
    refused(folder, [("en", "de")], "legacy_behaviour")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model_type", "mbart"),
        ("pad_token_id", 0),
        ("decoder_start_token_id", 10**7),
        ("tie_word_embeddings", False),
        ("encoder_layers", 9),
    ],
)
def test_settings_of_other_models_are_refused_by_name(folder, name, value):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), name: value}))
    refused(folder, [languages(folder)], name)


def test_missing_and_damaged_files_of_the_tokenizer_are_named(folder):
    pair = languages(folder)
    names = ["sentencepiece.bpe.model"]
    names += ["tokenizer.json"] if folder.name == "nllb" else ["vocab.json"]
    for name in names:
        content = (folder / name).read_bytes()
        for wrong in (b"", b"{}", b"[1]", content[: len(content) // 2]):
            (folder / name).write_bytes(wrong)
            refused(folder, [pair])
        (folder / name).unlink()
        refused(folder, [pair], "sentencepiece" if "sentence" in name else "token")
        (folder / name).write_bytes(content)
    read_m2m(folder, [pair])


def test_languages_may_be_listed_without_ids(tmp_path):
    """As in published folders of M2M-100: they follow the tokens of vocab.json."""
    folder = shutil.copytree(FOLDER / "m2m", tmp_path / "m2m")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    added = settings.pop("added_tokens_decoder")
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    first = len(json.loads((folder / "vocab.json").read_text()))
    listed = [added[key]["content"] for key in sorted(added, key=int) if int(key) >= first]
    special = folder / "special_tokens_map.json"
    special.unlink(missing_ok=True)
    settings.pop("additional_special_tokens", None)
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    refused(folder, [("en", "de")], "languages")
    special.write_text(json.dumps({"additional_special_tokens": listed}))
    by_list = read_m2m(folder, [("en", "de")])
    with_ids = read_m2m(FOLDER / "m2m", [("en", "de")])
    assert by_list.config == with_ids.config
    assert by_list.tokenizers == with_ids.tokenizers
