"""The section ``model.pretrained``: word vectors that others have trained."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import Field

from models.settings.base import Section, absolute


class Pretrained(Section):
    """Word vectors in GloVe's or word2vec's text format to start the embeddings from.

    A task adds the keys that name its files; each of them is a path or null.
    """

    trainable: bool = Field(
        default=True, description="Whether training goes on from there, or leaves them as they are."
    )
    others: Literal["random", "zero"] = Field(
        default="random",
        description="What pieces begin with that the file has not: random numbers of the same "
        "size, or zeros.",
    )

    def files(self) -> dict[str, str]:
        """The file of each key that has one."""
        named = {name: getattr(self, name) for name in type(self).model_fields}
        own = Pretrained.model_fields
        return {name: path for name, path in named.items() if path is not None and name not in own}

    def resolved(self, base: Path) -> Self:
        """A copy whose paths are absolute."""
        return self.model_copy(
            update={name: absolute(base, path) for name, path in self.files().items()}
        )
