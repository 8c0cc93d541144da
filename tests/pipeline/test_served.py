"""Which models ``regard serve`` takes, and a whole process from its start to its end."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from components.errors import UserError
from pipeline import served
from serving.local.model_config import Batching, ModelConfig, Policy
from serving.local.status import Code, ServingError
from tests import fake_models

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    root = tmp_path_factory.mktemp("registry")
    for version in ("1", "2"):
        fake_models.save(fake_models.Reverser(), root / "reverser" / version)
    return root


def test_names_versions_and_folders(registry, tmp_path):
    def one(text):
        (found,) = served.configs([text], None, registry)
        return found.name, found.base_path, found.policy

    base = registry / "reverser"
    assert one("reverser") == ("reverser", base, Policy())
    assert one("reverser@1") == ("reverser", base, Policy(None, specific=(1,)))
    assert one(str(base)) == ("reverser", base, Policy())
    assert one(str(base / "1")) == ("reverser", base, Policy(None, specific=(1,)))


def test_a_file_of_models_goes_with_names(registry, tmp_path):
    file = tmp_path / "models.config"
    file.write_text(
        f'model_config_list {{ config {{ name: "r" base_path: "{registry}/reverser"'
        ' model_platform: "tensorflow" } }'
    )
    found = served.configs(["reverser"], file, registry)
    assert [config.name for config in found] == ["reverser", "r"]


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ([], "there is no model to serve"),
        (["nobody"], "there is no model 'nobody'"),
        (["reverser@7"], "has no version '7'"),
        (["reverser", "reverser@1"], "two models are called 'reverser'"),
        (["{registry}/../../etc"], "there is no folder"),
    ],
)
def test_models_that_cannot_be_served(registry, models, message):
    with pytest.raises(UserError, match=message):
        served.configs([text.format(registry=registry) for text in models], None, registry)


def test_a_model_needs_a_version_for_a_folder(registry, tmp_path):
    folder = tmp_path / "Format-Serving"
    folder.mkdir()
    (folder / "saved_model.pb").write_bytes(b"")
    with pytest.raises(UserError, match="a whole number") as caught:
        served.configs([str(folder)], None, registry)
    assert "models/Format-Serving/1" in caught.value.remedy


def test_batching(tmp_path):
    assert served.batching(False, None) is None
    assert served.batching(True, None) == served.DEFAULT_BATCHING
    file = tmp_path / "batching.config"
    file.write_text("max_batch_size { value: 3 }")
    assert served.batching(True, file) == Batching(max_batch_size=3)
    with pytest.raises(UserError, match="not to"):
        served.batching(False, file)
    file.write_text("max_batch_size: 3")
    with pytest.raises(UserError, match=r"batching\.config:1:"):
        served.batching(True, file)


def test_other_models_are_served_when_the_file_says_so(caplog):
    """A file that is wrong, or that the manager refuses, changes nothing."""
    one, two = ModelConfig("a", Path("/a")), ModelConfig("b", Path("/b"))
    refused, strange = ModelConfig("refused", Path("/c")), ModelConfig("strange", Path("/d"))
    unread = UserError("not read")
    seen = iter(
        [[one], unread, unread, [one, two], [refused], [refused], [strange], [one, two], [two]]
    )
    reloaded, ended = [], asyncio.Event()

    class Manager:
        async def reload(self, models):
            if models == [refused]:
                raise ServingError(Code.FAILED_PRECONDITION, "a label")
            if models == [strange]:
                raise ValueError("embedded null byte")
            reloaded.append(models)

    def read():
        found = next(seen, None)
        if found is None:
            loop.call_soon_threadsafe(ended.set)
            return reloaded[-1]
        if isinstance(found, Exception):
            raise found
        return found

    async def follow():
        nonlocal loop
        loop = asyncio.get_running_loop()
        task = loop.create_task(served._follow(Manager(), [one], read, 0.001))
        await asyncio.wait_for(ended.wait(), 20)
        task.cancel()

    loop = None
    with caplog.at_level("ERROR", "regard.serve"):
        asyncio.run(follow())
    assert reloaded == [[one, two], [two]]
    told = [record.getMessage() for record in caplog.records]
    # Each complaint once, as long as it stays the same.
    assert [text.split(": ", 1)[1] for text in told] == [
        "not read",
        "FAILED_PRECONDITION: a label",
        "embedded null byte",
    ]


def start(registry, *arguments):
    command = [sys.executable, "-u", "-m", "pipeline.cli", "serve", *arguments]
    return subprocess.Popen(
        [*command, "--registry", str(registry)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_server_from_its_start_to_its_end(registry):
    process = start(registry, "reverser", "--port", "0", "--rest-api-port", str(free_port()))
    try:
        assert re.match(r"Serving reverser@2 after \d", process.stdout.readline())
        page = process.stdout.readline().split()[1]
        assert httpx.get(page, timeout=60).text.startswith("<!doctype html>")
        address = process.stdout.readline().split()[1]
        answer = httpx.post(address, json={"instances": ["abc"]}, timeout=60).json()
        assert answer == {"predictions": [{"score": -1.5, "translation": "CBA"}]}
        process.send_signal(signal.SIGTERM)
        rest, log = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0
    assert rest == ""
    # Nothing of TensorFlow's own chatter, and no traceback.
    assert re.fullmatch(
        r"\d\d:\d\d:\d\d  serving version 2 of model reverser\n"
        r"Stopping: what was asked is still answered …\n"
        r"\d\d:\d\d:\d\d  version 2 is no longer served\n",
        log,
    )


def test_batching_by_model_needs_batching(registry):
    process = start(registry, "reverser", "--per-model-batching", "--no-batching")
    out, log = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert log.startswith("error: --per-model-batching says how to batch, and --no-batching not to")


def test_a_certificate_that_is_not_there_is_told_before_anything_is_loaded(registry):
    files = ("--tls-certificate", "none.pem", "--tls-key", "none.pem")
    process = start(registry, "reverser", *files)
    out, log = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert log == "error: none.pem: there is no such file\n"


def test_a_model_that_cannot_be_loaded_is_an_error(tmp_path):
    broken = tmp_path / "broken" / "1"
    broken.mkdir(parents=True)
    (broken / "saved_model.pb").write_bytes(b"no graph")
    process = start(tmp_path, "broken", "--port", "0", "--rest-api-port", str(free_port()))
    out, log = process.communicate(timeout=120)
    assert (process.returncode, out) == (2, "")
    assert "version 1 of model broken: INTERNAL: Could not load version 1 of model broken" in log
    assert log.endswith("error: no model could be loaded\nThe lines above say why.\n")
    assert "Traceback" not in log


def free_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
