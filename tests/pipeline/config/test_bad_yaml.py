"""Every mistake names the file, the line, the key, the invalid value and the valid ones."""

import os
from pathlib import Path

import pytest

from regard.core.errors import UserError
from regard.pipeline.config import load
from regard.pipeline.config.document import parse
from regard.pipeline.runners.kubeflow.pipeline_file import read_pipeline
from tests.pipeline.config.refusals import compare, problems_of

GOOD = """\
name: tiny
data:
  root: data
  train: {source: train.en, target: train.de}
"""

# The text after GOOD begins in line 5.
CASES = {
    "traning: {}": "5: traning: unknown key. Did you mean training?",
    "training:\n  learning_rat: 0.1": (
        "6: training.learning_rat: unknown key. Did you mean learning_rate? Choices: max_length, "
        "learning_rate, early_stopping, scheduled_sampling, deterministic and "
    ),
    "model:\n  embeding: 3\n  encoder:\n    units: 0": [
        "6: model.embeding: unknown key. Did you mean embedding?",
        "8: model.encoder.units: must be greater than or equal to 1; 0 was given",
    ],
    "model: {learning_rate: 0.1}": (
        "5: model.learning_rate: unknown key here. Did you mean training.learning_rate?"
    ),
    "search:\n  type: greedy\n  beam_size: 3": (
        "7: search.beam_size: unknown key for this type; it goes with type: beam"
    ),
    "training:\n  schedule:\n    type: inverse_square": (
        "7: training.schedule.type: 'inverse_square' is not a choice. Did you mean inverse_sqrt? "
        "Choices: constant, cosine, exponential, inverse_sqrt"
    ),
    "search: beam": "5: search: a mapping (key: value) is expected, 'beam' was given",
    "training:\n  schedule: {type: inverse_sqrt, warmup_steps: many}": (
        "6: training.schedule.warmup_steps: a whole number is expected, 'many' was given"
    ),
    "tokenizer: {type: bpw}": (
        "5: tokenizer.type: 'bpw' is not a choice. Did you mean bpe? Choices: unigram, bpe, char"
    ),
    "model:\n  encoder:\n    type: transformr": (
        "7: model.encoder.type: 'transformr' is not a choice. Did you mean transformer?"
    ),
    '"\\n": 3': "5: a key must be a text of printable characters",
    'task: "\\U00110000"': "5: invalid YAML: an escape is not a character",
    'task: "\\ud800"': "5: task: the character U+D800 is not allowed",
    'model: {embedding: "a\\0"}': "5: model.embedding: the character U+0000 is not allowed",
    "evaluation: {metrics: [{a: 1}]}": "5: evaluation.metrics.0: a text is expected",
    "search: {type: null}": (
        "5: search.type: null is not a choice. Choices: greedy, beam, sampling"
    ),
    "training: {batch_tokens: 100000000000}": (
        "5: training.batch_tokens: must be less than or equal to 10000000; 100000000000 was given"
    ),
    "training: {batch_tokens: many}": (
        "5: training.batch_tokens: a whole number or auto is expected; 'many' was given"
    ),
    "training: {batch_tokens: true}": (
        "5: training.batch_tokens: a whole number or auto is expected; true was given"
    ),
    "search: {type: sampling, seed: 9223372036854775808}": (
        "5: search.seed: must be less than or equal to 9223372036854775807; 9223372036854775808 was"
    ),
    "training: {batch_tokens: 4096.5}": (
        "5: training.batch_tokens: a whole number or auto is expected; 4096.5 was given"
    ),
    "training: {batch_tokens: null}": (
        "5: training.batch_tokens: a whole number or auto is expected; null was given"
    ),
    "model: {embedding: 1000000}": (
        "5: model.embedding: must be less than or equal to 65536; 1000000 was given"
    ),
    "training: {max_steps: 10000000000}": (
        "5: training.max_steps: must be less than or equal to 1000000000; 10000000000 was given"
    ),
    "batch_size: 64": (
        "5: batch_size: unknown key. batch_size is "
        "training.batch_tokens. It counts the tokens of both sides, with padding"
    ),
    "training: {lr: 0.1}": "5: training.lr: unknown key. lr of fairseq is training.learning_rate",
    "model: {hidden_size: 3}": (
        "5: model.hidden_size: unknown key. hidden_size is model.encoder.units and "
        "model.decoder.units. For a Transformer it is model.embedding"
    ),
    "model: {encoder: {type: lstm}}": (
        "5: model.encoder.type: 'lstm' is not a choice. Did you mean recurrent? Choices: "
    ),
    "model: {attention: {score: luong}}": (
        "5: model.attention.score.type: 'luong' is not a choice. Did you mean general? Choices: "
    ),
    "evaluation: {metrics: [meteor]}": (
        "5: evaluation.metrics.0: 'meteor' is not a choice. Did you mean chrf? Choices: "
    ),
    'training: {max_steps: "100"}': (
        "5: training.max_steps: a whole number or null is expected, '100' was given"
    ),
    "model: {embedding: 1.5}": "5: model.embedding: a whole number is expected, 1.5 was given",
    "tokenizer: {shared: yes}": "5: tokenizer.shared: true or false is expected, 'yes' was given",
    "training: {learning_rate: .inf}": (
        "5: training.learning_rate: a finite number is expected, inf was given"
    ),
    "model: {embedding: null}": "5: model.embedding: a whole number is expected, null was given",
    "model: [1]": "5: model: a mapping (key: value) is expected, [1] was given",
    "serving:\n  tf_serving_versions:\n    - '2.19'\n    - 2.20": (
        "8: serving.tf_serving_versions.1: a text is expected, 2.2 was given; put it in quotes"
    ),
    "serving: {tf_serving_versions: [latest]}": (
        "5: serving.tf_serving_versions.0: 'latest' is not possible: it must match"
    ),
    "tokenizer: {character_coverage: 1.5}": (
        "5: tokenizer.character_coverage: must be less than or equal to 1; 1.5 was given"
    ),
    "evaluation:\n  metrics: [blue]": (
        "6: evaluation.metrics.0: 'blue' is not a choice. Did you mean bleu?"
    ),
    "evaluation: {metrics: []}": (
        "5: evaluation.metrics: must name at least one of bleu, chrf, exact_match"
    ),
    "evaluation:\n  thresholds:\n    blue: 3.0": (
        "7: evaluation.thresholds.blue: 'blue' is not a choice. Did you mean bleu?"
    ),
    "task: translatoin\nmodel: {units: 3}": (
        "5: task: 'translatoin' is not a choice. Did you mean translation? Choices: "
    ),
    "model:\n  dropout: 0.1\n  dropout: 0.2": (
        "7: model.dropout: duplicate key, first given in line 6"
    ),
    "name: other": "5: name: duplicate key, first given in line 1",
    "serving:\n  registry: ${NO_SUCH_VARIABLE}/x": (
        "6: serving.registry: the environment variable NO_SUCH_VARIABLE is not set; set it, or"
    ),
    "model: {embedding: 3": "6: invalid YAML: ",
    "serving:\n  registry: {SPAN}/models": (
        "6: invalid YAML: while parsing a block mapping, expected <block end>, but found "
        "'<scalar>'. Put a path with {...} in quotes"
    ),
    "model:\n  encoder: {type: transformer}\n   dropout: 0.1": (
        "7: invalid YAML: while parsing a block mapping, expected <block end>, but found "
        "'<block mapping start>'. Check the indentation of this line"
    ),
    "model:\n\tembedding: 3": "6: invalid YAML: ",
    "---\nname: x": "5: invalid YAML: expected a single document",
    "? [1, 2]\n: x": "5: a key must be a text",
    "task: !!python/object/apply:os.getcwd [x]": "5: task: ",
    "task: !!python/name:os.getcwd x": "5: task: 'x' is not a valid python/name:os.getcwd",
    "task: !!int": "5: task: '' is not a valid int",
    "training: {reinforce: !!bool maybe}": "5: training.reinforce: 'maybe' is not a valid bool",
    f"training: {{max_steps: {'9' * 5000}}}": f"5: training.max_steps: '{'9' * 59}…' is not a val",
    "task: a\x00b": "5: the character U+0000 is not allowed in YAML",
}


