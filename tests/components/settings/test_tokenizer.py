"""The section ``tokenizer``: what follows from a given model."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from regard.components.settings.tokenizer import TokenizerConfig, feature_symbols
from regard.models.protected_spans import protection_symbols

SIDES = ("source", "target")
# It needs type: word, and a training.
WORDS = [("word_list",), ("word_list",)]


@pytest.mark.parametrize(
    ("model", "is_shared"),
    [
        (None, False),
        ("a", True),
        ({"source": "a", "target": "a"}, True),
        ({"source": "a", "target": "b"}, False),
        ({"source": "a"}, True),
    ],
)
def test_one_file_is_shared(model: Any, is_shared: bool) -> None:
    config = TokenizerConfig(model=model)
    assert config.shared == is_shared
    assert TokenizerConfig.model_validate_json(config.to_json()) == config
    assert list(config.own_problems()) == []
    paths = {"source": "a", "target": model["target"] if "target" in (model or "") else "a"}
    expected = {side: paths[side] for side in SIDES if not isinstance(model, dict) or side in model}
    assert config.model_paths(SIDES) == (expected if model else {})


@pytest.mark.parametrize(
    ("values", "keys"),
    [
        ({"model": "a", "shared": False}, [("shared",)]),
        ({"model": {"source": "a", "target": "b"}, "shared": True}, [("shared",)]),
        (
            {"model": "a", "vocab_size": 9, "punctuation": "split"},
            [("vocab_size",), ("punctuation",)],
        ),
        ({"model": "a", "vocab_size": 8000, "input_sentence_size": 9, "type": "word"}, []),
    ],
)
def test_keys_of_a_training_are_refused(values: dict[str, Any], keys: list[tuple[str]]) -> None:
    problems = TokenizerConfig.model_validate(values).own_problems()
    assert [problem.path for problem in problems] == keys


@pytest.mark.parametrize("model", ["", {"source": ""}, ["a"], 3, {"source": 3}, {"source": None}])
def test_invalid_paths(model: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        TokenizerConfig(model=model)
    assert [error["loc"][0] for error in caught.value.errors()] == ["model"]


def test_paths_are_relative_to_the_folders_of_their_keys() -> None:
    config = TokenizerConfig(model={"source": "a.model", "target": "/b.model"}, word_list="w.txt")
    resolved = config.resolved(Path("/words"), Path("/models"))
    assert resolved.model == {"source": "/models/a.model", "target": "/b.model"}
    assert resolved.word_list == "/words/w.txt"
    assert TokenizerConfig(model="a.model").resolved(Path("/words")).model == "/words/a.model"


def test_tags_begin_the_texts_of_the_first_feature() -> None:
    symbols = feature_symbols(SIDES, ["de"], True, "bpe")
    spans = protection_symbols()
    assert symbols == {"source": [*spans, "<de>", "\u2581<de>"], "target": spans}
    assert feature_symbols(("a",), ["de"], False, "word") == {"a": ["<de>"]}
