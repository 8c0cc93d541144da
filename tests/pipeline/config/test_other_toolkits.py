"""The keys of other toolkits, and files of other toolkits."""

from collections import Counter
from pathlib import Path

import pytest

from regard.core.errors import UserError
from regard.models.settings.annotations import sections_of
from regard.pipeline.config import load
from regard.pipeline.config.config import config_class
from regard.pipeline.config.other_toolkits import PAGES, KeyExplainer, read_table

ROOT = config_class("translation")
DOCS = Path(__file__).parents[3] / "docs" / "coming-from"
KEYS = {(*path, name) for path, model in sections_of(ROOT) for name in model.model_fields}
NETWORKS = {
    "recurrent": {"encoder": {"type": "recurrent"}, "decoder": {"type": "luong"}},
    "transformer": {"encoder": {"type": "transformer"}, "decoder": {"type": "transformer"}},
}


def explain(path: str, values: object = None) -> str:
    parts = [int(part) if part.isdigit() else part for part in path.split(".")]
    return KeyExplainer(values or {}, ROOT).explain(tuple(parts))


def test_table_has_keys_of_every_toolkit():
    counts = Counter(key.toolkit for key in read_table())
    assert set(counts) == set(PAGES)
    assert min(counts.values()) >= 50


def test_keys_are_unique():
    counts = Counter((key.toolkit, key.path) for key in read_table())
    assert [key for key, count in counts.items() if count > 1] == []


def test_every_key_of_regard_exists():
    keys = {option for key in read_table() for place in key.places for option in place}
    assert keys - KEYS == set()


def test_every_key_without_an_equivalent_has_a_reason():
    assert [key for key in read_table() if not key.places and not key.remark] == []


def test_remarks_are_sentences():
    remarks = {key.remark for key in read_table() if key.remark}
    assert {remark for remark in remarks if not remark.endswith(".")} == set()


@pytest.mark.parametrize("network", NETWORKS)
def test_every_key_is_explained(network):
    """The error about each key names a key that the file can have, or why there is none."""
    explainer = KeyExplainer({"model": NETWORKS[network]}, ROOT)
    for key in read_table():
        text = explainer.explain(key.path)
        targets = [".".join(place[0]) for place in key.places]
        options = [".".join(option) for place in key.places for option in place]
        if targets:
            assert any(option in text for option in options), key
        else:
            assert "has no equivalent" in text, key
            assert key.remark.removesuffix(".") in text, key


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("training.epochs", ". epochs is training.max_epochs"),
        ("training.optimizer", ". optimizer has no equivalent"),
        ("optimizer", ". optimizer has no equivalent"),
    ],
)
def test_a_key_of_several_toolkits_names_none_of_them(path, answer):
    text = explain(path)
    assert text.startswith(answer)
    assert not any(toolkit in text for toolkit in PAGES)


def test_a_key_of_one_toolkit_or_in_its_file_names_it():
    assert ". dataset_cfg of JoeyNMT is data.train" in explain("data.dataset_cfg")
    values = {"joeynmt_version": 2, "model_dir": "m", "use_cuda": True, "training": {"epochs": 3}}
    assert ". epochs of JoeyNMT is training.max_epochs" in explain("training.epochs", values)


@pytest.mark.parametrize(
    ("network", "path", "answer"),
    [
        ("transformer", "model.encoder.hidden_size", "is model.embedding"),
        ("recurrent", "model.encoder.hidden_size", "is model.encoder.units"),
        ("recurrent", "model.decoder.hidden_size", "is model.decoder.units"),
        ("recurrent", "model.encoder.ff_size", "is model.encoder.feed_forward (type: transformer)"),
        ("transformer", "model.encoder.0.hidden_size", "is model.embedding"),
        ("transformer", "model.encoder.ff-size", "is model.encoder.feed_forward"),
        ("transformer", "model.decoder.num_heads", "is model.decoder.heads"),
    ],
)
def test_key_depends_on_the_network(network, path, answer):
    text = explain(path, {"model": NETWORKS[network]})
    assert text.split(". ", 2)[1].endswith(answer)


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("training.warmup_steps", " here. Did you mean training.schedule.warmup_steps?"),
        ("tune.epochs", ". epochs is tune.max_epochs"),
        ("model.attention.score", ""),  # evaluation of OpenNMT-tf at the top of a file only
        ("nonsense", ""),
    ],
)
def test_place_of_a_key(path, answer):
    assert explain(path, {"tune": {}}) == answer


FILES = {
    "OpenNMT-tf": "data: {train_features_file: a, train_labels_file: b}\nmodel_dir: m\n"
    "params: {optimizer: Adam}\ntrain: {max_step: 100}",
    "OpenNMT-py": "data: {corpus_1: {path_src: a, path_tgt: b}}\nsave_model: m\nencoder_type: rnn\n"
    "train_steps: 100\nsrc_vocab: v",
    "eole": "data: {corpus_1: {path_src: a}}\nmodel: {architecture: transformer, hidden_size: 64}\n"
    "training: {train_steps: 100, model_path: m}",
    "JoeyNMT": "name: x\ndata: {train: a, dev: b, src: {lang: de}}\ntesting: {beam_size: 5}\n"
    "use_cuda: false\ntraining: {optimizer: adam}",
    "Sockeye": "prepared_data: d\nvalidation_source: a\nvalidation_target: b\nnum_layers: 6:6",
    "fairseq": "task: {_name: translation}\noptimization: {max_update: 9, lr: [0.1]}\n"
    "dataset: {max_tokens: 4096}\ncriterion: {_name: cross_entropy}",
    "Keras": '{"class_name": "Functional", "config": {}, "registered_name": "Functional"}',
}


@pytest.mark.parametrize("toolkit", FILES)
def test_file_of_a_toolkit_names_its_page(toolkit, tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text(FILES[toolkit], encoding="utf-8")
    with pytest.raises(UserError) as caught:
        load(path)
    assert f"a configuration of {toolkit}: docs/coming-from/{PAGES[toolkit]}" in str(caught.value)
    assert (DOCS / PAGES[toolkit]).is_file()


def test_keys_in_an_unknown_section_are_explained(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text(f"{FILES['fairseq']}\n", encoding="utf-8")
    with pytest.raises(UserError) as caught:
        load(path)
    text = str(caught.value)
    assert f"{path}:1: task: {{'_name': 'translation'}} is not a choice. " in text
    assert f"{path}:1: task._name: unknown key. _name of fairseq is task" in text
    assert f"{path}:2: optimization.max_update: unknown key. max_update of fairseq is" in text


def test_file_of_regard_is_not_of_another_toolkit():
    values = {"name": "x", "data": {"train": "a.tsv"}, "training": {"lr": 1, "epochs": 2}}
    assert KeyExplainer(values, ROOT).toolkit is None
