"""The raw features of a row: what a task reads, before anything is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal["text", "number", "image", "points", "positions"]
Role = Literal["input", "reference", "extra"]


@dataclass(frozen=True)
class Feature:
    """One feature of a raw row, as files hold it and tf.Examples carry it.

    Attributes:
        name: the feature's name in tf.Examples, and what ``data.columns`` calls it.
        kind: ``text`` (UTF-8); ``number``; ``image`` (encoded JPEG, PNG, GIF or BMP bytes; files
            hold its path); ``points`` (of the plane, ``[n, 2]``); ``positions`` (whole numbers
            that count a row's points from 0).
        role: what the model is given (``input``), the right answer (``reference``), or what only
            the evaluation reads (``extra``).
        several: a row may hold more than one, such as the captions of an image.
        optional: it may be missing.
        low: the least value of a number.
        high: the greatest value of a number.
        least: the fewest points.
    """

    name: str
    kind: Kind
    role: Role = "input"
    several: bool = False
    optional: bool = False
    low: float | None = None
    high: float | None = None
    least: int = 1

    @property
    def tokenized(self) -> bool:
        """Whether a tokenizer is trained for it."""
        return self.kind == "text" and self.role != "extra"

    def to_json(self) -> dict[str, Any]:
        """Plain data, for the parameters of a component."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Feature:
        """What ``to_json`` gave."""
        return cls(**content)
