"""A model that is copied file by file and in parts, in any order, while requests arrive."""

import asyncio
import random
import shutil

import numpy as np
import pytest

from regard.serving.server.manager import ModelManager
from regard.serving.server.model_config import ModelConfig
from regard.serving.server.options import ManagerOptions
from regard.serving.server.versions import AVAILABLE, ModelSpec

pytestmark = pytest.mark.anyio
SPEC = ModelSpec("reverser")


async def predict(manager):
    inputs = {"source": np.array([b"abc"], object)}
    result = await manager.predict(SPEC, "", inputs)
    assert result.outputs["translation"].tolist() == [b"CBA"]
    return result.version


def copy_in_steps(source, target, draw):
    """Copy the files in a random order and in parts; yield after each part."""
    files = sorted(path.relative_to(source) for path in source.rglob("*") if path.is_file())
    draw.shuffle(files)
    for file in files:
        content = (source / file).read_bytes()
        (target / file).parent.mkdir(parents=True, exist_ok=True)
        cuts = sorted(draw.randrange(len(content) + 1) for _ in range(2))
        with (target / file).open("wb") as copy:
            for start, end in zip([0, *cuts], [*cuts, len(content)], strict=True):
                copy.write(content[start:end])
                copy.flush()
                yield


async def test_copies_in_random_orders_fail_no_request(saved, tmp_path):
    base = tmp_path / "reverser"
    shutil.copytree(saved / "reverser" / "1", base / "1")
    options = ManagerOptions(poll_seconds=0, settle_seconds=0, load_retries=0, retry_seconds=0)
    manager = ModelManager([ModelConfig("reverser", base)], options)
    await manager.start()
    try:
        for number in range(2, 5):
            for _ in copy_in_steps(base / "1", base / str(number), random.Random(number)):
                await asyncio.gather(manager.poll(), predict(manager))
            await manager.poll()
            assert await predict(manager) == number
            assert manager.list_states(SPEC)[0].state == AVAILABLE
    finally:
        await manager.close()


async def test_a_served_version_that_is_damaged_or_removed_keeps_serving(saved, tmp_path):
    base = tmp_path / "reverser"
    shutil.copytree(saved / "reverser" / "1", base / "1")
    options = ManagerOptions(poll_seconds=0, settle_seconds=0, retry_seconds=0)
    manager = ModelManager([ModelConfig("reverser", base)], options)
    await manager.start()
    try:
        for file in (base / "1").rglob("*"):
            if file.is_file():
                file.write_bytes(b"damaged")
        await manager.poll()
        assert await predict(manager) == 1
        shutil.rmtree(base / "1")
        await manager.poll()
        assert await predict(manager) == 1
    finally:
        await manager.close()
