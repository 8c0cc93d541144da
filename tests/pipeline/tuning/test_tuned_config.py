"""The configuration that a search writes."""

from pathlib import Path

import pytest

from regard.core.errors import UserError
from regard.pipeline.config import load
from regard.pipeline.tuning.tuned_config import (
    OriginalConfig,
    check_output,
    output_path,
    write_tuned_config,
)

TEXT = """\
# Mine.
name: a
data:
  root: data
  train: a.tsv   # pairs
model: {dropout: 0.1}
tune:
  search_space:
    model.dropout: {linear: [0.0, 0.5]}
    model.attention: {choice: [{score: general}, {score: additive}]}
"""
TUNED = TEXT.replace("{dropout: 0.1}", "{dropout: 0.3, attention: {score: additive}}")
TABLE_PATH = "/somewhere/trials.json"
VALUES = {"model.dropout": 0.3, "model.attention": {"score": "additive"}}
TABLE = {
    "objective": "bleu",
    "algorithm": "random",
    "trials": [{"trial": 2, "values": VALUES, "score": 23.0, "epochs": 1}, {"trial": 1}],
}


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(TEXT)
    return path


def error_of(call, *arguments):
    with pytest.raises(UserError) as info:
        call(*arguments)
    return info.value


def test_output_path(source, tmp_path):
    tuned = tmp_path / "a.tuned.yaml"
    assert output_path(source, None, False) == tuned
    tuned.touch()
    error = error_of(output_path, source, None, False)
    assert (error.where, "--force" in error.remedy) == (str(tuned), True)
    assert output_path(source, None, True) == tuned
    assert "is the configuration itself" in error_of(output_path, source, source, True).message
    error = error_of(output_path, source, tmp_path, True)
    assert (error.message, error.where) == ("The output is a folder.", str(tmp_path))


def test_tuned_config(source, tmp_path):
    original = OriginalConfig.of(load(source))
    path = tmp_path / "a.tuned.yaml"
    write_tuned_config(original, path, TABLE, TABLE_PATH)
    head, _, rest = path.read_text().partition("\n\n")
    lines = head.splitlines()
    assert lines[0].startswith("# Tuned by `regard tune a.yaml` on 20")
    assert lines[1] == "#   model.dropout: 0.3   (was 0.1)"
    assert lines[2].startswith('#   model.attention: {"score": "additive"}   (was ')
    assert lines[3] == "# Trial 2 of 2 trials (random): BLEU 23.00 on the eval split after 1 epoch."
    assert rest == TUNED
    assert load(path).model.attention.score.type == "additive"


def test_items_of_a_list(tmp_path):
    path, tuned = tmp_path / "a.yaml", tmp_path / "b.yaml"
    text = TEXT.replace("dropout: 0.1", "encoder: [{units: 8}, {type: embedding}]")
    path.write_text(text)
    trial = {**TABLE["trials"][0], "values": {"model.encoder.0.units": 16}}
    table = {**TABLE, "trials": [trial]}
    write_tuned_config(OriginalConfig.of(load(path)), tuned, table, TABLE_PATH)
    assert "#   model.encoder.0.units: 16   (was 8)" in tuned.read_text()
    assert tuned.read_text().endswith(text.replace("units: 8", "units: 16"))
    assert load(tuned).model.encoder[0].units == 16


def test_given_values_are_in_the_tuned_file(source, tmp_path):
    options = ["data.format=csv", "training.max_epochs=3", "model.dropout=0.2"]
    config = load(source, options=options).with_values({"search.type": "greedy"})
    tuned = tmp_path / "b.yaml"
    write_tuned_config(OriginalConfig.of(config), tuned, TABLE, TABLE_PATH)
    best = {"model.dropout": 0.3, "model.attention": {"score": "additive"}}
    assert load(tuned) == config.with_values(best)
    assert "regard tune a.yaml --set data.format=csv --set " in tuned.read_text()
    assert "#   model.dropout: 0.3   (was 0.2)" in tuned.read_text()


def test_a_mapping_is_tuned_as_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = load({"name": "a", "data": {"train": "a.tsv"}, "model": {"dropout": 0.1}})
    original = OriginalConfig.of(config)
    path = output_path(original.path, None, False)
    write_tuned_config(original, path, TABLE, TABLE_PATH)
    assert path == Path("a.tuned.yaml")
    assert load(path).model.dropout == 0.3


def test_edits_during_the_search_have_no_effect(source, tmp_path):
    original = OriginalConfig.of(load(source))
    source.write_text(TEXT.replace("model: {dropout: 0.1}\n", ""))
    write_tuned_config(original, tmp_path / "b.yaml", TABLE, TABLE_PATH)
    assert (tmp_path / "b.yaml").read_text().endswith(TUNED)


def test_write_error_contains_the_values(source, tmp_path):
    original, path = OriginalConfig.of(load(source)), tmp_path / "b.yaml"
    path.mkdir()  # since the search began
    error = error_of(write_tuned_config, original, path, TABLE, TABLE_PATH)
    assert error.where == str(path)
    assert error.message.startswith("The search completed, but its file cannot be written: ")
    assert "Best values: model.dropout 0.3, model.attention " in error.remedy
    assert TABLE_PATH in error.remedy


def test_check_finds_a_file_that_cannot_be_written(source, tmp_path):
    path = tmp_path / f"{'b' * 250}.yaml"
    error = error_of(check_output, OriginalConfig.of(load(source)), path, VALUES)
    assert error.message == "The file cannot be written: File name too long."


def test_check_leaves_no_file(source, tmp_path):
    check_output(OriginalConfig.of(load(source)), tmp_path / "b.yaml", VALUES)
    assert [path.name for path in tmp_path.iterdir()] == ["a.yaml"]


def test_relative_paths_in_another_folder(source, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    error = error_of(check_output, OriginalConfig.of(load(source)), other / "b.yaml", VALUES)
    assert error.message.startswith(f"Relative paths in {source} would be wrong in ")
    source.write_text(TEXT.replace("root: data", f"root: {tmp_path}/data"))
    check_output(OriginalConfig.of(load(source)), other / "b.yaml", VALUES)


def test_check_finds_anchors(source, tmp_path):
    network = "encoder: &e {type: transformer, layers: 1}, decoder: *e"
    source.write_text(TEXT.replace("model: {dropout: 0.1}", f"model: {{{network}}}"))
    original, values = OriginalConfig.of(load(source)), {"model.encoder.layers": 2}
    error = error_of(check_output, original, tmp_path / "b.yaml", values)
    assert error.where == str(source)
    assert "anchors" in error.remedy
