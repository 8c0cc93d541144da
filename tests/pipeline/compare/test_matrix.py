from __future__ import annotations

from pathlib import Path

import pytest

from components.errors import UserError
from pipeline.compare import matrix, report
from pipeline.config import load
from pipeline.workspace import Workspace

SHIPPED = Path(__file__).parents[3] / "configs" / "compare"
BASE = """\
name: base
data: {root: d, train: t.tsv}
tokenizer: {vocab_size: 100}
model:
  encoder: {type: recurrent, units: 4}
"""


def read(folder, text, name=None):
    (folder / "base.yaml").write_text(BASE)
    (folder / "m.yaml").write_text(text)
    return matrix.read([folder / "m.yaml"], Workspace(folder / "w"), name)


def refusal(folder, text):
    with pytest.raises(UserError) as caught:
        read(folder, text)
    return caught.value.message.replace(f"{folder}/", "")


def test_a_matrix_over_a_file(tmp_path):
    found = read(
        tmp_path,
        "name: m\nbase: base.yaml\nmodels:\n  a: {}\n  b: {model.encoder.units: 8}\n"
        "  c: {model: {attention: null}}\n",
    )
    assert (found.name, found.labels) == ("m", ["a", "b", "c"])
    a, b, c = (member.config for member in found.members)
    assert [config.name for config in (a, b, c)] == ["m-a", "m-b", "m-c"]
    assert (a.model.encoder.units, b.model.encoder.units) == (4, 8)
    assert (a.model.attention is None, c.model.attention) == (False, None)
    assert a.data.root == str(tmp_path / "d")


def test_nothing_is_pushed_so_nothing_is_held_against_a_model(tmp_path):
    floors = "evaluation: {floors: {bleu: 30.0}}\n"
    text = "name: m\nbase: {data: {train: t.tsv}, evaluation: {floors: {bleu: 9.0}}}\n"
    config = read(tmp_path, text + f"models:\n  a:\n  b:\n    {floors}").members[1].config
    assert config.evaluation.floors == {}
    assert config.evaluation.production is None


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("- 1\n", ["m.yaml:1: a mapping (name: ..., base: ..., models: ...) is expected"]),
        ("name: [\n", ["m.yaml:2: this is not YAML"]),
        ("name: x\n", ["one configuration alone cannot be compared"]),
        ("name: m\nbase: base.yaml\n", ["m.yaml:1: models: is missing: a label for each model"]),
        ("base: x.yaml\nmodels: {a: , b: }\n", ["m.yaml:1: name: is missing"]),
        (
            "name: M\nbase: b\nmodels: {a: , b: }\n",
            ["m.yaml:1: name: 'M' is not possible: a small"],
        ),
        ("name: m\nbase: b\nmodel: {}\nmodels: {a: }\n", ["m.yaml:3: model: unknown key"]),
        ("name: m\nbase: no.yaml\nmodels: {a: , b: }\n", ["m.yaml:2: base: there is no file no"]),
        ("name: m\nbase: 3\nmodels: {a: , b: }\n", ["m.yaml:2: base: a whole configuration, or"]),
        ("name: m\nbase: base.yaml\nmodels: {a: }\n", ["m.yaml:3: models: a comparison needs two"]),
        (
            "name: m\nbase: base.yaml\nmodels:\n  A b: {}\n  c: 3\n  d: {a.b: 1, a: {b: 2}}\n",
            [
                "m.yaml:4: models.A b: a label has small letters",
                "m.yaml:5: models.c: a mapping of the keys that change",
                "m.yaml:6: models.d.a.b: given twice, first in line 6",
            ],
        ),
        (
            "name: m\nbase: base.yaml\nmodels:\n  a:\n    model.encoder.unitz: 8\n  b:\n"
            "    model:\n      attention:\n        score: genral\n",
            [
                "m.yaml:5: models.a.model.encoder.unitz: unknown key; did you mean units?",
                "m.yaml:9: models.b.model.attention.score: 'genral' is not a choice; did you mean",
            ],
        ),
        (  # what is wrong with the base is told once, and where it stands
            "name: m\nbase:\n  data: {train: t.tsv}\n  model: {embedding: 0}\n"
            "models:\n  a: {}\n  b: {}\n",
            ["m.yaml:4: base.model.embedding: must be at least 1; 0 was given"],
        ),
        (  # impossible only together: told at the key that the model has changed
            "name: m\nbase: base.yaml\nmodels:\n  a: {}\n  b:\n"
            "    search: {type: beam, beam_size: 200}\n",
            ["m.yaml:6: models.b.search.beam_size: 200 is more than the 100 pieces"],
        ),
        (
            f"name: m\nbase: base.yaml\nmodels:\n  {'x' * 62}: {{}}\n  b: {{}}\n",
            [f"m.yaml:4: models.{'x' * 62}: the pipeline's name, m-{'x' * 62}, has more than 63"],
        ),
    ],
)
def test_all_that_is_wrong_is_told_with_file_line_and_key(tmp_path, text, lines):
    message = refusal(tmp_path, text)
    for line in lines:
        assert line in message
    assert len(message.split("\n")) == len(lines)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            "tokenizer.vocab_size: 200",
            "m.yaml:5: models.b.tokenizer.vocab_size: 200, but a has 100",
        ),
        ("data: {train: u.tsv}", "m.yaml:5: models.b.data.train: 'u.tsv', but a has 't.tsv'"),
        (
            "data: {train: {source: a, target: b}}",
            "m.yaml:5: models.b.data.train.source: 'a', but a has nothing",
        ),
        ("evaluation: {lowercase: true}", "models.b.evaluation.lowercase: true, but a has false"),
        (
            "evaluation.length_buckets: [5]",
            "m.yaml:5: models.b.evaluation.length_buckets: [5], but a has [10, 20, 30]",
        ),
    ],
)
def test_models_must_agree_in_what_the_numbers_mean(tmp_path, change, told):
    message = refusal(
        tmp_path, f"name: m\nbase: base.yaml\nmodels:\n  a: {{}}\n  b: {{{change}}}\n"
    )
    assert told in message


