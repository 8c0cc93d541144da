"""Token streaming in an exported graph: the start of a search, and one step of it.

Whoever runs the model calls the first function once and the second until the output has ended, and
keeps the tensors in between. See ``regard.serving.streaming``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from regard.models.search import SEARCHES, Search
from regard.models.search.base import RowInputs, Step
from regard.models.search.rollout import RollOut, RollOutSearch
from regard.models.tasks.search_outputs import to_texts
from regard.models.tensors import State, Tensor
from regard.models.vocabulary import EOS

START, STEP = "stream_start", "stream_step"
# The sign for bytes that are not a whole character, at the end of a text: more may follow.
_INCOMPLETE = "\ufffd+$"


class _Start(Search):
    """In place of a search, return what it starts with."""

    def __init__(self, search: RollOutSearch):
        self._search = search

    def run(self, step: Step, state: State, inputs: RowInputs) -> Any:
        return self._search.start(state, inputs), inputs


def stream_problem(search: Search) -> str | None:
    """Return why a search cannot stream; None if it appends final tokens to one hypothesis."""
    best = search.best()
    if isinstance(best, RollOutSearch) and best.hypotheses == 1:
        return None
    name = next(name for name, kind in SEARCHES.items() if isinstance(search, kind))
    return (
        f"Its search ({name}) compares several outputs and knows the best one only at the end. "
        "Greedy search, sampling of one sample, and a beam_size of 1 without length_penalty and "
        "coverage_penalty can stream."
    )


def create_stream(
    search: RollOutSearch,
    step: Step,
    tokenizer: Any,
    output: str,
    source: str,
    begin: Callable[[Tensor, Search], tuple[Any, Tensor, dict[str, Tensor]]],
) -> dict[str, Any]:
    """Return the graphs of both functions for one input.

    Args:
        search: a search for one hypothesis.
        step: the decoder's ``step``.
        tokenizer: of the outputs.
        output: the name of the text.
        source: the name of the input.
        begin: runs a search on sources ``[1]`` and returns its result, whether the sources are
            blank, and further outputs.

    Returns:
        ``stream_start`` from the source and ``stream_step`` from the state to the state, the next
        ``token``, the ``text`` that it adds, its ``log_probability``, ``is_end``, and the whole
        text with its ``score`` as in ``serving_default``, each ``[1]``. The texts of all steps
        together are the whole text.
    """
    structure: Any = None

    def start(**inputs: Tensor) -> dict[str, Tensor]:
        nonlocal structure
        (beams, rows), is_blank, others = begin(inputs[source], _Start(search))
        structure = ((beams, tf.zeros([1], tf.int32), tf.zeros([1], tf.int32)), rows)
        empty, nan = tf.constant([""]), tf.constant([math.nan])
        token = {"token": empty, "text": empty, "log_probability": nan, "is_end": is_blank}
        return {**_number(structure), **token, output: empty, "score": nan, **others}

    def advance(**state: Tensor) -> dict[str, Tensor]:
        leaves = [state[f"state_{i}"] for i in range(len(state))]
        (beams, position, streamed), rows = keras.tree.pack_sequence_as(structure, leaves)
        steps = RollOut(search, step, rows)
        _, new = steps.advance(tf.reduce_max(position), {}, beams)
        is_end = new["tokens"] == EOS
        # With EOS, which has no text, or as if it followed.
        text = to_texts(tokenizer, new["ids"], position + 2 - tf.cast(is_end, tf.int32))
        final = tf.where(is_end, text, tf.strings.regex_replace(text, _INCOMPLETE, ""))
        size = tf.reshape(tf.strings.length(final), [1])
        return {
            **_number((new, position + 1, size)),
            "token": tokenizer.id_to_string(new["tokens"]),
            "text": tf.strings.substr(text, streamed, size - streamed),
            "log_probability": new["total"] - beams["total"],
            "is_end": is_end,
            output: text,
            "score": new["total"],
        }

    first = _trace(start, {source: tf.TensorSpec([1], tf.string)})
    state = {name: x for name, x in first.structured_outputs.items() if name.startswith("state_")}
    specs = {name: tf.TensorSpec([1, *x.shape[1:]], x.dtype) for name, x in state.items()}
    return {START: first, STEP: _trace(advance, specs)}


def _number(state: Any) -> dict[str, Tensor]:
    return {f"state_{i}": leaf for i, leaf in enumerate(keras.tree.flatten(state))}


def _trace(function: Callable[..., Any], specs: dict[str, tf.TensorSpec]) -> Any:
    named = {name: tf.TensorSpec(spec.shape, spec.dtype, name) for name, spec in specs.items()}
    return tf.function(function, autograph=False).get_concrete_function(**named)
