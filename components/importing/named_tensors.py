"""Weights that a file has under the names of another framework."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from regard.components.importing.folder_tokens import ReorderedWeights
from regard.components.importing.token_table import TokenTable
from regard.core.errors import UserError

_DAMAGED = "Copy all files of the model again: they may belong to different models."


class NamedTensors(ReorderedWeights):
    """The tensors of a file as weights of Regard; a weight may concatenate several of them.

    Args:
        tensors: the tensors by name; a tensor is read when it is accessed.
        path: the file, for messages.
        tables: the tokens of ``source`` and ``target``.
        is_transposed: whether matrices are ``[outputs, inputs]``.
        never: further ids of the target that no output has.
    """

    def __init__(
        self,
        tensors: Mapping[str, np.ndarray],
        path: Path,
        tables: Mapping[str, TokenTable],
        is_transposed: bool,
        never: Sequence[int] = (),
    ):
        super().__init__(tables, never)
        self._tensors, self._path, self._is_transposed = tensors, path, is_transposed
        self._used: set[str] = set()

    @abstractmethod
    def table_name(self, side: str) -> str:
        """Return the name of the embeddings of the ``encoder`` or the ``decoder``."""

    @abstractmethod
    def output(self, kind: str) -> np.ndarray:
        """Return the ``kernel`` ``[depth, tokens]`` or the ``bias`` of the output layer."""

    @abstractmethod
    def names(self, side: str, part: str, kind: str) -> Sequence[str]:
        """Return the names of the tensors that a weight concatenates.

        Args:
            side: ``encoder`` or ``decoder``.
            part: a part of it, such as ``norm`` or ``layer_0/attention/project``.
            kind: the last part of the weight's name, such as ``kernel``.
        """

    def __call__(self, name: str) -> np.ndarray:
        try:
            return super().__call__(name)
        except (ValueError, IndexError):
            message = f"The tensors of {name} do not have the shapes of this kind of model."
            raise UserError(message, str(self._path), _DAMAGED) from None

    def read(self, name: str) -> np.ndarray:
        side, _, rest = name.partition("/")
        part, _, kind = rest.rpartition("/")
        if rest == "embedding/table":
            return self.tensor(self.table_name(side))
        if rest == "logits_bias" or part == "logits":
            return self.output(kind.removeprefix("logits_"))
        values = [self.tensor(other) for other in self.names(side, part, kind)]
        if kind == "kernel" and self._is_transposed:
            values = [value.T for value in values]
        return np.concatenate(values, axis=-1)

    def tensor(self, name: str) -> np.ndarray:
        """Return a tensor as float32.

        Raises:
            UserError: the file lacks it.
        """
        if name not in self._tensors:
            raise UserError(f"The weights have no {name}.", str(self._path), _DAMAGED)
        self._used.add(name)
        return np.asarray(self._tensors[name], np.float32)

    def is_copy(self, name: str, other: str) -> bool:
        """Return whether the file has two equal tensors under these names."""
        if name not in self._tensors or other not in self._tensors:
            return False
        return np.array_equal(self._tensors[name], self._tensors[other])

    def unread(self) -> Iterable[str]:
        return sorted(set(self._tensors) - self._used)


def count_layers(names: Iterable[str], prefix: str, separator: str) -> int:
    """Return the number of layers, whose number follows a prefix of the names of their tensors."""
    return len(
        {name[len(prefix) :].split(separator)[0] for name in names if name.startswith(prefix)}
    )
