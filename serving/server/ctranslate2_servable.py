"""A model whose searches run in CTranslate2, and everything else in TensorFlow."""

import json
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from grpc import StatusCode

from regard.serving.contract import DEFAULT_SIGNATURE
from regard.serving.export.ctranslate2 import INFO_FILE, POSITIONS, target_prefixes
from regard.serving.server.converted_servable import ConvertedServable
from regard.serving.server.errors import ServingError

# The signatures that CTranslate2 computes.
SIGNATURES = (DEFAULT_SIGNATURE, "align", "nbest")
# How much lower the mean natural logarithm of a token's probability may be in the outputs of
# CTranslate2 than in those of the SavedModel. Both searches are approximate.
TOLERANCES = {"float32": 0.05, "float16": 0.05, "int16": 0.05, "int8": 0.1}
_END = "</s>"


class _Hypothesis(NamedTuple):
    """An output for one row: its tokens with the end, and its attention ``[target, source]``."""

    tokens: list[str]
    log_probability: float
    score: float
    attention: Sequence[Sequence[float]] | None


def find_unsupported_search(search: Mapping[str, Any]) -> list[str]:
    """Return the keys of a section ``search`` with values that CTranslate2 has no equal for."""
    keys = [
        key
        for key in ("coverage_penalty", "min_length_factor", "no_repeat_ngram_size")
        if search.get(key)
    ]
    return keys if search["type"] in ("beam", "greedy") else ["type", *keys]


