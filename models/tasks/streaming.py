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

from regard.models.search import Search
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
    size = f"{best.hypotheses} samples" if isinstance(best, RollOutSearch) else "hypotheses"
    return (
        f"{type(search).__name__} compares {size} and knows the output only at its end. Greedy "
        "search, sampling with samples: 1, and a beam_size of 1 without length and coverage "
        "penalty can stream."
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
    structure: list[Any] = []

    def start(**inputs: Tensor) -> dict[str, Tensor]:
        state, is_blank, others = begin(inputs[source], _Start(search))
        structure.append(state)
        leaves = keras.tree.flatten(state)
        empty, nan = tf.constant([""]), tf.constant([math.nan])
        return {
            **{f"state_{i}": leaf for i, leaf in enumerate(leaves)},
            **{name: tf.zeros([1], tf.int32) for name in ("position", "streamed_bytes")},
            **{"token": empty, "text": empty, "log_probability": nan, "is_end": is_blank},
            **{output: empty, "score": nan, **others},
        }

    def advance(**state: Tensor) -> dict[str, Tensor]:
        leaves = [state[f"state_{i}"] for i in range(len(state) - 2)]
        beams, inputs = keras.tree.pack_sequence_as(structure[0], leaves)
        steps, position = RollOut(search, step, inputs), tf.reduce_max(state["position"])
        _, new = steps.advance(position, {}, beams)
        is_end = new["tokens"] == EOS
        # With EOS, which has no text, or as if it followed.
        lengths = position + 2 - tf.cast(is_end, tf.int32)
        text = to_texts(tokenizer, new["ids"], lengths)
        final = tf.where(is_end, text, tf.strings.regex_replace(text, _INCOMPLETE, ""))
        size = tf.strings.length(final)
        streamed = tf.minimum(state["streamed_bytes"], size)
        return {
            **{f"state_{i}": leaf for i, leaf in enumerate(keras.tree.flatten(new))},
            **{"position": state["position"] + 1, "streamed_bytes": size},
            **{"is_end": is_end, output: text},
            "text": tf.strings.substr(text, streamed, size - streamed),
            "token": tokenizer.id_to_string(new["tokens"]),
            "log_probability": new["total"] - beams["total"],
            "score": new["total"],
        }

    first = _trace(start, {source: tf.TensorSpec([1], tf.string)})
    outputs = first.structured_outputs
    specs = {
        name: tf.TensorSpec([1, *spec.shape[1:]], spec.dtype)
        for name, spec in outputs.items()
        if name.startswith("state_") or name in ("position", "streamed_bytes")
    }
    return {START: first, STEP: _trace(advance, specs)}


def _trace(function: Callable[..., Any], specs: dict[str, tf.TensorSpec]) -> Any:
    named = {name: tf.TensorSpec(spec.shape, spec.dtype, name) for name, spec in specs.items()}
    return tf.function(function, autograph=False).get_concrete_function(**named)
