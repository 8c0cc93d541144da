"""A servable without a model, and managers of folders with such versions."""

import asyncio
import weakref

import numpy as np
import pytest
from grpc import StatusCode

from regard.serving.server.errors import ServingError, invalid
from regard.serving.server.manager import ModelManager
from regard.serving.server.model_config import ModelConfig, VersionPolicy
from regard.serving.server.options import ManagerOptions
from regard.serving.server.versions import ModelSpec

INPUTS = {"x": np.zeros(1)}
ALL = VersionPolicy(None)
SERVABLES = weakref.WeakSet()
WARM_UPS = []


class FakeServable:
    """A servable that returns its version."""

    def __init__(self, name, path):
        self.name, self.version = name, int(path.name)
        if (path / "broken").exists():
            raise ServingError(StatusCode.INTERNAL, "broken")
        if (path / "partial").exists():
            raise ServingError(StatusCode.UNAVAILABLE, "partial")
        if (path / "unexpected").exists():
            raise KeyError("unexpected")
        self.is_cold = (path / "cold").exists()

    def try_one_row(self, timeout):
        pass

    def warm_up(self, only=None):
        WARM_UPS.append((self.version, only))
        if self.is_cold:
            SERVABLES.add(self)
            raise invalid("cold")

    def close(self):
        pass

    def validate_inputs(self, signature, inputs):
        pass

    def is_batchable(self, signature):
        return signature != "one_row"

    def select_outputs(self, signature, requested):
        return ["version"]

    def run(self, signature, inputs, timeout):
        return {"version": np.full(len(inputs["x"]), self.version)}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "1").mkdir()
    return tmp_path


@pytest.fixture
async def start(folder):
    """Start managers of a folder, and close them at the end of the test."""
    managers = []

    async def start(policy=None, **options):
        config = ModelConfig("m", folder, policy or VersionPolicy())
        options = ManagerOptions(**{"poll_seconds": 0, "settle_seconds": 0, **options})
        managers.append(ModelManager([config], options, load=FakeServable))
        await managers[-1].start()
        return managers[-1]

    yield start
    for manager in managers:
        await manager.close()


def states(created):
    return {version.number: version.state for version in created.list_states(ModelSpec("m"))}


async def wait_until_unloaded(created):
    for _ in range(500):
        if not created._tasks:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("versions are still unloading")


async def version(created, number=None):
    return int((await created.predict(ModelSpec("m", number), "", INPUTS)).outputs["version"][0])