class CTranslate2Servable(ConvertedServable):
    """A SavedModel, and its conversion, which computes the outputs of three signatures.

    These are the default one, ``align`` and ``nbest``. TensorFlow computes the rows that
    CTranslate2 treats in another way: blank ones, those longer than the model's limit, and those
    whose output does not end within its limit.

    CTranslate2 stops when the beam is full, unless ``search.patience`` says otherwise, and its
    length penalty differs; of the hypotheses in its beam, the best by the model's own penalty is
    chosen. A computation that has started is not cancelled at the time limit.

    Args:
        name: the model's name.
        path: its folder.
        converted: the folder of the conversion, of ``pipeline.deployment.export``.
        search: the section ``search`` of the model.
        threads: batches that run at once.

    Raises:
        ServingError: as `Servable`.
    """

    def __init__(
        self, name: str, path: Path, converted: Path, search: Mapping[str, Any], threads: int
    ):
        import ctranslate2

        super().__init__(name, path, converted, search, POSITIONS - 1)
        self._threads = threads
        info = json.loads((converted / INFO_FILE).read_text(encoding="utf-8"))
        arguments = info["translate_batch"]
        self._arguments = {k: v for k, v in arguments.items() if not k.startswith("max_")}
        self._first_tokens = info["first_tokens"]
        self._prefix_length = int(bool(self._first_tokens))
        # Only vocabularies of whole words lack the sign of a word alone.
        has_sign = self._target.piece_to_id("\u2581") != self._target.unk_id()
        self._unknown = b"<unk>" if has_sign else "\u2581<unk>".encode()
        self._translator = ctranslate2.Translator(
            str(converted),
            inter_threads=2 * threads,  # a large batch, which is divided, leaves some for others
            intra_threads=1,
        )

    def run(
        self, name: str, inputs: Mapping[str, np.ndarray], timeout: float = 0.0
    ) -> dict[str, np.ndarray]:
        """Return all outputs of a signature for validated inputs; see `Servable`."""
        name = name or DEFAULT_SIGNATURE
        if name not in SIGNATURES or not len(next(iter(inputs.values()))):
            return super().run(name, inputs, timeout)
        (sources,) = inputs.values()
        ids = [self._token_ids(text) for text in sources]
        outputs = {
            row: self._outputs(name, sources[row], hypotheses)
            for row, hypotheses in self._translate(ids, name).items()
        }
        rest = [row for row in range(len(sources)) if row not in outputs]
        if rest:
            rest_inputs = {key: value[rest] for key, value in inputs.items()}
            computed = super().run(name, rest_inputs, timeout)
            for index, row in enumerate(rest):
                outputs[row] = {key: value[index] for key, value in computed.items()}
        return self._stack(name, [outputs[row] for row in range(len(sources))])

    def close(self) -> None:
        """Free the memory of both engines."""
        super().close()
        self._translator.unload_model()

    def verify(self, quantization: str) -> float:
        """Compare the outputs for the rows that the Trainer stored with those of the SavedModel.

        Each engine rates the outputs of its own search. That both give an output one score, the
        export has verified. A text is no measure: its segmentation may differ from the output's.

        Returns:
            How much lower the outputs of CTranslate2 are rated: the difference of the mean natural
            logarithms of a token's probability; 0 without stored rows.

        Raises:
            ServingError: it is more than the type of the weights explains.
        """
        rows = self._stored_rows()
        ids = [self._token_ids(source) for source, _ in rows]
        losses = []
        for row, (best,) in self._translate(ids, DEFAULT_SIGNATURE).items():
            _, answer = rows[row]
            expected = answer["score"] / answer["target_length"]
            losses.append(expected - best.log_probability / len(best.tokens))
        loss = float(np.mean(losses)) if losses else 0.0
        if not loss <= TOLERANCES[quantization]:
            message = f"The outputs of CTranslate2 ({quantization}) are worse: the probability of a"
            message += f" token is lower by {loss:.2g} (natural logarithm) on {len(losses)} rows."
            raise ServingError(StatusCode.FAILED_PRECONDITION, message)
        return loss

    def _token_ids(self, text: bytes) -> list[int]:
        """Return the token ids of a text; none if TensorFlow has to compute it."""
        ids = self._source.encode(self._decode_source(text))
        longest = self._prefix_length + self._max_length(len(ids))
        is_short = len(ids) <= self._max_tokens and longest <= POSITIONS
        return ids if is_short else []

    def _translate(self, ids: Sequence[list[int]], name: str) -> dict[int, list[_Hypothesis]]:
        """Return the hypotheses of the rows that CTranslate2 can complete, the best first."""
        rows = [row for row, tokens in enumerate(ids) if tokens]
        if not rows:
            return {}
        limits = [self._max_length(len(ids[row])) for row in rows]
        # Not the tokens as they are in the text: an unknown one can be the text "</s>".
        sources = [self._source.id_to_piece(ids[row]) for row in rows]
        results = self._translator.translate_batch(
            sources,
            target_prefix=target_prefixes(sources, self._first_tokens),
            max_batch_size=self._batch_size(len(rows), name),
            max_input_length=0,
            max_decoding_length=self._prefix_length + max(limits),
            num_hypotheses=self._arguments["beam_size"],
            return_scores=True,
            return_end_token=True,
            return_attention=name == "align",
            **self._arguments,
        )
        translated = {}
        count = self._search.get("n_best", 1) if name == "nbest" else 1
        for row, limit, result in zip(rows, limits, results, strict=True):
            outputs = zip_longest(result.hypotheses, result.scores, result.attention)
            hypotheses = [self._hypothesis(*output) for output in outputs]
            hypotheses.sort(key=lambda hypothesis: hypothesis.score, reverse=True)
            best = hypotheses[:count]
            if all(_is_complete(hypothesis, limit) for hypothesis in best):
                translated[row] = best
        return translated

    def _batch_size(self, rows: int, name: str) -> int:
        """Return how many rows of similar lengths are computed at once."""
        if name == "align" and self._arguments["beam_size"] > 1:
            # With a beam, CTranslate2 4.8.5 returns the attention of another row of the batch for
            # the first token.
            return 1
        return -(-rows // self._threads)

    def _hypothesis(
        self, tokens: list[str], score: float, attention: Sequence[Sequence[float]] | None
    ) -> _Hypothesis:
        """Return a hypothesis without its prefix, with the score of the model's own search."""
        log_probability = score * len(tokens) ** self._arguments["length_penalty"]
        tokens = tokens[self._prefix_length :]
        attention = attention and attention[self._prefix_length :]
        offset = self._search.get("length_offset", 5.0)
        ratio = (offset + len(tokens)) / (offset + 1)
        penalty = ratio ** self._search.get("length_penalty", 0.0)
        return _Hypothesis(tokens, log_probability, log_probability / penalty, attention)

    def _outputs(
        self, name: str, source: bytes, hypotheses: Sequence[_Hypothesis]
    ) -> dict[str, Any]:
        """Return the outputs of a signature for one row."""
        texts = [self._text(hypothesis) for hypothesis in hypotheses]
        outputs: dict[str, Any] = {"source_cut": 0}
        if name == "nbest":
            return outputs | {
                "hypotheses": texts,
                "lengths": [len(hypothesis.tokens) for hypothesis in hypotheses],
                "log_probabilities": [hypothesis.log_probability for hypothesis in hypotheses],
                "scores": [hypothesis.score for hypothesis in hypotheses],
            }
        best = hypotheses[0]
        outputs |= {self._contract["answer"]: texts[0], "score": best.log_probability}
        if name == DEFAULT_SIGNATURE:
            return outputs | {"sentences": 1}
        weights = np.array(best.attention)
        tokens = [*self._source.encode(source.decode(), out_type=str), _END]
        return outputs | {
            "source_pieces": [token.encode() for token in tokens],
            "source_length": len(tokens),
            "target_pieces": [
                self._unknown if token == "<unk>" else token.encode() for token in best.tokens
            ],
            "target_length": len(best.tokens),
            # CTranslate2 leaves out the attention to the end of the source.
            "alignment": np.column_stack([weights, 1 - weights.sum(axis=1)]),
        }

    def _text(self, hypothesis: _Hypothesis) -> bytes:
        return self._target.decode(self._target.piece_to_id(hypothesis.tokens[:-1])).encode()


def _is_complete(hypothesis: _Hypothesis, limit: int) -> bool:
    tokens = hypothesis.tokens
    return tokens[-1:] == [_END] and len(tokens) <= limit
