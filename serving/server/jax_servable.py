"""A model whose searches for single texts run in programs of JAX, everything else in TensorFlow."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from grpc import StatusCode

from regard.serving.contract import DEFAULT_SIGNATURE
from regard.serving.server.admission import return_free_memory
from regard.serving.server.converted_servable import ConvertedServable
from regard.serving.server.errors import ServingError

INFO, WEIGHTS = "regard.json", "weights.npz"
# Allowed difference of the log-probability of an output, relative to the larger of it and 1:
# float32 in another order of operations.
TOLERANCE = 1e-3
_SPACE = "\u2581"
# Returns the ids of the best output, its length with the end, and its log-probability.
_Program = Callable[[np.ndarray, Mapping[str, np.ndarray]], tuple[Any, Any, Any]]


def program_file(length: int) -> str:
    """Return the name of the file with the program for sources of at most this many tokens."""
    return f"program-{length}.jax"


class _Encoded(NamedTuple):
    """The ids of a source, and its tokens that the vocabulary lacks, in their order."""

    ids: list[int]
    unknown: list[str]


class JaxServable(ConvertedServable):
    """A SavedModel, and programs that compute the default signature for a request of one row.

    The row is padded to the smallest number of tokens that there is a program for. TensorFlow
    computes longer rows, and those that `ConvertedServable` leaves to it. A computation that has
    started is not cancelled at the time limit.

    Args:
        name: the model's name.
        path: its folder.
        converted: the folder with the programs, of ``pipeline.deployment.jax_conversion``.

    Raises:
        ServingError: as `Servable`.
    """

    def __init__(self, name: str, path: Path, converted: Path):
        info = json.loads((converted / INFO).read_text(encoding="utf-8"))
        super().__init__(name, path, converted, info["search"], info["lengths"][-1])
        self._copies = info["copies"]
        self._programs = _compile_programs(converted, info["lengths"])

    def run(
        self, name: str, inputs: Mapping[str, np.ndarray], timeout: float = 0.0
    ) -> dict[str, np.ndarray]:
        """Return all outputs of a signature for validated inputs; see `Servable`."""
        if (name or DEFAULT_SIGNATURE) == DEFAULT_SIGNATURE:
            (sources,) = inputs.values()
            if len(sources) == 1 and (outputs := self._compute(sources[0])):
                return self._stack(DEFAULT_SIGNATURE, [outputs])
        return super().run(name, inputs, timeout)

    def close(self) -> None:
        """Free the memory of both engines."""
        super().close()
        self._programs = {}

    def verify(self) -> int:
        """Compare the outputs for the rows that the Trainer stored with those of the SavedModel.

        Returns:
            The number of rows that JAX computes.

        Raises:
            ServingError: an output differs.
        """
        count = 0
        for number, (source, expected) in enumerate(self._stored_rows()):
            outputs = self._compute(source)
            if not outputs:
                continue
            count += 1
            output = self._contract["answer"]
            text, score = outputs[output].decode(), outputs["score"]
            is_close = np.isclose(score, expected["score"], TOLERANCE, TOLERANCE)
            if text != expected[output] or not is_close:
                message = f"JAX computes another {output} of row {number} in the stored outputs: "
                message += f"{text!r} with the score {score:.5f}, expected {expected[output]!r} "
                message += f"with {expected['score']:.5f}."
                raise ServingError(StatusCode.FAILED_PRECONDITION, message)
        return count

    def _compute(self, source: bytes) -> dict[str, Any]:
        """Return the outputs of the default signature for a row; none if TensorFlow has to."""
        encoded = self._encode(self._decode_source(source))
        tokens, programs = len(encoded.ids), self._programs
        length = next((length for length in programs if length >= tokens), 0)
        if not tokens or not length:
            return {}
        ids = np.zeros((1, length + 1), np.int32)
        ids[0, : tokens + 1] = [*encoded.ids, self._source.eos_id()]
        constraints = {"limits": np.array([self._max_length(tokens)], np.int32)}
        if factor := self._search["min_length_factor"]:
            minimum = np.ceil(np.float32(tokens) * np.float32(factor)) + 1
            constraints["minimums"] = np.array([minimum], np.int32)
        best, size, score = map(np.asarray, programs[length](ids, constraints))
        text = self._to_text(best[: max(int(size) - 1, 0)].tolist(), encoded.unknown)
        answer = self._contract["answer"]
        return {answer: text.encode(), "score": float(score), "source_cut": 0, "sentences": 1}

    def _encode(self, text: str) -> _Encoded:
        """Tokenize a text; the unknown tokens of a model that copies get the ids that follow.

        The rules are those of ``CopyTokenizer`` in ``regard.models.tasks.copy_tokenizer``.
        """
        if not self._copies:
            return _Encoded(self._source.encode(text), [])
        size, unknown_id = self._source.vocab_size(), self._source.unk_id()
        encoded = _Encoded([], [])
        for token in self._source.encode(text, out_type=str):
            if (known := self._source.piece_to_id(token)) != unknown_id:
                encoded.ids.append(known)
                continue
            for word in re.sub(f"(.){_SPACE}", rf"\1\n{_SPACE}", token).split("\n"):
                encoded.unknown.append(word)
                encoded.ids.append(size + encoded.unknown.index(word))
        return encoded

    def _to_text(self, ids: list[int], unknown: list[str]) -> str:
        if not self._copies:
            return self._target.decode(ids)
        size = self._target.vocab_size()
        tokens = [
            self._target.id_to_piece(token) if token < size else unknown[token - size]
            for token in ids
        ]
        text = self._target.decode_pieces(tokens)
        return text.removeprefix(_SPACE).replace(_SPACE, " ")


def _compile_programs(folder: Path, lengths: list[int]) -> dict[int, _Program]:
    """Compile the programs of a folder, by the number of source tokens, ascending."""
    jax = import_jax()
    with np.load(folder / WEIGHTS) as file:
        weights = [file[name] for name in file.files]
    programs = {}
    for length in lengths:
        content = bytearray((folder / program_file(length)).read_bytes())
        exported = jax.export.deserialize(content)
        (_, source, constraints), _ = exported.in_tree.unflatten(exported.in_avals)
        # XLA packs weights that are constants: a sentence takes 8.6 ms, with arguments 14.6 ms (a
        # GRU of 384 units, beam 5, 2 cores). Delete it if arguments become as fast.
        search = jax.jit(lambda *inputs, call=exported.call: call(weights, *inputs))
        programs[length] = search.lower(source, constraints).compile()
        jax.clear_caches()
        return_free_memory()  # a compilation leaves 200 MB
    return programs


def import_jax() -> Any:
    """Import JAX, for the CPU only.

    Raises:
        ImportError: it is not installed.
    """
    import jax
    import jax.export

    jax.config.update("jax_platforms", "cpu")
    return jax
