"""The sizes of the benchmark: the full one for a GPU, and a small one for tests on a CPU."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any


def transformer(width: int, layers: int, heads: int = 8) -> dict[str, Any]:
    """Return the section ``model`` of a Transformer with a feed-forward width of 4 × ``width``."""
    stack = {
        "type": "transformer",
        "layers": layers,
        "heads": heads,
        "feed_forward": 4 * width,
        "norm": "pre",
    }
    return {
        "embedding": width,
        "dropout": 0.1,
        "tie_embeddings": "all",
        "encoder": stack,
        "decoder": stack,
    }


def luong(width: int, layers: int) -> dict[str, Any]:
    """Return the section ``model`` of LSTMs with Luong's attention and input feeding."""
    stack = {"units": width, "layers": layers}
    return {
        "embedding": width,
        "dropout": 0.1,
        "encoder": {"type": "recurrent", "cell": "lstm", "bidirectional": True, **stack},
        "decoder": {"type": "luong", "cell": "lstm", "input_feeding": True, **stack},
        "attention": {"score": "general"},
    }


@dataclasses.dataclass(frozen=True)
class Size:
    """How much the parts of the benchmark compute.

    Attributes:
        name: ``full`` or ``small``.
        backend_parts: the parts of ``tests.models.backends`` that are compared.
        rows: the limit on the rows of each split.
        models: the models whose training is measured, by name.
        length: the tokens of each side of their rows, which have no padding.
        batch_rows: the rows of a batch.
        steps: the measured training steps.
        matrix_side: the rows and columns of the matrices whose product is measured.
        vocabulary: the limit on the size of the vocabularies.
        search_model: the model that is searched.
        search_steps: its training steps, on TensorFlow.
        search_rows: the sources that are decoded.
        search_batch: the rows of a batch of the search.
        translation_model: what replaces keys of the configuration's ``model``.
        translation: what replaces keys of the configuration's ``training``.
    """

    name: str
    backend_parts: tuple[str, ...]
    rows: int
    models: Mapping[str, Mapping[str, Any]]
    length: int
    batch_rows: int
    steps: int
    matrix_side: int
    vocabulary: int
    search_model: Mapping[str, Any]
    search_steps: int
    search_rows: int
    search_batch: int
    translation_model: Mapping[str, Any]
    translation: Mapping[str, Any]


FULL = Size(
    name="full",
    # The order in which they are computed: those that compile for long come last.
    backend_parts=(
        *("searches", "attention", "transformer", "seq2seq", "images"),
        *("recurrent", "pointer", "similarity", "span"),
    ),
    rows=1_000_000,
    models={
        "transformer 3+3, width 256": transformer(256, 3),
        "transformer base 6+6, width 512": transformer(512, 6),
        "luong 2+2, width 256": luong(256, 2),
    },
    length=32,
    batch_rows=768,
    steps=60,
    matrix_side=8192,
    vocabulary=1_000_000,
    search_model=transformer(128, 2),
    search_steps=300,
    search_rows=1000,
    search_batch=250,
    translation_model={},
    translation={"max_steps": 8000},
)

_SMALL_STACK = {"type": "transformer", "layers": 1, "heads": 2, "feed_forward": 16}
SMALL = Size(
    name="small",
    backend_parts=("images", "searches"),
    rows=300,
    models={
        "transformer 1+1, width 16": transformer(16, 1, 2),
        "luong 1+1, width 16": luong(16, 1),
    },
    length=8,
    batch_rows=8,
    steps=4,
    matrix_side=128,
    vocabulary=300,
    search_model=transformer(16, 1, 2),
    search_steps=4,
    search_rows=12,
    search_batch=6,
    translation_model={
        "embedding": 16,
        "encoder": {**_SMALL_STACK, "positions": "rotary"},
        "decoder": {**_SMALL_STACK, "positions": "rotary"},
    },
    # One length of batches, so that few programs are compiled.
    translation={"max_steps": 4, "evaluate_every": 2, "batch_tokens": 400, "max_length": 8},
)

SIZES = {size.name: size for size in (FULL, SMALL)}
