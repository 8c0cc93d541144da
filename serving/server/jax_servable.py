"""A model whose searches for single texts run in programs of JAX, everything else in TensorFlow."""

import json
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from grpc import StatusCode

from regard.serving.contract import DEFAULT_SIGNATURE
from regard.serving.output_comparison import OutputComparison, Tolerances
from regard.serving.server.admission import return_free_memory
from regard.serving.server.converted_servable import ConvertedServable
from regard.serving.server.errors import ServingError
from regard.serving.server.servable import Servable

INFO, WEIGHTS = "regard.json", "weights.npz"
# Allowed differences from TensorFlow's outputs: float32 in another order of operations.
TOLERANCES: Tolerances = {"absolute": 1e-3, "relative": 1e-3, "array": 1e-3, "ties": 1 / 4}
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
    started is not cancelled at the time limit, but ends with the error of one that is.

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
            started = time.monotonic()
            if len(sources) == 1 and (outputs := self._compute(sources[0])):
                if 0 < timeout < time.monotonic() - started:
                    message = f"The computation took longer than {timeout:g} s."
                    raise ServingError(StatusCode.DEADLINE_EXCEEDED, message)
                return self._stack(DEFAULT_SIGNATURE, [outputs])
        return super().run(name, inputs, timeout)

    def close(self) -> None:
        """Free the memory of both engines."""
        super().close()
        self._programs = {}

    def verify(self) -> list[int]:
        """Compare the outputs of all programs with TensorFlow's, and keep the programs that agree.

        The rows are those that the Trainer stored. Each runs in every program that it fits into; a
        program that none of them fits into is dropped. Of two outputs with equal scores, rounding
        decides; a quarter of the outputs may differ so.

        Returns:
            The numbers of tokens of the programs.

        Raises:
            ServingError: an output differs, or no row fits into a program.
        """
        comparison, compared, tied = OutputComparison(self._contract, TOLERANCES), [], 0
        (source_input,) = self._contract["inputs"]
        for number, (source, _) in enumerate(self._stored_rows()):
            computed = {length: self._compute(source, length) for length in self._programs}
            computed = {length: outputs for length, outputs in computed.items() if outputs}
            if not computed:
                continue
            inputs = {source_input["name"]: np.array([source], object)}
            expected = _to_python({k: v[0] for k, v in Servable.run(self, "", inputs).items()})
            for length, outputs in computed.items():
                difference, is_tie = comparison.compare(_to_python(outputs), expected)
                compared.append(length)
                tied += is_tie
                if difference and not is_tie:
                    message = f"JAX and TensorFlow do not agree on stored row {number}, with the"
                    message += f" program for {length} tokens: {difference}."
                    raise ServingError(StatusCode.FAILED_PRECONDITION, message)
        if not compared:
            message = f"No stored row has at most {max(self._programs)} tokens, so the programs of"
            message += " JAX cannot be verified. Use larger numbers in --compiled-lengths."
            raise ServingError(StatusCode.FAILED_PRECONDITION, message)
        if tied > TOLERANCES["ties"] * len(compared):
            message = f"JAX and TensorFlow write different texts with equal scores in {tied} of"
            message += (
                f" {len(compared)} comparisons with stored rows, which is more than rounding."
            )
            raise ServingError(StatusCode.FAILED_PRECONDITION, message)
        self._programs = {length: self._programs[length] for length in sorted({*compared})}
        return list(self._programs)

    def _compute(self, source: bytes, length: int = 0) -> dict[str, Any]:
        """Return the outputs of the default signature for a row; none if TensorFlow has to.

        Args:
            source: the row.
            length: the program, by its number of tokens; 0: the smallest that the row fits into.
        """
        encoded = self._encode(self._decode_source(source))
        tokens, programs = len(encoded.ids), self._programs
        fitting = [size for size in programs if size >= tokens and length in (0, size)]
        # The graph treats the text of a control token, such as "</s>", in its own way.
        controls = {self._source.pad_id(), self._source.bos_id(), self._source.eos_id()}
        if not tokens or not fitting or controls & set(encoded.ids):
            return {}
        size = fitting[0]
        ids = np.zeros((1, size + 1), np.int32)
        ids[0, : tokens + 1] = [*encoded.ids, self._source.eos_id()]
        constraints = {"limits": np.array([self._max_length(tokens)], np.int32)}
        if factor := self._search["min_length_factor"]:
            minimum = np.ceil(np.float32(tokens) * np.float32(factor)) + 1
            constraints["minimums"] = np.array([minimum], np.int32)
        best, size_with_end, score = map(np.asarray, programs[size](ids, constraints))
        text = self._to_text(best[: max(int(size_with_end) - 1, 0)].tolist(), encoded.unknown)
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
        # Ids after those of the unknown tokens have a probability of almost 0, but the constraints
        # may forbid all others. As in the graph, no text belongs to them.
        copies = dict(enumerate(unknown, size))
        tokens = [
            self._target.id_to_piece(number) if number < size else copies.get(number, "")
            for number in ids
        ]
        text = self._target.decode_pieces(tokens)
        return text.removeprefix(_SPACE).replace(_SPACE, " ")


def _to_python(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outputs of a row as Python's texts and numbers."""
    return {
        name: value.decode() if isinstance(value, bytes) else np.asarray(value).item()
        for name, value in outputs.items()
    }


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