@pytest.mark.parametrize(("text", "expected"), CASES.items())
def test_mistake(text: str, expected: str | list[str], tmp_path: Path) -> None:
    compare(problems_of(tmp_path, f"{GOOD}{text}\n"), expected)


def test_all_problems_in_one_error_by_line(tmp_path: Path) -> None:
    text = "search: {beam: 3}\nname: 3\ntask: translation\ntokenizer:\n  input_sentence_size: -1\n"
    compare(
        problems_of(tmp_path, text),
        ["1: data: is missing", "1: search.beam", "2: name: ", "5: tokenizer.input"],
    )


@pytest.mark.parametrize("name", ["Tiny", "1a", "a_b", "-a", "a-", "a b", "ä", "a" * 64])
def test_bad_name(name: str, tmp_path: Path) -> None:
    [line] = problems_of(tmp_path, GOOD.replace("tiny", f"'{name}'"))
    assert line.startswith("1: name: ")
    assert "small letters, digits and hyphens" in line


@pytest.mark.parametrize("text", ["", "# nothing\n", "[1]"])
def test_not_a_mapping(text: str, tmp_path: Path) -> None:
    compare(problems_of(tmp_path, text), "1: the file must contain a mapping")


def test_missing_keys(tmp_path: Path) -> None:
    compare(
        problems_of(tmp_path, "task: translation\ndata:\n  root: x\n"),
        ["1: name: is missing: Name of the pipeline", "2: data.train: is missing: Files to train"],
    )


