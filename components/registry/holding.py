"""Which versions a model server is told to serve, so that they must stay."""

from __future__ import annotations

from pathlib import Path

from components.errors import UserError
from components.registry.versions import Registry
from serving.local.model_config import read_models
from serving.local.status import ServingError


def wanted_by(file: Path, registry: Registry, name: str) -> dict[int, str]:
    """The versions of a model that a server's file of models asks for, each with the reason.

    Those that its version policy chooses, and those that have labels. The server may see the
    registry at another path, so a model is known by its name, or that of its folder.

    Args:
        file: a ``ModelServerConfig``, as TensorFlow Serving's ``--model_config_file`` has it.
        registry: where the versions are.
        name: the model.

    Raises:
        UserError: the file cannot be read.
    """
    try:
        models = read_models(file)
    except ServingError as error:
        raise UserError(error.message, remedy="Mend the file of --model-config-file.") from None
    found: dict[int, str] = {}
    for model in models:
        if name in (model.name, model.base_path.name):
            chosen = model.policy.choose(registry.versions(name))
            found.update(dict.fromkeys([*chosen, *model.labels.values()], f"in {file.name}"))
    return found
