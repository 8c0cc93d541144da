"""What a training takes over from an exported model. It needs no TensorFlow."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from typing_extensions import Self

from regard.core.files import atomic_path


@dataclass(frozen=True)
class WarmStartCheckpoint:
    """What a later training can take over from an exported model.

    The weights are those of the SavedModel. One more file next to them holds their names, the
    tokenizers and the settings, and on request the optimizer state, which is twice as large as the
    weights.

    Attributes:
        name: the name of the model in messages.
        task: the name of its task.
        model: the section ``model`` of its configuration.
        weight_names: the paths of the weights, in their order.
        weights: their values.
        tokenizers: the serialized SentencePiece model of each text feature.
        updates: the updates of its training.
        adam_moments: Adam's moments at its end; empty if they are not stored.
        search: the section ``search``; None without a search.
        digest: the digest of the files of the exported model.
    """

    name: str
    task: str
    model: Mapping[str, object]
    weight_names: list[str]
    weights: list[np.ndarray]
    tokenizers: dict[str, bytes]
    updates: int = 0
    adam_moments: list[np.ndarray] = field(default_factory=list)
    search: Mapping[str, object] | None = None
    digest: str = ""

    def save(self, path: Path) -> None:
        """Write everything into one file, for a process that cannot read the SavedModel."""
        arrays = {f"weight/{i}": weight for i, weight in enumerate(self.weights)}
        arrays |= {f"moment/{i}": moment for i, moment in enumerate(self.adam_moments)}
        arrays |= {
            f"tokenizer/{name}": np.frombuffer(serialized, np.uint8)
            for name, serialized in self.tokenizers.items()
        }
        others = [field.name for field in dataclasses.fields(self) if field.name not in _ARRAYS]
        about = {name: getattr(self, name) for name in others}
        with atomic_path(path) as temporary, open(temporary, "wb") as file:
            np.savez(file, allow_pickle=False, about=np.array(json.dumps(about)), **arrays)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what ``save`` has written."""
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            names = [name.removeprefix("tokenizer/") for name in file if name.startswith("tok")]
            return cls(
                weights=numbered_arrays(file, "weight"),
                adam_moments=numbered_arrays(file, "moment"),
                tokenizers={name: file[f"tokenizer/{name}"].tobytes() for name in names},
                **about,
            )


_ARRAYS = ("weights", "adam_moments", "tokenizers")  # which ``save`` does not write as JSON


def numbered_arrays(file: Mapping[str, np.ndarray], prefix: str) -> list[np.ndarray]:
    """Return the arrays ``<prefix>/0``, ``<prefix>/1`` ... of a file."""
    count = sum(name.startswith(f"{prefix}/") for name in file)
    return [file[f"{prefix}/{i}"] for i in range(count)]
