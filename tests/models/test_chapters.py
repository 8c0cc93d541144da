"""The chapters of the documentation show functions that tests compare with layers."""

import importlib
import re
from pathlib import Path

import keras
import numpy as np
import pytest

from tests.components.reporter import test_attention_statistics
from tests.models import test_penalties, test_reinforce, test_seq2seq
from tests.models.attention import test_matrices
from tests.models.decoders import test_bahdanau, test_luong
from tests.models.decoders.conftest import check, create_memory
from tests.models.encoders import test_recurrent
from tests.models.layers import (
    test_answer_pointer,
    test_matching,
    test_pooling,
    test_positions,
    test_transformer,
)
from tests.models.metrics import test_attention
from tests.models.search import test_beam

FOLDER = Path(__file__).resolve().parents[2] / "docs/explanation"
CHAPTERS = [
    "sequence-to-sequence",
    "decoders",
    "focus-and-saliency",
    "self-attention",
    "transformer",
    "other-tasks",
    "exercises",
]
LINK = re.compile(r"^\[NumPy: [^\]]+\]\(\.\./\.\./(tests/[\w/]+)\.py#([\w,]+)\)$", re.MULTILINE)
SHOWN = [
    (path.replace("/", "."), name)
    for chapter in CHAPTERS
    for path, names in LINK.findall((FOLDER / f"{chapter}.md").read_text(encoding="utf-8"))
    for name in names.split(",")
]


def bahdanau():
    settings = {"readout": "maxout", "attention": {"score": "general"}, "cell": "gru"}
    test_bahdanau.test_equals_the_paper(settings, create_memory, check)


def luong():
    test_luong.test_equals_the_paper({"attention": {"score": "dot"}}, create_memory, check)


def pooling(name):
    return lambda: test_pooling.test_as_its_formula(name)


def encoder_block(norm):
    return lambda: test_transformer.test_an_encoder_block_equals_the_paper(norm, 1e-5)


# A test that compares a layer with each function.
COMPARISONS = {
    "teacher_forcing": lambda: test_seq2seq.test_score_is_that_of_documented_teacher_forcing(
        test_seq2seq.make("luong")
    ),
    "greedy_search": test_beam.test_equals_the_documented_greedy_search,
    "beam_search": lambda: test_beam.test_equals_the_documented_beam(3, 0.6),
    "gru_step": test_recurrent.test_the_annotations_equal_the_paper,
    "annotations": test_recurrent.test_the_annotations_equal_the_paper,
    "bahdanau_step": bahdanau,
    "maxout_readout": bahdanau,
    "luong_step": luong,
    "mean_pooling": pooling("mean"),
    "max_pooling": pooling("max"),
    "gate_pooling": pooling("gate"),
    "self_attentive_pooling": pooling("self_attention"),
    "softmax": pooling("self_attention"),
    "top_down_pooling": pooling("top_down"),
    "hard_attention": test_matrices.test_hard_attention,
    "reinforce": test_reinforce.test_equals_the_formula_with_a_baseline_that_moves,
    "attention": test_matrices.test_rows_and_columns,
    "attention_of_columns": test_matrices.test_rows_and_columns,
    "self_attention": lambda: test_matrices.test_self_attention_of_one_head(False),
    "causal_mask": lambda: test_matrices.test_self_attention_of_one_head(True),
    "multi_head": test_matrices.test_several_heads,
    "softmax_gradient": test_matrices.test_the_gradient_of_a_softmax,
    "post_norm": encoder_block("post"),
    "pre_norm": encoder_block("pre"),
    "layer_normalization": encoder_block("pre"),
    "feed_forward": encoder_block("pre"),
    "encoder_block": encoder_block("pre"),
    "decoder_block": lambda: test_transformer.test_a_decoder_block_equals_the_paper("pre", 1e-5),
    "sinusoids": lambda: test_positions.test_sinusoids_equal_the_paper(6),
    "rotate": test_positions.test_a_rotation_turns_each_pair_by_its_angle,
    "relative_attention": test_matrices.test_relative_positions,
    "alibi_bias": test_matrices.test_linear_biases,
    "doubly_stochastic": lambda: test_penalties.test_as_its_formula("doubly_stochastic"),
    "coverage_loss": lambda: test_penalties.test_as_its_formula("coverage"),
    "cross_attention": test_matching.test_as_its_formula,
    "attention_flow": test_matching.test_attention_flow_follows_the_paper,
    "hops": lambda: test_answer_pointer.test_the_formulas_of_the_paper(1),
    "normalized_entropy": test_attention_statistics.test_entropy_equals_the_documented_one,
    "alignment_error_rate": test_attention.test_the_error_rate_follows_the_paper,
}


def change(value):
    value = np.asarray(value)
    return ~value if value.dtype == bool else value * 1.1


def test_every_comparison_is_of_a_shown_function():
    assert sorted(name for _, name in SHOWN) == sorted(COMPARISONS)


@pytest.mark.parametrize(("module", "name"), SHOWN)
def test_every_shown_function_is_compared_with_a_layer(module, name, monkeypatch):
    """The comparison fails if the function returns other numbers."""
    module = importlib.import_module(module)
    function = getattr(module, name)

    def wrong(*arguments, **options):
        return keras.tree.map_structure(change, function(*arguments, **options))

    COMPARISONS[name]()
    monkeypatch.setattr(module, name, wrong)
    with pytest.raises(AssertionError):
        COMPARISONS[name]()


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_section_has_exercises_with_answers_that_run(chapter):
    """Except for those on results, which do not explain a mechanism."""
    text = (FOLDER / f"{chapter}.md").read_text(encoding="utf-8")
    for section in re.split("^## ", text, flags=re.MULTILINE)[1:]:
        _, heading, exercises = section.partition("\n### Exercise")
        assert heading or section.startswith("Which ")
        answers = re.findall(r"<details>.*?</details>", exercises, re.DOTALL)
        assert bool(answers) == bool(heading)
        assert all(re.search("```(python|sh)\n", answer) for answer in answers)
