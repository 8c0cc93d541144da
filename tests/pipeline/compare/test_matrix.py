import os
from pathlib import Path

import pytest

from regard.core.errors import UserError
from regard.pipeline.compare.folder import ComparisonFolder
from regard.pipeline.compare.matrix import read_comparison
from regard.pipeline.config import load
from regard.pipeline.workspace import Workspace

SHIPPED = Path(__file__).parents[3] / "configs" / "compare"
HEAD = "name: m\nbase: base.yaml\nmodels:\n"
BASE = """\
name: base
data: {root: d, train: t.tsv}
tokenizer: {vocab_size: 100}
model:
  encoder: {type: recurrent, units: 4}
"""


SEARCH = "tune: {search_space: {model.dropout: {linear: [0.0, 0.5]}}}\n"


def read(folder, text, name=None):
    (folder / "base.yaml").write_text(BASE)
    (folder / "m.yaml").write_text(text)
    return read_comparison([folder / "m.yaml"], Workspace(folder / "w"), name)


def error_of(folder, text):
    with pytest.raises(UserError) as info:
        read(folder, text)
    return info.value.message.replace(f"{folder}/", "")


def test_matrix(tmp_path):
    models = "  a: {}\n  b: {model.encoder.units: 8}\n  c: {model: {attention: null}}\n"
    comparison = read(tmp_path, HEAD + models)
    assert (comparison.name, comparison.labels) == ("m", ["a", "b", "c"])
    a, b, c = (member.config for member in comparison.members)
    assert [config.name for config in (a, b, c)] == ["m-a", "m-b", "m-c"]
    assert (a.model.encoder.units, b.model.encoder.units) == (4, 8)
    assert (a.model.attention is None, c.model.attention) == (False, None)
    assert a.data.root == str(tmp_path / "d")


def test_references_of_one_model(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", "s3cret-value")
    text = "name: m\nbase: {data: {root: '/${SECRET}', train: t.tsv}}\nmodels:\n"
    text += "  a: {training.warm_start.model: '${SECRET}/m'}\n"
    text += "  b: {training.warm_start.model: s3cret-value}\n"
    a, b = (member.config.recorded() for member in read(tmp_path, text).members)
    assert a["data"]["root"] == b["data"]["root"] == "/${SECRET}"
    assert a["training"]["warm_start"]["model"] == str(tmp_path / "${SECRET}/m")
    assert b["training"]["warm_start"]["model"] == "s3cret-value"


def test_a_password_in_the_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("PASSWORD", "s3cret-value")
    mysql = "metadata: {mysql: {host: h, database: d, user: u, password: '${PASSWORD}'}}"
    text = f"name: m\nbase: {{data: {{train: t.tsv}}, {mysql}}}\nmodels: {{a: , b: CHANGE}}\n"
    config = read(tmp_path, text.replace("CHANGE", "")).members[1].config
    assert config.recorded()["metadata"]["mysql"]["password"] == "${PASSWORD}"
    change = "{metadata.mysql.password: s3cret-value}"
    message = error_of(tmp_path, text.replace("CHANGE", change))
    assert "models.b.metadata.mysql.password: must refer to an environment variable" in message
    assert "s3cret" not in message
    message = error_of(tmp_path, text.replace("CHANGE", "{training.seed: '${PASSWORD}'}"))
    assert "models.b.training.seed: a whole number is expected, '${PASSWORD}' was" in message


def test_gate_is_removed(tmp_path):
    thresholds = "evaluation: {thresholds: {bleu: 30.0}}\n"
    text = "name: m\nbase: {data: {train: t.tsv}, evaluation: {thresholds: {bleu: 9.0}}}\n"
    config = read(tmp_path, text + f"models:\n  a:\n  b:\n    {thresholds}").members[1].config
    assert config.evaluation.thresholds == {}
    assert config.evaluation.production is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- 1\n", "m.yaml:1: must be a mapping (name: ..., base: ..., models: ...)"),
        ("name: [\n", "m.yaml:2: invalid YAML"),
        ("name: x\n", "A comparison needs at least two configurations."),
        ("name: m\nbase: base.yaml\n", "m.yaml:1: models: is missing: a label for each model"),
        ("base: x.yaml\nmodels: {a: , b: }\n", "m.yaml:1: name: is missing"),
        ("name: M\nbase: b\nmodels: {a: , b: }\n", "m.yaml:2: base: the file"),
        ("name: m\nbase: b\nmodel: {}\nmodels: {a: }\n", "m.yaml:3: model: unknown key"),
        ("name: m\nbase: 3\nmodels: {a: , b: }\n", "m.yaml:2: base: must be a whole configuration"),
        (HEAD + "  a:\n", "m.yaml:3: models: a comparison needs at least two"),
        (HEAD + "  a:\n  c: 3\n", "m.yaml:5: models.c: a mapping (key: value) or null is expected"),
        (HEAD + "  a:\n  d: {a.b: 1, a: {b: 2}}\n", "m.yaml:5: models.d.a.b: duplicate key"),
        (HEAD + "  a:\n  b:\n    name: other\n", "m.yaml:6: models.b.name: remove it"),
        (  # what is wrong with the base is listed once, with its own location
            "name: m\nbase:\n  data: {train: t}\n  model: {embedding: 0}\nmodels: {a: , b: }\n",
            "m.yaml:4: base.model.embedding: must be greater than or equal to 1; 0 was given",
        ),
        (  # invalid only in combination
            HEAD + "  a: {}\n  b:\n    search: {type: beam, beam_size: 200}\n",
            "m.yaml:6: models.b.search.beam_size: 200 is more than the 100 ",
        ),
        (HEAD + f"  {'x' * 62}: {{}}\n  b: {{}}\n", f"{'x' * 62}: name: 'm-xxxx"),
    ],
)
def test_a_problem_has_file_line_and_key(tmp_path, text, problem):
    message = error_of(tmp_path, text)
    assert problem in message
    assert "\n" not in message


