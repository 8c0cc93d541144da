"""What a finished training is found again by."""

import pytest

from regard.components.common import node_code
from regard.components.trainer import training_key
from regard.core.errors import UserError
from regard.pipeline import cache_keys
from regard.pipeline.config import load

CONFIG = """
name: tiny
task: translation
data: {{root: {root}, train: train.jsonl{data}}}
tokenizer: {{type: char, vocab_size: 20, vocab_limit: soft}}
"""


@pytest.fixture
def key(tmp_path):
    def key(data=""):
        path = tmp_path / "tiny.yaml"
        path.write_text(CONFIG.format(root=tmp_path, data=data))
        return cache_keys.training_key(load(path, home=tmp_path), "content", {})

    return key


@pytest.mark.parametrize(
    "data",
    [
        ", extra: [domain]",  # rows without it are left out
        ", columns: {source: en, target: de}",
        ", bad_rows: skip",
        ", checks: {duplicates: {action: drop}}",
        ", checks: {encoding: {action: repair}}",
        ", split: {eval: 0.1, test: 0.1}",
    ],
)
def test_other_rows_are_another_training(key, data):
    assert key(data) != key()


def test_what_is_only_looked_at_is_the_same_training(key):
    assert key(", checks: {duplicates: null}") == key()
    assert key(", checks: {too_long: {characters: 9}}") == key()
    dropped = ", checks: {too_long: {action: drop, limit: %s}}"
    assert key(dropped % 0.1) == key(dropped % 0.2)  # bad_rows_limit applies to dropped rows
    assert key(", checks: {too_long: {action: drop, characters: 9}}") != key(dropped % 0.1)


SCHEMA = """feature {
  name: "source"
  type: %s
}
"""


def test_pinned_schema_enters_by_its_content(tmp_path):
    def schema(content=SCHEMA % "BYTES"):
        (tmp_path / "s.pbtxt").write_text(content, "latin-1")
        (tmp_path / "tiny.yaml").write_text(CONFIG.format(root=".", data=", schema: s.pbtxt"))
        return cache_keys.pinned_schema(load(tmp_path / "tiny.yaml"))

    assert schema() == "# s.pbtxt\n" + SCHEMA % "BYTES"
    with pytest.raises(UserError, match="BITES") as caught:
        schema(SCHEMA % "BITES")
    assert caught.value.where == f"{tmp_path}/s.pbtxt:3"
    for content in ("feature {", "ÿ", "]" * 100_000):
        with pytest.raises(UserError, match="schema"):
            schema(content)
    (tmp_path / "s.pbtxt").unlink()
    with pytest.raises(UserError, match="cannot be read") as caught:
        cache_keys.pinned_schema(load(tmp_path / "tiny.yaml"))
    assert caught.value.where.startswith(f"{tmp_path}/tiny.yaml:")
    assert caught.value.where.endswith(": data.schema")


@pytest.mark.parametrize(
    "module",
    [
        "regard.components.corpus_gen",
        "regard.components.tokenizer_trainer",
        "regard.components.preprocess",
        "regard.components.trainer.train_and_export",
        "regard.models.tasks.translation.description",
        "regard.models.tasks.text_to_text.preprocess",
        "regard.models.tasks.text_to_text.network",
        "regard.models.tasks.text_to_text.served",
    ],
)
def test_other_code_on_the_way_is_another_training(key, monkeypatch, module):
    before, digest = key(), cache_keys.code_digest

    def changed(*modules):
        return digest(*modules) + ("changed" if module in modules else "")

    for owner in (cache_keys, node_code, training_key):
        monkeypatch.setattr(owner, "code_digest", changed)
    assert key() != before


def test_the_code_of_a_plugin_that_is_used_is_in_the_key(tmp_path, install_plugin):
    folder = install_plugin()
    texts = {
        "own": "",
        "score": "model: {attention: {score: {type: bilinear}}}",
        "metric": "evaluation: {metrics: [first_word]}",
        "task": "task: dialogue",
    }

    def keys():
        result = {}
        for name, text in texts.items():
            path = tmp_path / f"{name}.yaml"
            path.write_text(f"name: {name}\ndata: {{train: t.tsv}}\n{text}\n")
            config = load(path, home=tmp_path)
            result[f"{name} training"] = cache_keys.training_key(config, "content", {})
            result[f"{name} evaluation"] = node_code.evaluator_code(config.evaluation)
        return result

    before = keys()
    (folder / "regard_bilinear" / "data.txt").write_text("x")
    after = keys()
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"score training", "metric evaluation", "task training"}


def test_a_command_belongs_to_the_evaluation_and_not_to_the_training(key):
    external = "\nevaluation: {metrics: [odd], external: {odd: {command: 'true'}}}\n#"
    assert key("}" + external) == key()
