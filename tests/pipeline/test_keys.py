"""What a finished training is found again by."""

import pytest

from pipeline import keys
from pipeline.config import load

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
        return keys.training_key(load(path, home=tmp_path), "content", {})

    return key


@pytest.mark.parametrize(
    "data",
    [
        ", extra: [domain]",  # rows without it are left out
        ", columns: {source: en, target: de}",
        ", bad_rows: skip",
        ", split: {eval: 0.1, test: 0.1}",
    ],
)
def test_other_rows_are_another_training(key, data):
    assert key(data) != key()


def test_what_is_only_looked_at_is_the_same_training(key):
    assert key(", checks: {duplicates: null}") == key()


@pytest.mark.parametrize(
    "path",
    [
        "components/corpus_gen",
        "components/normal_form.py",
        "components/tokenizer_trainer",
        "models/vocabulary.py",
        "serving/saved_model.py",
    ],
)
def test_other_code_on_the_way_is_another_training(key, monkeypatch, path):
    before, digest = key(), keys.source_digest

    def changed(*paths):
        return digest(*paths) + ("changed" if path in paths else "")

    monkeypatch.setattr(keys, "source_digest", changed)
    assert key() != before