@pytest.fixture
def files(tmp_path):
    """Two configurations that agree."""
    for name in ("one", "two"):
        units = {"one": 4, "two": 8}[name]
        text = BASE.replace("name: base", f"name: {name}").replace("units: 4", f"units: {units}")
        (tmp_path / f"{name}.yaml").write_text(text)
    return [tmp_path / "one.yaml", tmp_path / "two.yaml"]


def test_no_span_may_come_in_between(tmp_path):
    text = "name: m\nbase:\n  data: {{train: '{{SPAN}}.tsv'{}}}\nmodels: {{a: , b: }}\n"
    message = refusal(tmp_path, text.format(""))
    assert message.count("\n") == 0
    assert "m.yaml:3: base.data.spans: a comparison needs data.spans.last" in message
    path = tmp_path / "m.yaml"
    path.write_text(text.format(", spans: {last: 7}"))
    assert matrix.read([path], Workspace(tmp_path)).members[0].config.data.spans.last == 7


def test_several_configurations_are_called_by_their_names(tmp_path, files):
    found = matrix.read(files, Workspace(tmp_path))
    assert [m.config.name for m in found.members] == ["comparison-one", "comparison-two"]
    assert matrix.read(files, Workspace(tmp_path), "x").members[0].config.name == "x-one"


def test_several_configurations_must_agree_too(tmp_path, files):
    files[1].write_text(files[1].read_text().replace("vocab_size: 100", "vocab_size: 200"))
    with pytest.raises(UserError, match=r"two.yaml:3: tokenizer.vocab_size: 200, but one has 100"):
        matrix.read(files, Workspace(tmp_path))


def test_two_of_one_name_and_one_alone_are_refused(tmp_path, files):
    with pytest.raises(UserError, match=r"one is also the name of .*one\.yaml"):
        matrix.read([files[0], files[0]], Workspace(tmp_path))
    with pytest.raises(UserError, match="cannot be compared"):
        matrix.read(files[:1], Workspace(tmp_path))
    with pytest.raises(UserError, match="'A b' is not possible"):
        matrix.read(files, Workspace(tmp_path), "A b")


def test_a_broken_configuration_is_told_as_the_run_would(tmp_path, files):
    files[1].write_text("name: two\ndata: {train: t.tsv}\nmodl: {}\n")
    with pytest.raises(UserError, match=r"two.yaml:3: modl: unknown key; did you mean model"):
        matrix.read(files, Workspace(tmp_path))


def test_what_is_written_for_the_run_is_what_was_checked(tmp_path):
    text = "name: m\nbase: {data: {root: '$${X} d', train: t.tsv}}\nmodels: {a: , b: }\n"
    (tmp_path / "m.yaml").write_text(text)
    workspace = Workspace(tmp_path / "w")
    member = matrix.read([tmp_path / "m.yaml"], workspace).members[0]
    assert member.config.data.root == str(tmp_path / "${X} d")
    path = report.Folder.of(workspace, "m").write_config(member)
    assert load(path, workspace.home) == member.config


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.yaml")), ids=lambda path: path.stem)
def test_what_is_shipped_is_right(path, tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    found = matrix.read([path], Workspace(tmp_path / "w"))
    digests = {member.config.digest("model") for member in found.members}
    assert len(digests) == len(found.members)


def test_the_papers_are_all_in_the_multi30k_matrix(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    found = matrix.read([SHIPPED / "multi30k-en-de.yaml"], Workspace(tmp_path))
    models = {member.label: member.config.model for member in found.members}
    assert models["none"].attention is None
    kinds = {
        (m.decoder.type, m.attention.score.type, m.attention.alignment.type)
        + ((m.decoder.input_feeding,) if m.decoder.type == "luong" else ())
        for m in models.values()
        if m.attention is not None
    }
    scores = ("dot", "general", "concat", "location")
    wanted = {("luong", score, "soft", feed) for score in scores for feed in (True, False)}
    wanted |= {("luong", "general", f"local_{kind}", True) for kind in "mp"}
    wanted |= {("bahdanau", "additive", "soft"), ("transformer", "scaled_dot", "soft")}
    assert kinds == wanted
    assert len(models) == 13
    # A table of ablations: the recurrent models differ in nothing but what their names say.
    sizes = {
        (m.encoder.units, m.decoder.units) for m in models.values() if hasattr(m.encoder, "units")
    }
    assert len(sizes) == 1


def test_dotted_keys_hold_in_the_base_too(tmp_path):
    text = "name: m\nbase: {data: {train: t.tsv}, model.encoder.units: 7}\nmodels:\n  a:\n  b:\n"
    assert read(tmp_path, text).members[0].config.model.encoder.units == 7


def test_a_model_has_no_name_of_its_own(tmp_path):
    text = "name: m\nbase: base.yaml\nmodels:\n  a: {}\n  b:\n    name: other\n"
    assert refusal(tmp_path, text).startswith("m.yaml:6: models.b.name: the pipeline of a model")
