"""Publish models of other frameworks in the registry."""

import re
from collections.abc import Callable
from pathlib import Path

from regard.components.importing.foreign_model import ForeignModel
from regard.components.importing.joeynmt import read_joeynmt
from regard.components.importing.m2m import read_m2m
from regard.components.importing.marian import read_marian
from regard.components.importing.npz import read_npz, weight_shapes
from regard.components.importing.opennmt_tf import read_opennmt_tf
from regard.components.importing.publish import ImportResult, publish_model
from regard.components.registry.store import Registry
from regard.core.errors import UserError
from regard.core.files import is_writable
from regard.pipeline.config.config import NAME_PATTERN
from regard.pipeline.config.fine_tuning import check_path, write_fine_tuning
from regard.pipeline.workspace import Workspace

__all__ = [
    "ImportResult",
    "import_model",
    "read_joeynmt",
    "read_m2m",
    "read_marian",
    "read_npz",
    "read_opennmt_tf",
    "weight_shapes",
]


def import_model(
    read: Callable[[], ForeignModel], registry: Path, name: str, config: Path | None = None
) -> ImportResult:
    """Read a model, publish it, and write a configuration that fine-tunes it.

    Args:
        read: reads the model.
        registry: the registry's folder.
        name: the model's name in the registry.
        config: the file for the configuration; None: it is not written.

    Raises:
        UserError: the model cannot be read or published, its name is not valid, or the file exists.
    """
    if not re.fullmatch(NAME_PATTERN, name):
        remedy = "Use small letters, digits and hyphens, for example --name opus-en-de."
        raise UserError(f"{name!r} cannot be the name of a model.", "--name", remedy)
    if not is_writable(registry):
        raise UserError("The registry cannot be written.", str(registry), "Give another folder.")
    if config is not None:
        check_path(config)
    model = read()
    result = publish_model(model, registry, name)
    if config is not None:
        location = Registry(registry).location()
        is_default = Registry(Workspace.from_environment().registry).location() == location
        version = f"{name}@{result.version}"
        write_fine_tuning(config, model, version, None if is_default else location)
    return result
