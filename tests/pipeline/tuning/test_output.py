"""The file that a search writes: where it may go, and what is in it."""

import pytest

from components.errors import UserError
from pipeline.config import load
from pipeline.tuning import output

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


def test_what_is_written(source, tmp_path):
    config = load(source)
    path = tmp_path / "a.tuned.yaml"
    output.write(source, path, config, VALUES, output.header(source, config, FOUND))
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
    assert read.data == config.data


def test_a_try_leaves_nothing(source, tmp_path):
    output.check(source, tmp_path / "b.yaml", load(source), VALUES)
    assert [path.name for path in tmp_path.iterdir()] == ["a.yaml"]


def test_relative_paths_keep_their_meaning(source, tmp_path):
    other = tmp_path / "other"
    error = refused(output.check, source, other / "b.yaml", load(source), VALUES)
    assert error.message == f"there is no folder {other}"
    other.mkdir()
    error = refused(output.check, source, other / "b.yaml", load(source), VALUES)
    assert error.message.startswith(f"relative paths of {source} would mean something else in ")
    source.write_text(TEXT.replace("root: data", f"root: {tmp_path}/data"))
    output.check(source, other / "b.yaml", load(source), VALUES)


def test_anchors_are_found_out_before_the_search(source, tmp_path):
    text = TEXT.replace("model: {dropout: 0.1}", "model: {dropout: &d 0.1}")
    source.write_text(text.replace("tune:", "training: {label_smoothing: *d}\ntune:"))
    error = refused(output.check, source, tmp_path / "b.yaml", load(source), VALUES)
    assert error.where == str(source)
    assert "anchors" in error.remedy
