"""What is compared."""

from __future__ import annotations

import dataclasses

from pipeline.compare.tree import Tree
from pipeline.config import Config


@dataclasses.dataclass(frozen=True)
class Member:
    """One of the configurations: its label, its pipeline, and where its keys were written."""

    label: str
    config: Config
    tree: Tree


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Configurations that differ in model, training and search alone, in the files' order."""

    name: str
    members: tuple[Member, ...]

    @property
    def labels(self) -> list[str]:
        """The labels, in order."""
        return [member.label for member in self.members]
