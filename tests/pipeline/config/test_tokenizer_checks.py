"""The key ``tokenizer.model`` with other keys."""

import pytest

from tests.pipeline.config.refusals import compare, load_text, problems_of

HEAD = "name: x\ndata:\n  train: {source: a.en, target: a.de}\n"

# What follows begins in line 4.
CASES: dict[str, str | list[str]] = {
    "tokenizer: {model: {source: a.model}}": "4: tokenizer.model: has no file for target",
    "tokenizer: {model: {}}": [
        "4: tokenizer.model: has no file for source",
        "4: tokenizer.model: has no file for target",
    ],
    "tokenizer: {model: {source: a, target: b, sourcs: c}}": (
        "4: tokenizer.model.sourcs: 'sourcs' is not a text of this task. Did you mean source"
    ),
    "tokenizer: {model: a.model, shared: false}": "4: tokenizer.shared: one file of",
    "tokenizer: {model: {source: a, target: b}, shared: true}": "4: tokenizer.shared: one file of",
    "tokenizer: {model: a.model, vocab_size: 500, byte_fallback: true}": [
        "4: tokenizer.vocab_size: applies to tokenizers that Regard trains",
        "4: tokenizer.byte_fallback: applies to tokenizers that Regard trains",
    ],
    "tokenizer: {model: a.model, character_coverage: 0.99, vocab_limit: hard}": [
        "4: tokenizer.character_coverage: applies to tokenizers that Regard trains",
        "4: tokenizer.vocab_limit: applies to tokenizers that Regard trains",
    ],
    "tokenizer: {model: a.model, type: word, punctuation: split, word_list: a.txt}": [
        "4: tokenizer.punctuation: applies to tokenizers that Regard trains",
        "4: tokenizer.word_list: applies to tokenizers that Regard trains",
    ],
    "tokenizer: {model: {source: a, target: b}}\nmodel: {tie_embeddings: all}": (
        "5: model.tie_embeddings: all needs one tokenizer for both sides"
    ),
    "tokenizer: {model: a}\ntraining: {warm_start: {keep_tokenizer: true}}": (
        "5: training.warm_start.keep_tokenizer: keeps the tokenizer of the model to start from"
    ),
    "tokenizer: {model: 3}": "4: tokenizer.model",
    "tokenizer: {model: a.model, user_defined_symbols: [</s>]}": (
        "4: tokenizer.user_defined_symbols: </s> is a built-in symbol"
    ),
}


@pytest.mark.parametrize(("text", "expected"), CASES.items())
def test_refused(text, expected, tmp_path):
    compare(problems_of(tmp_path, f"{HEAD}{text}\n"), expected)


def test_one_file_is_a_shared_vocabulary(tmp_path):
    text = f"{HEAD}tokenizer: {{model: a.model}}\nmodel: {{tie_embeddings: all}}\n"
    config = load_text(tmp_path, text)
    assert config.tokenizer.shared
    assert config.tokenizer.model == str(tmp_path / "a.model")


def test_a_size_of_training_does_not_limit_symbols(tmp_path):
    symbols = ", ".join(f"<{number}>" for number in range(9000))
    text = f"{HEAD}tokenizer: {{model: a.model, user_defined_symbols: [{symbols}]}}\n"
    assert len(load_text(tmp_path, text).tokenizer.user_defined_symbols) == 9000


def test_span_needs_split_punctuation(tmp_path):
    text = "name: x\ntask: span\ndata: {train: a.json}\ntokenizer: {model: a.model}\n"
    (problem,) = problems_of(tmp_path, text)
    assert "tokenizer.punctuation: applies to tokenizers that Regard trains" in problem
