"""docs/explanation/attention.md shows mechanisms with code that tests compare with layers."""

import importlib
import re
from pathlib import Path

import keras
import numpy as np
import pytest

from regard.models.attention import ALIGNMENTS, SCORES
from tests.models.attention import (
    test_alignments,
    test_attention,
    test_multi_head,
    test_pointer,
    test_scores,
)
from tests.models.attention.alignments import test_hard
from tests.models.decoders import test_bahdanau, test_coverage, test_luong
from tests.models.decoders.conftest import check, create_memory
from tests.models.layers import test_copying

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/explanation/attention.md").read_text(encoding="utf-8")
LINK = re.compile(r"\[NumPy: [^\]]+\]\(\.\./\.\./(tests/[\w/]+)\.py#([\w,]+)\)")
SHOWN = [(path, name) for path, names in LINK.findall(PAGE) for name in names.split(",")]


def score(name, **options):
    return lambda: test_scores.test_equals_the_formula(name, 5, options)


def alignment(name, **options):
    return lambda: test_alignments.test_equals_the_formula(name, options)


def bahdanau():
    settings = {"readout": "maxout", "attention": {"score": "general"}, "cell": "gru"}
    test_bahdanau.test_equals_the_paper(settings, create_memory, check)


def luong():
    test_luong.test_equals_the_paper({"attention": {"score": "dot"}}, create_memory, check)


# A test that compares a layer with each function.
COMPARISONS = {
    "attend": lambda: test_attention.test_equals_the_formulas_with_zeros_in_the_padding(
        "general", "soft"
    ),
    **{name: score(name) for name in SCORES},
    "location": score("location", max_source=5),
    "deep": score("additive", layers=2),
    "coverage": test_coverage.test_as_its_formula,
    "softmax": alignment("soft"),
    "hard": alignment("hard"),
    "sample": lambda: test_hard.test_a_sample_is_the_best_score_with_noise("reinforce"),
    "sparsemax": alignment("sparsemax"),
    "top_k": alignment("top_k", k=3),
    "thresholded": alignment("thresholded", threshold=0.1),
    "local_m": alignment("local_m", window=1),
    "window": alignment("local_m", window=1),
    "local_p": alignment("local_p", window=4),
    "sigmoid": alignment("local_p", window=4),
    "multi_head": test_multi_head.test_attention_to_a_memory_equals_the_paper,
    "pointer": lambda: test_pointer.test_equals_the_formula("additive", 2.0),
    "pointer_generator": test_copying.test_as_its_formula,
    "bahdanau_step": bahdanau,
    "maxout_readout": bahdanau,
    "luong_step": luong,
}


@pytest.mark.parametrize(("path", "name"), SHOWN)
def test_every_shown_function_is_compared_with_a_layer(path, name, monkeypatch):
    """The comparison fails if the function returns other numbers."""
    module = importlib.import_module(path.replace("/", "."))
    function = getattr(module, name)

    def wrong(*arguments):
        return keras.tree.map_structure(lambda x: np.asarray(x) * 1.1, function(*arguments))

    COMPARISONS[name]()
    monkeypatch.setattr(module, name, wrong)
    with pytest.raises(AssertionError):
        COMPARISONS[name]()


def test_every_formula_is_followed_by_its_code():
    parts = re.split(r"^(?=\$\$|#)", PAGE, flags=re.MULTILINE)
    formulas = [part for part in parts if part.startswith("$$")]
    assert len(formulas) > len(SCORES) + len(ALIGNMENTS)
    for formula in formulas:
        following = formula[2:].partition("$$")[2].split("\n\n")[1]
        assert LINK.fullmatch(following.strip()), formula


@pytest.mark.parametrize("name", [*SCORES, *ALIGNMENTS])
def test_every_mechanism_has_yaml_and_a_line_of_keras(name):
    """After its formula and before the next heading."""
    function = "softmax" if name == "soft" else name
    sections = re.split(r"^#+ ", PAGE, flags=re.MULTILINE)
    (section,) = [each for each in sections if re.search(rf"reference.py#{function}[,)]", each)]
    blocks = dict(re.findall(r"^```(yaml|python)\n(.*?)^```", section, re.MULTILINE | re.DOTALL))
    assert re.search(rf"\b{name}\b", section.partition("```yaml")[2].partition("```\n")[0])
    assert f'"{name}"' in section.partition("```python")[2]
    assert set(blocks) == {"yaml", "python"}
