"""The file that a search writes: where it may go, and what is in it."""

import pytest

from components.errors import UserError
from pipeline.config import load
from pipeline.tuning import output
from pipeline.tuning.output import Original

TEXT = """\
# Mine.
name: a
data:
  root: data
  train: a.tsv   # pairs
model: {dropout: 0.1}
tune:
  over:
    model.dropout: {linear: [0.0, 0.5]}
    model.attention: {choice: [{score: general}, {score: additive}]}
"""
VALUES = {"model.dropout": 0.3, "model.attention": {"score": "additive"}}
FOUND = {
    "objective": "bleu",
    "algorithm": "random",
    "trials": [{"trial": 2, "values": VALUES, "score": 23.0, "epochs": 1}, {"trial": 1}],
    "table": "/somewhere/trials.csv",
}


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(TEXT)
    return path


def refused(call, *arguments):
    with pytest.raises(UserError) as caught:
        call(*arguments)
    return caught.value


def test_it_goes_beside_the_original_and_over_nothing(source, tmp_path):
    assert output.target(source, None, False) == tmp_path / "a.tuned.yaml"
    (tmp_path / "a.tuned.yaml").touch()
    error = refused(output.target, source, None, False)
    assert error.where == str(tmp_path / "a.tuned.yaml")
    assert "--force" in error.remedy
    assert output.target(source, None, True) == tmp_path / "a.tuned.yaml"
    assert "the file itself" in refused(output.target, source, source, True).message
    error = refused(output.target, source, tmp_path, True)
    assert (error.message, error.where) == ("this is a folder, not a file", str(tmp_path))


def test_what_is_written(source, tmp_path):
    original = Original.read(source)
    path = tmp_path / "a.tuned.yaml"
    output.write(original, path, FOUND)
    head, _, rest = path.read_text().partition("\n\n")
    lines = head.splitlines()
    assert lines[0].startswith("# `regard tune a.yaml` found these values on 20")
    assert lines[1] == "#   model.dropout: 0.3   (before: 0.1)"
    assert lines[2].startswith('#   model.attention: {"score": "additive"}   (before: ')
    assert lines[3] == "# Trial 2 of 2 (random): BLEU 23.00 on the eval split, 1 epoch."
    changed = "model: {attention: {score: additive}, dropout: 0.3}"
    assert rest == TEXT.replace("model: {dropout: 0.1}", changed)
    read = load(path)
    assert read.model.dropout == 0.3
    assert read.model.attention.score.type == "additive"
    assert read.data == original.config.data


def test_what_is_edited_during_the_search_is_not_taken_up(source, tmp_path):
    original = Original.read(source)
    source.write_text(TEXT.replace("model: {dropout: 0.1}\n", ""))
    output.write(original, tmp_path / "b.yaml", FOUND)
    changed = "model: {attention: {score: additive}, dropout: 0.3}"
    text = (tmp_path / "b.yaml").read_text()
    assert text.endswith(TEXT.replace("model: {dropout: 0.1}", changed))


def test_ends_of_lines_are_those_of_the_original(source, tmp_path):
    source.write_bytes(TEXT.replace("\n", "\r\n").encode())
    original = Original.read(source)
    output.check(original, tmp_path / "b.yaml", VALUES)
    output.write(original, tmp_path / "b.yaml", FOUND)
    text = (tmp_path / "b.yaml").read_bytes()
    assert text.count(b"\r\n") == text.count(b"\n") > TEXT.count("\n")
    assert b"\r\r" not in text
    assert load(tmp_path / "b.yaml").model.dropout == 0.3


def test_where_it_cannot_be_written_the_values_are_told(source, tmp_path):
    original, path = Original.read(source), tmp_path / "b.yaml"
    path.mkdir()  # since the search began
    error = refused(output.write, original, path, FOUND)
    assert error.where == str(path)
    assert error.message.startswith("the search has ended, but its file cannot be written: ")
    assert "The best values: model.dropout 0.3, model.attention " in error.remedy
    assert "/somewhere/trials.csv" in error.remedy


def test_a_file_that_cannot_be_written_is_found_out_before_the_search(source, tmp_path):
    error = refused(output.check, Original.read(source), tmp_path / f"{'b' * 250}.yaml", VALUES)
    assert error.message == "cannot be written: File name too long"


def test_a_try_leaves_nothing(source, tmp_path):
    output.check(Original.read(source), tmp_path / "b.yaml", VALUES)
    assert [path.name for path in tmp_path.iterdir()] == ["a.yaml"]


def test_relative_paths_keep_their_meaning(source, tmp_path):
    other = tmp_path / "other"
    error = refused(output.check, Original.read(source), other / "b.yaml", VALUES)
    assert error.message == f"there is no folder {other}"
    other.mkdir()
    error = refused(output.check, Original.read(source), other / "b.yaml", VALUES)
    assert error.message.startswith(f"relative paths of {source} would mean something else in ")
    source.write_text(TEXT.replace("root: data", f"root: {tmp_path}/data"))
    output.check(Original.read(source), other / "b.yaml", VALUES)


def test_anchors_are_found_out_before_the_search(source, tmp_path):
    text = TEXT.replace("model: {dropout: 0.1}", "model: {dropout: &d 0.1}")
    source.write_text(text.replace("tune:", "training: {label_smoothing: *d}\ntune:"))
    error = refused(output.check, Original.read(source), tmp_path / "b.yaml", VALUES)
    assert error.where == str(source)
    assert "anchors" in error.remedy
