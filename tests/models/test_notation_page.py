"""The names in docs/reference/notation.md are those of the layers."""

import re
from pathlib import Path

import numpy as np
import pytest

from regard.models.attention import ALIGNMENTS, SCORES, MultiHeadAttention
from regard.models.decoders import BahdanauDecoder, LuongDecoder
from regard.models.layers.pooling import POOLINGS
from regard.models.layers.transformer import FeedForward

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/notation.md"
TEXT = PAGE.read_text(encoding="utf-8")
WEIGHTS = re.findall(r"`([A-Z]\w+)\.(\w+)`", TEXT)
DEPTHS = (None, None, 4)


# The columns NumPy of docs/reference/concepts.md.
CONCEPTS = (PAGE.parent / "concepts.md").read_text(encoding="utf-8")
FUNCTIONS = {
    name
    for row in re.findall(r"^\|(.*)\|$", CONCEPTS, re.MULTILINE)
    for name in re.findall(r"`(\w+)`", row.split("|")[2])
}


def built(layer, *shapes):
    layer.build(*shapes)
    return layer


def scores(*names):
    return [built(SCORES[name](), DEPTHS, DEPTHS) for name in names]


@pytest.fixture(scope="module")
def layers():
    """One layer of each class in the table, by the name of the class."""
    attention = {"score": "general"}
    kinds = (BahdanauDecoder, LuongDecoder)
    decoders = [built(kind(9, 4, 4, units=4, attention=attention)) for kind in kinds]
    layers = [
        *scores("additive", "concat", "general", "location"),
        built(ALIGNMENTS["local_p"](), DEPTHS),
        built(MultiHeadAttention(2, 4), DEPTHS, DEPTHS),
        built(FeedForward(8), DEPTHS),
        built(POOLINGS["self_attention"](), DEPTHS),
        *decoders,
    ]
    return {type(layer).__name__: layer for layer in layers}


def test_every_weight_exists(layers):
    assert len(WEIGHTS) > 15
    assert {name for name, _ in WEIGHTS} == set(layers)
    missing = [(name, part) for name, part in WEIGHTS if not hasattr(layers[name], part)]
    assert missing == []


def test_every_function_of_a_concept_is_shown():
    folder = PAGE.parents[1] / "explanation"
    pages = "".join(page.read_text(encoding="utf-8") for page in folder.glob("*.md"))
    linked = set(",".join(re.findall(r"reference\.py#([\w,]+)\)", pages)).split(","))
    assert len(FUNCTIONS) > 40
    assert FUNCTIONS - linked == set()


def test_every_kernel_is_the_transpose(layers):
    """Its rows are the inputs; those of the papers' matrices are the outputs."""
    assert tuple(layers["LuongDecoder"].combine.kernel.shape) == (8, 4)
    assert tuple(layers["BahdanauDecoder"].readout.kernel.shape) == (4 + 256 + 4, 8)
    assert tuple(layers["FeedForward"].expand.kernel.shape) == (4, 8)


def test_the_attentional_state_is_part_of_the_state(layers):
    memory = {
        "values": np.ones((1, 3, 4), "float32"),
        "mask": np.ones((1, 3), bool),
        "final_states": [np.ones((1, 4), "float32")] * 2,
    }
    assert "attentional" in layers["LuongDecoder"].start(memory)