def test_unreadable_file_names_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text(GOOD)
    for path, reason in ((tmp_path / "x.yaml", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(UserError, match=reason) as caught:
            load(path)
        assert caught.value.where == str(path)
        assert "other.yaml" in (caught.value.remedy or "")


def test_not_utf8_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(GOOD.encode() + "task: \xe4\n".encode("latin-1"))
    with pytest.raises(UserError, match="not UTF-8") as caught:
        load(path)
    assert caught.value.where == f"{path}:5"


ALIASES = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
ALIASES += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
MERGES = ["a0: &a0 {x: 1, y: 2}"]
MERGES += [f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 10)}]}}" for i in range(1, 12)]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("\n".join(ALIASES), 5, "there are more than 100,000 values, with all aliases"),
        ("\n".join(MERGES), 6, "there are more than 100,000 values, with all aliases"),
        ("model: &a\n  encoder: *a", 2, "there are more than 100,000 values, with all aliases"),
        ("\n" + "[" * 5000, 2, "values are nested more than 64 deep"),
        ("a: " + "[" * 600 + "]" * 600, 1, "values are nested more than 64 deep"),
        ("\n".join(" " * i + "a:" for i in range(600)), 62, "values are nested more than 64 deep"),
        ("# " + "x" * 300_000, 1, "the file has more than 200,000 characters"),
    ],
)
def test_hostile_text_is_refused(text, line, message, tmp_path):
    document = parse(text, {})
    assert document.value is None
    assert (document.problems[0].line, document.problems[0].message) == (line, message)
    compare(problems_of(tmp_path, text), f"{line}: {message}")


def test_hostile_text_is_no_compiled_pipeline(tmp_path):
    path = tmp_path / "a.yaml"
    for text in ("\n".join(MERGES), "a: !!bool maybe", "a: !!timestamp b", "[" * 600 + "]" * 600):
        path.write_text(text)
        assert read_pipeline(path) is None


def test_special_files_are_not_opened(tmp_path):
    os.mkfifo(tmp_path / "a.yaml")
    with pytest.raises(UserError, match="cannot be read: it is a FIFO, not a regular file"):
        load(tmp_path / "a.yaml")
    with pytest.raises(UserError, match="it is a device"):
        load("/dev/zero")
    assert read_pipeline(tmp_path / "a.yaml") is None


def test_values_of_variables_are_not_in_messages(tmp_path, monkeypatch):
    monkeypatch.setenv("TOKEN", "hunter2-hunter2")
    monkeypatch.setenv("LONG", "hunter2-" * 20)
    monkeypatch.setenv("STEPS", "many")
    text = "task: ${TOKEN}\n"
    compare(problems_of(tmp_path, GOOD + text), "5: task: '${TOKEN}' is not a choice")
    text = "model: {embedding: '${LONG}'}\ntraining: {max_steps: '${STEPS}'}\n"
    lines = problems_of(tmp_path, GOOD + text)
    assert "hunter2" not in str(lines)
    assert "'many' was given" in str(lines)


def test_long_tags(tmp_path):
    assert len(str(problems_of(tmp_path, f"{GOOD}task: {'!' * 5000} a\n"))) < 500