def test_problems_of_all_models_are_listed(tmp_path):
    models = "  a:\n    model.encoder.unitz: 8\n  b:\n    model.attention.score: genral\n"
    first, second = error_of(tmp_path, HEAD + models).split("\n")
    assert "m.yaml:5: models.a.model.encoder.unitz: unknown key. Did you mean units?" in first
    assert "m.yaml:7: models.b.model.attention.score.type: 'genral' is not a choice." in second


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ("tokenizer.vocab_size: 200", "tokenizer.vocab_size"),
        ("data: {train: u.tsv}", "data.train"),
        ("data: {train: {source: a, target: b}}", "data.train"),
        ("evaluation: {lowercase: true}", "evaluation.lowercase"),
        ("evaluation.length_buckets: [5]", "evaluation.length_buckets"),
    ],
)
def test_models_must_have_the_same_data_tokenizer_and_evaluation(tmp_path, change, key):
    message = error_of(tmp_path, HEAD + f"  a: {{}}\n  b: {{{change}}}\n")
    assert f"m.yaml:5: models.b.{key}: differs from a; all models must have the same" in message


@pytest.fixture
def files(tmp_path):
    """Two compatible configurations."""
    for name, units in (("one", 4), ("two", 8)):
        text = BASE.replace("name: base", f"name: {name}").replace("units: 4", f"units: {units}")
        (tmp_path / f"{name}.yaml").write_text(text)
    return [tmp_path / "one.yaml", tmp_path / "two.yaml"]


def test_spans_need_a_last_one(tmp_path):
    text = "name: m\nbase:\n  data: {{train: '{{SPAN}}.tsv'{}}}\nmodels: {{a: , b: }}\n"
    message = error_of(tmp_path, text.format(""))
    assert "\n" not in message
    assert "m.yaml:3: base.data.spans: set last" in message
    comparison = read(tmp_path, text.format(", spans: {last: 7}"))
    assert comparison.members[0].config.data.spans.last == 7


def test_configurations_are_labelled_with_their_names(tmp_path, files):
    comparison = read_comparison(files, Workspace(tmp_path))
    assert [m.config.name for m in comparison.members] == ["comparison-one", "comparison-two"]
    assert read_comparison(files, Workspace(tmp_path), "x").members[0].config.name == "x-one"


def test_given_values_change_every_model(tmp_path, files):
    options = ["training.max_epochs=3", "data.root=other"]
    comparison = read_comparison(files, Workspace(tmp_path), options=options)
    configs = [member.config for member in comparison.members]
    assert [config.training.max_epochs for config in configs] == [3, 3]
    assert {config.data.root for config in configs} == {os.path.abspath("other")}
    read(tmp_path, f"{HEAD}  a: {{training.max_epochs: 5}}\n  b:\n")
    comparison = read_comparison([tmp_path / "m.yaml"], Workspace(tmp_path), None, options[:1])
    assert [member.config.training.max_epochs for member in comparison.members] == [3, 3]


def test_loaded_configurations_keep_their_changes(tmp_path, files):
    configs = [load(path).with_values({"training.seed": 7}) for path in files]
    comparison = read_comparison(configs, Workspace(tmp_path))
    assert [member.config.training.seed for member in comparison.members] == [7, 7]
    with pytest.raises(UserError, match="at least two"):
        read_comparison(configs[:1], Workspace(tmp_path))


def test_configurations_with_a_search_space_can_be_compared(tmp_path, files):
    for path in files:
        path.write_text(path.read_text() + SEARCH)
    assert len(read_comparison(files, Workspace(tmp_path)).members) == 2


def test_configurations_must_have_the_same_tokenizer(tmp_path, files):
    files[1].write_text(files[1].read_text().replace("vocab_size: 100", "vocab_size: 200"))
    with pytest.raises(UserError, match=r"two.yaml:3: tokenizer.vocab_size: differs from one"):
        read_comparison(files, Workspace(tmp_path))


def test_invalid_sets_of_configurations(tmp_path, files):
    with pytest.raises(UserError, match="one is used by two configurations"):
        read_comparison([files[0], files[0]], Workspace(tmp_path))
    with pytest.raises(UserError, match="at least two"):
        read_comparison(files[:1], Workspace(tmp_path))
    with pytest.raises(UserError, match="Invalid name 'A b'"):
        read_comparison(files, Workspace(tmp_path), "A b")


def test_written_configuration_equals_the_validated_one(tmp_path):
    text = "name: m\nbase: {data: {root: '$${X} d', train: t.tsv}}\nmodels: {a: , b: }\n"
    workspace, member = Workspace(tmp_path / "w"), read(tmp_path, text).members[0]
    assert member.config.data.root == str(tmp_path / "${X} d")
    path = ComparisonFolder.of(workspace, "m").write_config(member)
    assert load(path, workspace.home) == member.config


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_comparisons_are_valid(path, tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    comparison = read_comparison([path], Workspace(tmp_path / "w"))
    sections = ("model", "training", "augmentation", "search")
    digests = {member.config.digest(*sections) for member in comparison.members}
    assert len(digests) == len(comparison.members)
