"""A model with another search than the one that it was exported with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.components.common.errors import UserError
from regard.pipeline.config.annotations import models_in, type_of
from regard.pipeline.config.config import config_class
from regard.pipeline.config.load import validate_values
from regard.serving.saved_model import ServedModel

_MAX_LENGTH = "max_length"


def load_with_search(path: Path, options: Mapping[str, Any]) -> ServedModel:
    """Build a model with another search.

    Args:
        path: the SavedModel's folder.
        options: keys of the section ``search`` that replace those of the model. Without ``type``,
            the type is that of the model if it has all keys, or else the first type that has them.
            ``max_length`` is the maximum length of an output, whatever the length of its input.

    Raises:
        UserError: the model has no search or cannot be built, or an option is invalid.
    """
    import sentencepiece

    from regard.components.trainer.export import InMemoryModel
    from regard.components.trainer.rebuild import read_checkpoint, rebuild

    checkpoint = read_checkpoint(path, path.name)
    if checkpoint.search is None:
        message = f"A model for {checkpoint.task} has no search that options could change."
        raise UserError(message, str(path))
    values: dict[str, Any] = {
        "name": "model",
        "task": checkpoint.task,
        "data": {"train": "none"},
        "model": checkpoint.model,
        "search": _replace(checkpoint.task, checkpoint.search, options),
    }
    if checkpoint.tokenizers:
        sizes = [
            sentencepiece.SentencePieceProcessor(model_proto=one).vocab_size()
            for one in checkpoint.tokenizers.values()
        ]
        values["tokenizer"] = {"vocab_size": min(sizes), "shared": True}
    config, problems = validate_values(values)
    own = [problem for problem in problems if problem.path[0] == "search"]
    if own or config is None:
        lines = (f"{'.'.join(map(str, one.path))}: {one.message}" for one in own or problems)
        raise UserError("\n".join(lines), remedy="Change the options of the search.")
    return InMemoryModel(rebuild([checkpoint]).served(config.search))


def _replace(task: str, search: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the section ``search`` of a model with other values."""
    options = dict(options)
    if _MAX_LENGTH in options:
        options |= {"max_length_factor": 0.0, "max_length_offset": options.pop(_MAX_LENGTH)}
    annotation = config_class(task).model_fields["search"].annotation
    fields = {type_of(variant): set(variant.model_fields) for variant in models_in(annotation)}
    own = search["type"]
    suitable = [name for name in (own, *fields) if fields[name] >= options.keys()]
    options = {"type": next(iter(suitable), own), **options}
    # Sampling returns all samples; minimum Bayes risk decoding needs more of them.
    dropped = {"samples"} if options["type"] != own else set()
    common = (fields.get(options["type"], set()) - dropped) & search.keys()
    return {**{name: search[name] for name in common}, **options}
