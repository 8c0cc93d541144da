"""The data files of a configuration, looked for before anything slow starts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.corpus_gen.sources import resolve
from components.corpus_gen.spans import settled
from components.errors import UserError
from pipeline import datasets

if TYPE_CHECKING:
    from pipeline.config import Config


def data_section(
    config: Config,
    notes: list[str] | None = None,
    taken: Sequence[Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """The section ``data`` with the task's ``features``, of which every file is there.

    Args:
        config: the pipeline's.
        notes: gets a sentence on each span that is left out, and on gaps.
        taken: the spans that are meant, as ``spans.settled`` gives them; None: those of today.

    Raises:
        UserError: a file is missing; says which command brings it, where there is one.
    """
    data = json.loads(config.section_json("data"))
    data["features"] = [feature.to_json() for feature in config.features]
    if taken:
        data["spans"]["taken"] = taken
    try:
        data = settled(data, notes)
        resolve(data)
    except UserError as error:
        root = Path(data["root"])
        verb = datasets.verb(root.name)
        if verb is None or root.is_dir():
            raise
        remedy = f"`regard data {verb} {root.name}` brings it."
        raise UserError(f"there is no folder {root}", "data.root", remedy) from error
    return data
