"""Token streaming in an exported graph: the start of a search, and one step of it.

Whoever runs the model calls the first function once and the second until the output has ended, and
keeps the tensors in between. See ``regard.serving.streaming``.
"""

import math
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from regard.models.search import Hypotheses, Search
from regard.models.search.rollout import RollOut, RollOutSearch
from regard.models.seq2seq import Seq2Seq
from regard.models.tasks.copy_tokenizer import CopyTokenizer, token_strings
from regard.models.tasks.search_outputs import to_texts
from regard.models.tasks.served_model import OutputLengths, ServedModule
from regard.models.tensors import Tensor
from regard.models.vocabulary import EOS

START, STEP = "stream_start", "stream_step"
# The sign for bytes that are not a whole character, at the end of a text: more may follow.
_INCOMPLETE = "\ufffd+$"


class _Start(Search):
    """In place of a search, return what it starts with."""

    def __init__(self, search: RollOutSearch):
        self._search = search

    def run(self, step: Any, state: Any, inputs: Any) -> Any:
        return self._search.start(state, inputs), inputs


def stream_problem(search: Search, split_sentences: bool = False, int8: bool = False) -> str | None:
    """Return why a search cannot stream; None if it appends final tokens to one hypothesis."""
    if split_sentences:
        return "The model cannot stream: serving.split_sentences splits long sources."
    if int8:
        return "The model cannot stream: every step would convert the weights from 8-bit integers."
    best = search.best()
    if isinstance(best, RollOutSearch) and best.hypotheses == 1:
        return None
    name = type(search).__name__.removesuffix("Search").lower()
    return (
        f"The model cannot stream: its search ({name}) compares several outputs and knows the best "
        "one only at the end. Use greedy search, sampling of one sample, or a beam_size of 1 "
        "without length_penalty and coverage_penalty."
    )


class StreamedModule(ServedModule):
    """Base class of the modules that stream a text token by token, if their search can.

    Attributes:
        cut_outputs: The output with the number of truncated tokens, if a source can be truncated.
    """

    cut_outputs: OutputLengths = {}
    _model: Seq2Seq

    @property
    def _tokenizer(self) -> Any:
        return self.tokenizers[self._description.reference.name]

    def stream(self) -> dict[str, Any]:
        """Return the graphs of both functions for one input; none if the search cannot stream.

        ``stream_start`` takes the source and ``stream_step`` the state. Both return the state, the
        next ``token`` with its ``log_probability``, the ``text`` that it adds, ``is_end``, and the
        outputs of ``serving_default`` for the text until now, each ``[1]``. The texts of all steps
        together are the whole text. At the start only a blank source ``is_end``.
        """
        if stream_problem(self._search, self.split_sentences, bool(self.scales)):
            return {}
        (source,), output = (one["name"] for one in self._inputs), self._description.output
        search, structure = self._search.best(), None

        def start(**inputs: Tensor) -> dict[str, Tensor]:
            nonlocal structure
            encoded, cut, tokenizer = self._encode(inputs[source])
            started: Any = self._run_search(inputs[source], encoded, _Start(search))
            zero = tf.zeros([1], tf.int32)
            unknown = tokenizer.unknown if isinstance(tokenizer, CopyTokenizer) else ()
            structure = ((started[0], zero, zero), started[1], unknown)
            return {
                **_number(structure),
                **dict.fromkeys(("token", "text", output), tf.constant([""])),
                **dict.fromkeys(("log_probability", "score"), tf.constant([math.nan])),
                **dict.fromkeys(self.cut_outputs, cut),
                "is_end": self._is_blank(inputs[source]),
            }

        def advance(**state: Tensor) -> dict[str, Tensor]:
            leaves = [state[f"state_{i}"] for i in range(len(state))]
            state_now = keras.tree.pack_sequence_as(structure, leaves)
            (beams, position, streamed), rows, unknown = state_now
            is_copying = tf.is_tensor(unknown)
            tokenizer = CopyTokenizer(self._tokenizer, unknown) if is_copying else self._tokenizer
            steps = RollOut(search, self._model.decoder.step, rows)
            _, new = steps.advance(tf.reduce_max(position), {}, beams)
            is_end = new["tokens"] == EOS
            # With EOS, which has no text, or as if it followed.
            text = to_texts(tokenizer, new["ids"], position + 2 - tf.cast(is_end, tf.int32))
            final = tf.where(is_end, text, tf.strings.regex_replace(text, _INCOMPLETE, ""))
            size = tf.reshape(tf.strings.length(final), [1])
            return {
                **_number((new, position + 1, size)),
                "token": token_strings(tokenizer, new["tokens"]),
                "text": tf.strings.substr(text, streamed, size - streamed),
                "log_probability": new["total"] - beams["total"],
                "is_end": is_end,
                output: text,
                "score": new["total"],
            }

        first = _trace(start, {source: tf.TensorSpec([1], tf.string)})
        outputs = first.structured_outputs
        state = {name: one for name, one in outputs.items() if name.startswith("state_")}
        specs = {name: tf.TensorSpec([1, *one.shape[1:]], one.dtype) for name, one in state.items()}
        return {START: first, STEP: _trace(advance, specs)}

    def _is_blank(self, source: tf.Tensor) -> tf.Tensor:
        """Return which inputs have no content, ``[batch]``; their output is empty."""
        return tf.zeros_like(source, tf.bool)

    def _encode(self, source: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, Any]:
        """Return the inputs of the model, the numbers of truncated tokens, and the tokenizer.

        The tokenizer is that of the outputs of these sources.
        """
        raise NotImplementedError

    def _row_options(self, source: tf.Tensor, encoded: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the ``limits``, ``keys`` and perhaps ``minimums`` of ``Search.__call__``."""
        raise NotImplementedError

    def _run_search(
        self,
        source: tf.Tensor,
        encoded: tf.Tensor,
        search: Search,
        min_limits: tf.Tensor = 0,
        **constraints: tf.Tensor,
    ) -> Hypotheses:
        """Search with the limits of the sources, raised to ``min_limits`` ``[batch]``."""
        options = self._row_options(source, encoded)
        limits = tf.maximum(options.pop("limits"), min_limits)
        return self._model.search(encoded, search, limits, **options, **constraints)


def _number(state: Any) -> dict[str, Tensor]:
    return {f"state_{i}": leaf for i, leaf in enumerate(keras.tree.flatten(state))}


def _trace(function: Callable[..., Any], specs: dict[str, tf.TensorSpec]) -> Any:
    inputs = {name: tf.TensorSpec(spec.shape, spec.dtype, name) for name, spec in specs.items()}
    return tf.function(function, autograph=False).get_concrete_function(**inputs)
