"""The weights of encoder-decoder Transformers as Hugging Face names them (BART's names)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regard.components.common.sentencepiece_renumbering import SPECIAL_TOKENS
from regard.core.errors import UserError
from regard.models.vocabulary import BOS, EOS, PAD, UNK

# The parts of a layer: ours, and those of Hugging Face, whose outputs are concatenated.
_LAYER = {
    "attention/project": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "attention/output": ("self_attn.out_proj",),
    "attention_norm": ("self_attn_layer_norm",),
    "cross/project_query": ("encoder_attn.q_proj",),
    "cross/project_memory": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
    "cross/output": ("encoder_attn.out_proj",),
    "cross_norm": ("encoder_attn_layer_norm",),
    "feed_forward/expand": ("fc1",),
    "feed_forward/contract": ("fc2",),
    "feed_forward_norm": ("final_layer_norm",),
}
_KINDS = {"kernel": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"}
_POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
# The logit of a token that no output has: its probability is 0 in every floating-point type.
NEVER = -100.0


@dataclass(frozen=True)
class TokenTable:
    """The tokens of one side in the order of Regard's ids.

    Attributes:
        tokens: their texts, without the four special ones, which come before them.
        rows: the row of each id in the foreign matrices, of the special ones too.
        copies: the ids whose row is a copy of another one's, and which no output has.
    """

    tokens: Sequence[str]
    rows: np.ndarray
    copies: np.ndarray

    @classmethod
    def create(
        cls,
        tokens: Mapping[int, str],
        special: Mapping[int, int],
        start: int,
        extra: Sequence[tuple[str, int]] = (),
    ) -> TokenTable:
        """Return the table of a vocabulary.

        Args:
            tokens: the text of each foreign id.
            special: the foreign ids of PAD, UNK and EOS.
            start: the foreign id of the decoder's first input.
            extra: further tokens, and the foreign id whose row they have.
        """
        order = [foreign for foreign in sorted(tokens) if foreign not in special.values()]
        rows = [special[PAD], special[UNK], start, special[EOS], *order]
        copies = [BOS, *range(len(rows), len(rows) + len(extra))]
        rows += [foreign for _, foreign in extra]
        # Regard's own special tokens have some of the texts that others have there.
        texts = [
            f"<unused {foreign}>" if tokens[foreign] in SPECIAL_TOKENS else tokens[foreign]
            for foreign in order
        ]
        texts += [text for text, _ in extra]
        return cls(texts, np.array(rows), np.array(copies))


class HuggingFaceWeights:
    """Weights by the names of ``ForeignModel.read_weight``.

    Args:
        tensors: the tensors of the file by name.
        path: the file.
        sides: the tokens of the ``encoder`` and the ``decoder``.
        never: further ids of the target that no output has.
    """

    def __init__(
        self,
        tensors: Mapping[str, np.ndarray],
        path: Path,
        sides: Mapping[str, TokenTable],
        never: Sequence[int] = (),
    ):
        self._tensors, self._path, self._sides = tensors, path, sides
        self._never = np.array([*sides["decoder"].copies, *never])
        self._used: set[str] = set()

    def __call__(self, name: str) -> np.ndarray:
        """Return a weight as float32.

        Raises:
            UserError: the file lacks it.
        """
        side, _, rest = name.partition("/")
        part, _, kind = rest.rpartition("/")
        if rest == "embedding/table":
            return self._table(side)[self._sides[side].rows]
        if rest == "logits_bias" or part == "logits":
            return self._output(kind)
        if rest.startswith("norm/"):
            return self._read(f"model.{side}.layer_norm.{_KINDS[kind]}")
        layer, _, part = part.partition("/")
        prefix = f"model.{side}.layers.{layer.removeprefix('layer_')}"
        values = [self._read(f"{prefix}.{other}.{_KINDS[kind]}") for other in _LAYER[part]]
        if kind == "kernel":
            values = [value.T for value in values]
        return np.concatenate(values, axis=-1)

    def _table(self, side: str) -> np.ndarray:
        shared, own = "model.shared.weight", f"model.{side}.embed_tokens.weight"
        if own not in self._tensors and shared not in self._tensors:
            return self._read("lm_head.weight")  # tied, and stored only once
        return self._read(own if own in self._tensors else shared)

    def _output(self, kind: str) -> np.ndarray:
        rows = self._sides["decoder"].rows
        if kind == "kernel":
            return self._read("lm_head.weight")[rows].T
        bias = np.zeros(len(rows), np.float32)
        if "final_logits_bias" in self._tensors:
            bias = self._read("final_logits_bias").reshape(-1)[rows]
        bias[self._never] = NEVER
        return bias

    def _read(self, name: str) -> np.ndarray:
        if name not in self._tensors:
            message = f"The weights have no {name}."
            remedy = "Fetch the file again, and check that config.json belongs to it."
            raise UserError(message, str(self._path), remedy)
        self._used.add(name)
        return np.asarray(self._tensors[name], np.float32)

    def check_rest(self, tables: Mapping[str, np.ndarray]) -> None:
        """Check that all tensors of the file were read, or mean the same as others.

        Args:
            tables: the position encodings of each side that Regard computes, ``[positions,
                depth]``; those of the file must be equal.

        Raises:
            UserError: there are other tensors, so the model computes something else.
        """
        for name in sorted(set(self._tensors) - self._used):
            if name in _POSITIONS:
                self._check_positions(name, tables[name.split(".")[1]])
            elif not self._is_copy(name):
                message = f"The weights have {name}, which this kind of model does not have."
                remedy = "Only models whose computation is the same can be imported."
                raise UserError(message, str(self._path), remedy)

    def _check_positions(self, name: str, expected: np.ndarray) -> None:
        value = self._read(name)
        count = min(len(value), len(expected))
        if value.shape[1:] != expected.shape[1:] or not np.allclose(
            value[:count], expected[:count], atol=1e-4
        ):
            message = f"{name} has other values than the sinusoids of this kind of model."
            remedy = "Only models whose computation is the same can be imported."
            raise UserError(message, str(self._path), remedy)

    def _is_copy(self, name: str) -> bool:
        """Return whether a tensor is an embedding or output matrix that was read by another name."""
        tied = [*_tied_names()]
        if name == "final_logits_bias":
            return False
        if name not in tied:
            return False
        value = self._tensors[name]
        return any(
            other in self._used
            and self._tensors[other].shape == value.shape
            and np.array_equal(self._tensors[other], value)
            for other in tied
            if other != name
        )


def _tied_names() -> Iterator[str]:
    yield "model.shared.weight"
    yield "lm_head.weight"
    for side in ("encoder", "decoder"):
        yield f"model.{side}.embed_tokens.weight"
