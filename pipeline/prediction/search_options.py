"""A model with another search than the one that it was exported with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.core.errors import UserError
from regard.models.settings.annotations import models_in, type_of
from regard.models.tasks import describe
from regard.pipeline.config.load import validate_values
from regard.serving.saved_model import ServedModel


def load_with_search(path: Path, options: Mapping[str, Any]) -> ServedModel:
    """Build a model with another search.

    Args:
        path: the SavedModel's folder.
        options: keys of the section ``search`` that replace those of the model. Without ``type``,
            the type is that of the model if it has all keys, or else the first type that has them.
            ``max_length`` is the maximum length of an output, whatever the length of its input.

    Raises:
        UserError: the model has no search or cannot be built, an option is invalid, or Keras uses
            another backend in this process.
    """
    import keras

    from regard.components.trainer.export import InMemoryModel, RebuiltModel

    if keras.backend.backend() != "tensorflow":
        message = f"Keras uses {keras.backend.backend()} in this process."
        remedy = "A model with another search needs TensorFlow. Set KERAS_BACKEND=tensorflow "
        remedy += "before Keras is imported."
        raise UserError(message, "KERAS_BACKEND", remedy)
    model = RebuiltModel(path, "The model")
    task = model.config.task
    search = model.config.search
    if search is None:
        raise UserError(f"A model for {task} has no search that options could change.", str(path))
    values = {"name": "model", "task": task, "data": {"train": "none"}}
    values |= {"model": model.config.model_settings, "search": _replace(task, search, options)}
    if sizes := [int(tokenizer.vocab_size()) for tokenizer in model.tokenizers.values()]:
        values["tokenizer"] = {"vocab_size": min(sizes), "shared": True}
    config, problems = validate_values(values)
    search_problems = [problem for problem in problems if problem.path[0] == "search"]
    if search_problems or config is None:
        lines = [
            f"{'.'.join(map(str, problem.path))}: {problem.message}"
            for problem in search_problems or problems
        ]
        raise UserError("\n".join(lines), remedy="Change the options of the search.")
    return InMemoryModel(model.served(config.search))


def _replace(task: str, search: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the section ``search`` of a model with other values."""
    options = dict(options)
    if (max_length := options.pop("max_length", None)) is not None:
        options |= {"max_length_factor": 0.0, "max_length_offset": max_length}
    (annotation, _) = describe(task).search or (None, None)
    fields = {type_of(variant): set(variant.model_fields) for variant in models_in(annotation)}
    suitable = (name for name in (search.type, *fields) if fields[name] >= options.keys())
    options = {"type": next(suitable, search.type), **options}
    common = fields.get(options["type"], set())
    return {**search.model_dump(mode="json", include=common), **options}
