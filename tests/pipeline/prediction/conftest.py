"""Fake models that all tests of this folder share: saving or loading one takes over a second."""

import functools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from regard.pipeline.prediction import models
from tests import fake_models


@functools.cache
def _save(root: Path, model_class: type, *arguments: Any) -> Path:
    name = "-".join([model_class.__name__, *map(str, arguments)])
    return fake_models.save(model_class(*arguments), root / name)


@pytest.fixture(scope="session")
def save_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Writes a fake model to a folder, given its class and the arguments of the class."""
    root = tmp_path_factory.mktemp("models")

    def save(path: Path, model_class: type, *arguments: Any) -> Path:
        return shutil.copytree(_save(root, model_class, *arguments), path)

    return save


@pytest.fixture(scope="module", autouse=True)
def models_are_loaded_once() -> Iterator[None]:
    """The commands load each model once a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "load_model", functools.cache(models.load_model))
        yield
