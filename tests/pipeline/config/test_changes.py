"""Given values: ``--set`` and ``Config.with_values``."""

import copy
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.core.errors import UserError
from regard.pipeline.config import load

TEXT = """\
name: tiny
data:
  train: train.tsv
  root: data
model:
  encoder:
    - type: recurrent
      units: 16
    - {type: recurrent, units: 32}
  decoder: {units: 48}
training: {max_epochs: 9, batch_tokens: 1000}
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "sub" / "tiny.yaml"
    path.parent.mkdir()
    path.write_text(TEXT)
    return path


def refusal(function, *arguments, **options):
    with pytest.raises(UserError) as error:
        function(*arguments, **options)
    return str(error.value).removesuffix(
        "\n`regard config reference` prints all options with their defaults."
    )


@pytest.mark.parametrize(
    ("option", "key", "expected"),
    [
        ("training.max_epochs=3", "training.max_epochs", 3),
        ("training.max_epochs=null", "training.max_epochs", None),
        ("training.max_epochs=", "training.max_epochs", None),
        (" training.learning_rate =1e-3", "training.learning_rate", 1e-3),
        ("model.encoder.1.units=64", "model.encoder.1.units", 64),
        ("training={max_epochs: 2}", "training.batch_tokens", 1000),
        ("evaluation.metrics=[bleu, chrf]", "evaluation.metrics", ["bleu", "chrf"]),
        ("search.type=greedy", "search.type", "greedy"),
        ("data.train='a=b.tsv'", "data.train", "a=b.tsv"),
    ],
)
def test_a_value_is_typed_as_in_yaml(path, option, key, expected):
    value = load(path, options=[option]).model_dump(mode="json")
    for part in key.split("."):
        value = value[int(part) if isinstance(value, list) else part]
    assert value == expected


def test_the_value_alone_differs_from_the_file(path):
    changed = load(path, options=["model.encoder.0.units=8", "training.max_epochs=3"])
    path.write_text(TEXT.replace("units: 16", "units: 8").replace("epochs: 9", "epochs: 3"))
    assert changed == load(path)


def test_the_last_value_of_a_key_counts(path):
    config = load(path, options=["training.max_epochs=3", "training={max_epochs: 4}"])
    assert config.training.max_epochs == 4


def test_a_given_value_can_complete_the_file(path):
    path.write_text(TEXT.replace("name: tiny\n", ""))
    assert load(path, options=["name=other"]).name == "other"


def test_another_type_replaces_the_section(path):
    config = load(path, options=["model.encoder.0={type: convolutional}"])
    assert [encoder.type for encoder in config.model.encoder] == ["convolutional", "recurrent"]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("training.max_epochs", "--set: 'training.max_epochs' is not KEY=VALUE."),
        ("=3", "--set: '=3' is not KEY=VALUE."),
        ("training.max_epochs=x", "--set training.max_epochs: a whole number"),
        ("training.max_epchs=3", "--set training.max_epchs: unknown key. Did you mean max_epochs?"),
        ("training.max_epochs=[1", "--set training.max_epochs=[1: invalid YAML"),
        ("model.encoder.2.units=3", "--set model.encoder.2.units: '2' is no item of a list of 2"),
        ("data.root=${MISSING}", "--set data.root=${MISSING}: the environment variable MISSING"),
    ],
)
def test_an_error_names_the_option(path, option, message):
    assert refusal(load, path, options=[option]).startswith(message)


def test_errors_of_the_file_keep_their_lines(path):
    path.write_text(TEXT.replace("units: 32", "units: x").replace("tokens: 1000", "tokens: x"))
    options = ["model.encoder.0.units=y", "training.max_epochs=3"]
    first, *others = refusal(load, path, options=options).splitlines()
    assert first.startswith("--set model.encoder.0.units: a whole number")
    starts = [f"{path}:9: model.encoder.1.units: ", f"{path}:11: training.batch_tokens: "]
    assert [line.startswith(start) for line, start in zip(others, starts, strict=True)] == [
        True,
        True,
    ]


def test_with_values_returns_a_checked_copy(path):
    config = load(path)
    changed = config.with_values({"training.max_epochs": 3, "model.decoder": {"units": 64}})
    assert (config.training.max_epochs, changed.training.max_epochs) == (9, 3)
    assert changed.model.decoder.units == 64
    assert changed.with_values({"training.max_epochs": 9, "model.decoder.units": 48}) == config
    assert refusal(config.with_values, {"training.max_epochs": "x"}) == (
        "training.max_epochs: a whole number or null is expected, 'x' was given"
    )
    assert copy.deepcopy(changed).with_values({}) == changed


def test_relative_paths(path, monkeypatch, tmp_path):
    config = load(os.path.relpath(path))
    assert config.data.root == str(path.parent / "data")
    monkeypatch.chdir(tmp_path)
    assert config.with_values({"training.max_epochs": 3}).data.root == config.data.root
    assert config.with_values({"data.root": "other"}).data.root == str(tmp_path / "other")
    assert load(path, options=["data.root=x"]).data.root == str(tmp_path / "x")


def test_secrets_are_recorded_as_references(path, monkeypatch):
    monkeypatch.setenv("SECRET_FOLDER", "a-secret-value")
    config = load(path, options=["data.train=${SECRET_FOLDER}/x.tsv"])
    assert config.data.train == "a-secret-value/x.tsv"
    assert config.recorded()["data"]["train"] == "${SECRET_FOLDER}/x.tsv"
    assert config.origin.assignments == ["data.train=${SECRET_FOLDER}/x.tsv"]
    assert "a-secret-value" not in refusal(config.with_values, {"data.format": "${SECRET_FOLDER}"})


def test_a_replaced_value_is_recorded_as_it_is(path, monkeypatch):
    monkeypatch.setenv("PART", "/corpora")
    config = load(path, options=["data.root=${PART}/x"])
    assert config.recorded()["data"]["root"] == "${PART}/x"
    changed = config.with_values({"data.root": "/copies/corpora/x"})
    assert changed.recorded()["data"]["root"] == "/copies/corpora/x"


LITERAL, REFERENCE = "data.root=/hidden", "data.root=${PART}"


@pytest.mark.parametrize(
    ("options", "recorded"),
    [
        ([LITERAL, REFERENCE], [REFERENCE]),
        ([REFERENCE, LITERAL], [LITERAL]),
        ([LITERAL, "data.format=tsv", REFERENCE], ["data.format=tsv", REFERENCE]),
        (
            ["training.checkpoint_averaging.checkpoints=3", "training.checkpoint_averaging=null"],
            ["training.checkpoint_averaging=null"],
        ),
        (["model.encoder.0.units=8", "model.encoder.0.units=2"], ["model.encoder.0.units=2"]),
    ],
)
def test_a_value_that_does_not_count_is_not_recorded(path, monkeypatch, options, recorded):
    monkeypatch.setenv("PART", "/corpora")
    config = load(path, options=options)
    assert config.origin.assignments == recorded
    assert load(path, options=recorded) == config


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "model.decoder={type: transformer, layers: 2}",
                "model.decoder={type: transformer, layers: 3}",
                "model.decoder.feed_forward=64",
                "model.decoder={type: luong, units: 24}",
                "model.decoder.type=luong",
                "model.decoder.type=transformer",
                "model.encoder=[{type: recurrent, units: 8}, {type: recurrent, units: 4}]",
                "model.encoder.0.units=2",
                "model.encoder.1={type: embedding}",
                "model.encoder={type: transformer}",
                "training=null",
                "training={max_epochs: 4}",
                "training.max_epochs=3",
                "training={}",
                "data.root=${PART}",
                "data={root: /corpora, format: csv}",
            ]
        ),
        max_size=5,
    )
)
def test_recorded_values_load_the_same_configuration(options):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PART", "/parts")
        path = Path(folder, "tiny.yaml")
        path.write_text(TEXT)
        try:
            config = load(path, options=options)
        except UserError:
            return
        assert load(path, options=config.origin.assignments) == config


def test_a_literal_password_is_refused_even_if_another_value_follows(path, monkeypatch):
    monkeypatch.setenv("PW", "abc")
    mysql = "metadata={mysql: {host: localhost, database: d, user: u, password: hidden}}"
    message = refusal(load, path, options=[mysql, "metadata.mysql.password=${PW}"])
    assert message.startswith(
        "--set metadata.mysql.password: must refer to an environment variable"
    )
    assert "hidden" not in message


@pytest.mark.parametrize("section", ["data={}", "data={format: tsv}"])
def test_a_completed_section_keeps_its_unset_variable(path, monkeypatch, section):
    monkeypatch.delenv("UNSET", raising=False)
    path.write_text(TEXT.replace("train: train.tsv", "train: ${UNSET}train.tsv"))
    message = refusal(load, path, options=[section])
    assert message.startswith(f"{path}:3: data.train: the environment variable UNSET is not set")


def test_another_type_replaces_a_variable_that_is_not_set(path, monkeypatch):
    monkeypatch.delenv("UNSET", raising=False)
    path.write_text(TEXT.replace("units: 48", "type: luong, units: '${UNSET}'"))
    config = load(
        path,
        options=[
            "model.encoder=null",
            "model.encoder={type: transformer}",
            "model.decoder={type: transformer}",
        ],
    )
    assert config.model.decoder.type == "transformer"


def test_a_given_value_replaces_one_whose_variable_is_not_set(path, monkeypatch):
    monkeypatch.delenv("UNSET", raising=False)
    path.write_text(TEXT.replace("root: data", "root: ${UNSET}"))
    assert load(path, options=["data.root=/corpora"]).data.root == "/corpora"
    assert load(path, options=["data={root: /corpora}"]).data.root == "/corpora"
    assert refusal(load, path, options=["data.eval=e.tsv"]).startswith(f"{path}:4: data.root: ")


def test_arguments_load_the_same_configuration(path):
    config = load(path, options=["training.max_epochs=3"])
    changed = config.with_values({"model.decoder": {"units": 64}})
    file, *options = changed.origin.arguments
    assert options[::2] == ["--set", "--set"]
    assert load(file, options=options[1::2]) == changed
    assert repr(config) == (
        f"Config('tiny', task='translation', file={str(path)!r}, values=['training.max_epochs=3'])"
    )
    values = {"name": "tiny", "data": {"train": "a.tsv"}}
    assert load(values).with_values({"training.max_epochs": 3}).origin.arguments == []
    assert repr(load(values)) == "Config('tiny', task='translation')"


def test_only_a_loaded_configuration_can_be_changed(path):
    config = load(path)
    created = type(config).model_validate(config.model_dump())
    with pytest.raises(ValueError, match="load_config"):
        created.with_values({"training.max_epochs": 3})
