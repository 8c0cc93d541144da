"""Every mistake names the file, the line, the key, what was given and what is possible."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.components.common.errors import UserError
from regard.pipeline.config import load

GOOD = """\
name: tiny
data:
  root: data
  train: {source: train.en, target: train.de}
"""

# What follows GOOD begins in line 5.
CASES = {
    "unknown section": ("traning: {}", [(5, "traning: unknown key. Did you mean training?")]),
    "unknown key": (
        "training:\n  learning_rat: 0.1",
        [(6, "training.learning_rat: unknown key. Did you mean learning_rate? Choices: batch_")],
    ),
    "two mistakes": (
        "model:\n  embeding: 3\n  encoder:\n    units: 0",
        [
            (6, "model.embeding: unknown key. Did you mean embedding?"),
            (8, "model.encoder.units: must be at least 1; 0 was given"),
        ],
    ),
    "key of another section": (
        "model: {learning_rate: 0.1}",
        [(5, "model.learning_rate: unknown key here. Did you mean training.learning_rate?")],
    ),
    "key of another variant": (
        "search:\n  type: greedy\n  beam_size: 3",
        [(7, "search.beam_size: unknown key for this type; it goes with type: beam")],
    ),
    "unknown variant": (
        "training:\n  schedule:\n    type: inverse_square",
        [
            (
                7,
                "training.schedule.type: 'inverse_square' is not a choice. Did you mean "
                "inverse_sqrt? Choices: constant, inverse_sqrt, noam, exponential, cosine, plateau",
            )
        ],
    ),
    "variant that is no mapping": (
        "search: beam",
        [(5, "search: a mapping (key: value) is expected, the text 'beam' was given")],
    ),
    "wrong type inside a variant": (
        "training:\n  schedule: {type: inverse_sqrt, warmup_steps: many}",
        [(6, "training.schedule.warmup_steps: a whole number is expected, the text 'many' was")],
    ),
    "unknown choice": (
        "tokenizer: {type: bpw}",
        [(5, "tokenizer.type: 'bpw' is not a choice. Did you mean bpe? Choices: uni")],
    ),
    "a choice without a variant": (
        "model:\n  encoder:\n    type: transformr",
        [(7, "model.encoder.type: 'transformr' is not a choice. Did you mean transformer?")],
    ),
    "text for a number": (
        "training: {learning_rate: fast}",
        [(5, "training.learning_rate: a number is expected, the text 'fast' was given")],
    ),
    "quoted number": (
        'training: {max_steps: "100"}',
        [
            (
                5,
                "training.max_steps: a whole number or null is expected, the text '100' was g",
            )
        ],
    ),
    "truth for a number": (
        "model: {embedding: true}",
        [(5, "model.embedding: a whole number is expected, true was given")],
    ),
    "fraction for a whole number": (
        "model: {embedding: 1.5}",
        [(5, "model.embedding: a whole number is expected, the number 1.5 was given")],
    ),
    "number for a truth": (
        "tokenizer: {shared: 1}",
        [(5, "tokenizer.shared: true or false is expected, the number 1 was given")],
    ),
    "a word of YAML 1.1": (
        "tokenizer: {shared: yes}",
        [(5, "tokenizer.shared: true or false is expected, the text 'yes' was given")],
    ),
    "not finite": (
        "training: {learning_rate: .inf}",
        [(5, "training.learning_rate: a finite number is expected, the number inf was given")],
    ),
    "null": (
        "model: {embedding: null}",
        [(5, "model.embedding: a whole number is expected, nothing (null) was given")],
    ),
    "a section that is a list": (
        "model: [1]",
        [(5, "model: a mapping (key: value) is expected, the list [1] was given")],
    ),
    "unquoted version": (
        "serving:\n  tf_serving_versions:\n    - '2.19'\n    - 2.20",
        [
            (
                8,
                "serving.tf_serving_versions.1: a text is expected, the number 2.2 was given; put",
            )
        ],
    ),
    "malformed version": (
        "serving: {tf_serving_versions: [latest]}",
        [(5, "serving.tf_serving_versions.0: 'latest' is not possible: it must match")],
    ),
    "range": (
        "tokenizer: {character_coverage: 1.5}",
        [(5, "tokenizer.character_coverage: must be at most 1.0; 1.5 was given")],
    ),
    "unknown metric": (
        "evaluation:\n  metrics: [blue]",
        [(6, "evaluation.metrics.0: 'blue' is not a choice. Did you mean bleu?")],
    ),
    "no metric": (
        "evaluation: {metrics: []}",
        [
            (
                5,
                "evaluation.metrics: nothing is measured; name at least one of bleu, chrf, exac",
            )
        ],
    ),
    "floor of an unknown metric": (
        "evaluation:\n  thresholds:\n    blue: 3.0",
        [(7, "evaluation.thresholds.blue: 'blue' is not a choice. Did you mean bleu?")],
    ),
    "unknown task": ("task: translate", [(5, "task: 'translate' is not a choice")]),
    "given twice": (
        "model:\n  dropout: 0.1\n  dropout: 0.2",
        [(7, "model.dropout: duplicate key, first given in line 6")],
    ),
    "section given twice": ("name: other", [(5, "name: duplicate key, first given in line 1")]),
    "unknown check": (
        "evaluation: {}\nserving: {registri: x}",
        [(6, "serving.registri: unknown key. Did you mean registry?")],
    ),
    "unset variable": (
        "serving:\n  registry: ${NO_SUCH_VARIABLE}/x",
        [(6, "serving.registry: the environment variable NO_SUCH_VARIABLE is not set. Set it (ex")],
    ),
    "not YAML": ("model: {embedding: 3", [(6, "invalid YAML: ")]),
    "a path that YAML takes for a mapping": (
        "serving:\n  registry: {SPAN}/models",
        [
            (
                6,
                "invalid YAML: while parsing a block mapping, expected <block end>, but found "
                "'<scalar>'. Put a path with {...} in quotes",
            )
        ],
    ),
    "tab": ("model:\n\tembedding: 3", [(6, "invalid YAML: ")]),
    "two documents": ("---\nname: x", [(5, "invalid YAML: expected a single document")]),
    "a key that is a list": ("? [1, 2]\n: x", [(5, "a key must be a text")]),
    "an alias of itself": ("model: &a\n  encoder: *a", [(5, "model.encoder: the alias refers")]),
}


def problems_of(folder: Path, text: str) -> list[str]:
    path = folder / "x.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        load(path, home=folder)
    assert "regard config reference" in (caught.value.remedy or "")
    return caught.value.message.splitlines()


@pytest.mark.parametrize("name", CASES)
def test_mistake(name: str, tmp_path: Path) -> None:
    text, expected = CASES[name]
    lines = problems_of(tmp_path, GOOD + text + "\n")
    for line, (number, start) in zip(lines, expected, strict=True):
        assert line.startswith(f"{tmp_path / 'x.yaml'}:{number}: {start}")


def test_a_tag_makes_no_objects(tmp_path: Path) -> None:
    [line] = problems_of(tmp_path, GOOD + "task: !!python/object/apply:os.getcwd [x]\n")
    assert ":5: task: " in line
    [line] = problems_of(tmp_path, GOOD + "task: !!python/name:os.getcwd x\n")
    assert ":5: task: 'x' is not a valid python/name:os.getcwd" in line


def test_all_problems_in_one_error_by_line(tmp_path: Path) -> None:
    text = "search: {beam: 3}\nname: 3\ntask: translation\ntokenizer:\n  input_sentence_size: -1\n"
    lines = problems_of(tmp_path, text)
    assert [line.split(":")[1] for line in lines] == ["1", "1", "2", "5"]


def test_an_unknown_task_is_the_only_error(tmp_path: Path) -> None:
    """What else may stand in the file depends on the task."""
    [line] = problems_of(tmp_path, GOOD + "task: translatoin\nmodel: {units: 3}\n")
    assert ":5: task: 'translatoin' is not a choice. Did you mean translation? Choices: " in line


@pytest.mark.parametrize("name", ["Tiny", "1a", "a_b", "-a", "a-", "a b", "ä"])
def test_bad_name(name: str, tmp_path: Path) -> None:
    [line] = problems_of(tmp_path, GOOD.replace("tiny", f"'{name}'"))
    assert ":1: name: " in line
    assert "small letters, digits and hyphens" in line


def test_name_too_long(tmp_path: Path) -> None:
    [line] = problems_of(tmp_path, GOOD.replace("tiny", "a" * 64))
    assert "name: must have at most 63 characters" in line


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", ":1: the file is empty"), ("# nothing\n", "empty"), ("[1]", "a mapping (name: ..., d")],
)
def test_not_a_mapping(text: str, expected: str, tmp_path: Path) -> None:
    [line] = problems_of(tmp_path, text)
    assert expected in line


def test_missing_keys(tmp_path: Path) -> None:
    lines = problems_of(tmp_path, "task: translation\ndata:\n  root: x\n")
    assert ":1: name: is missing: Name of the pipeline" in lines[0]
    assert ":2: data.train: is missing: Files to train on" in lines[1]


def test_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text(GOOD)
    with pytest.raises(UserError, match="no such file") as caught:
        load(tmp_path / "x.yaml")
    assert caught.value.where == str(tmp_path / "x.yaml")
    assert "other.yaml" in (caught.value.remedy or "")


def test_folder_instead_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="this is a folder"):
        load(tmp_path)


def test_not_utf8_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(GOOD.encode() + "task: \xe4\n".encode("latin-1"))
    with pytest.raises(UserError, match="not UTF-8") as caught:
        load(path)
    assert caught.value.where == f"{path}:5"


def test_control_character_names_the_line(tmp_path: Path) -> None:
    [line] = problems_of(tmp_path, GOOD + "task: a\x00b\n")
    assert ":5: the character U+0000 is not allowed in YAML" in line
