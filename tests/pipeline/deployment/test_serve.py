"""The models of ``regard serve``, and the whole process."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import numpy as np
import pytest
from grpc import StatusCode

from regard.core.errors import UserError
from regard.models.settings.search import GreedySearchConfig
from regard.pipeline.cli.serve import serve as serve_command
from regard.pipeline.deployment import serve
from regard.pipeline.deployment.engines import ctranslate2_loader, load_verified
from regard.serving.server.errors import ServingError
from regard.serving.server.model_config import VersionPolicy
from regard.serving.server.options import LOAD_THREADS, ManagerOptions, ServerOptions
from tests.processes import free_port, wait_for
from tests.serving.server import imported_models
from tests.serving.server.test_ctranslate2_servable import LIMITS, publish

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("name", ["reverser", "{registry}/reverser"])
@pytest.mark.parametrize(
    ("version", "policy"), [("", VersionPolicy()), ("1", VersionPolicy(None, specific=(1,)))]
)
def test_names_versions_and_folders(registry, name, version, policy):
    separator = "/" if "/" in name else "@"
    text = name.format(registry=registry) + (version and separator + version)
    (model,) = serve.list_models([text], None, registry)
    assert (model.name, model.policy) == ("reverser", policy)
    assert model.base_path == registry / "reverser"


@pytest.mark.parametrize(("loads", "codes"), [(True, [0]), (False, [])])
def test_the_process_ends_while_a_version_is_being_loaded(monkeypatch, loads, codes):
    may_end, ends = threading.Event(), []
    if not loads:
        may_end.set()
    monkeypatch.setattr(os, "_exit", ends.append)
    thread = threading.Thread(target=may_end.wait, args=[60], name=f"{LOAD_THREADS}_0")
    thread.start()
    # Not the threads that other tests of this process have left.
    monkeypatch.setattr(threading, "enumerate", lambda: [thread])
    serve._end_despite_loading()
    may_end.set()
    thread.join()
    assert ends == codes


def test_the_models_file_adds_to_the_names(registry, tmp_path):
    file = tmp_path / "models.config"
    file.write_text(
        f'model_config_list {{ config {{ name: "r" base_path: "{registry}/reverser"'
        ' model_platform: "tensorflow" } }'
    )
    result = serve.list_models(["reverser"], file, registry)
    assert [config.name for config in result] == ["reverser", "r"]


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ([], "There is no model to serve"),
        (["nobody"], "There is no model 'nobody'"),
        (["reverser@7"], "has no version '7'"),
        (["reverser", "reverser@1"], "Two models have the name 'reverser'"),
        (["{registry}/../../etc"], "There is no folder"),
    ],
)
def test_models_that_cannot_be_served(registry, models, message):
    with pytest.raises(UserError, match=message):
        serve.list_models([text.format(registry=registry) for text in models], None, registry)


def test_the_folder_of_a_model_must_be_a_version(registry, tmp_path):
    folder = tmp_path / "Format-Serving"
    folder.mkdir()
    (folder / "saved_model.pb").write_bytes(b"")
    with pytest.raises(UserError, match="not a version number") as caught:
        serve.list_models([str(folder)], None, registry)
    assert "models/Format-Serving/1" in caught.value.remedy


def start(registry, *arguments, **environment):
    command = [sys.executable, "-u", "-m", "regard.pipeline.cli", "serve", *arguments]
    return subprocess.Popen(
        [*command, "--registry", str(registry)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_life_of_a_server(registry, tmp_path):
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o755)
    ports = ["--port", "0", "--rest-api-port", str(free_port()), "--open"]
    limit = ["--max-request-rows", "2"]
    process = start(registry, "reverser", *ports, *limit, BROWSER=f"{browser} %s")
    try:
        assert re.match(r"Serving reverser@2 after \d", process.stdout.readline())
        page = process.stdout.readline().split()[1]
        assert httpx.get(page, timeout=60).text.startswith("<!doctype html>")
        wait_for(lambda: opened.exists() and opened.read_text() == f"{page}\n")
        address = process.stdout.readline().split()[1]
        answer = httpx.post(address, json={"instances": ["abc"]}, timeout=60).json()
        assert answer == {"predictions": [{"score": -1.5, "translation": "CBA"}]}
        assert httpx.post(address, json={"instances": ["abc"] * 3}, timeout=60).status_code == 400
        process.send_signal(signal.SIGTERM)
        rest, log = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0
    assert rest == ""
    # No output of TensorFlow, and no traceback.
    assert re.fullmatch(
        r"\d\d:\d\d:\d\d  serving version 2 of model reverser\n"
        r"Stopping. Finishing the requests in progress …\n"
        r"\d\d:\d\d:\d\d  unloaded version 2\n",
        log,
    )


@pytest.mark.parametrize(
    ("options", "file"),
    [
        ({"tls_files": (Path("none.pem"), Path("none.key"))}, "none.pem"),
        ({"token_file": Path("tokens")}, "tokens"),
    ],
)
def test_a_file_that_cannot_be_used_is_reported_before_loading(registry, options, file):
    models = serve.list_models(["reverser"], None, registry)
    with pytest.raises(UserError) as caught:
        serve.serve(models, ManagerOptions(), ServerOptions(**options))
    assert caught.value.where == file


def test_a_model_that_cannot_be_loaded_is_an_error(tmp_path):
    broken = tmp_path / "broken" / "1"
    broken.mkdir(parents=True)
    (broken / "saved_model.pb").write_bytes(b"no graph")
    process = start(tmp_path, "broken", "--port", "0", "--rest-api-port", str(free_port()))
    out, log = process.communicate(timeout=120)
    assert (process.returncode, out) == (2, "")
    assert "version 1 of model broken: UNAVAILABLE: " in log
    assert "saved_model.pb is incomplete or damaged" in log
    assert log.endswith("error: No model could be loaded.\nSee the messages above.\n")
    assert "Traceback" not in log


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_text('{"digest": "0123"}'), "changed or damaged"),
        (lambda path: path.write_text('{"digest": "01'), "not a valid record"),
        (lambda path: path.write_text("[]"), "not a valid record"),
    ],
)
def test_a_version_must_be_that_of_its_record(registry, tmp_path, damage, message):
    version = shutil.copytree(registry / "reverser" / "1", tmp_path / "1")
    load_verified("reverser", version).close()
    damage(version / "regard.json")
    with pytest.raises(ServingError, match=message) as caught:
        load_verified("reverser", version)
    assert caught.value.code is StatusCode.UNAVAILABLE


@pytest.mark.slow
def test_a_server_with_ctranslate2(tmp_path):
    signatures = ["serving_default", "align", "score"]
    version = publish(tmp_path, GreedySearchConfig(**LIMITS), signatures)
    port = str(free_port())
    options = ("--engine", "ctranslate2", "--quantization", "int8", "--port", "0")
    process = start(version.parents[1], "small", *options, "--rest-api-port", port)
    try:
        assert process.stdout.readline().startswith("Serving small@3")
        page, address = (process.stdout.readline().split()[1] for _ in range(2))
        instances = [{"source": text} for text in ("a cat sat", "", "the mat " * 20)]
        response = httpx.post(address, json={"instances": instances}, timeout=60).json()
        assert [output["source_cut"] > 0 for output in response["predictions"]] == [
            False,
            False,
            True,
        ]
        request = {"signature_name": "score", "instances": [{"source": "a", "target": "b"}]}
        assert httpx.post(address, json=request, timeout=60).status_code == 200
        assert httpx.get(page, timeout=60).status_code == 200
        shutil.copytree(version, version.with_name("4"))  # a new version replaces it
        deadline = time.monotonic() + 120
        status = address.replace(":predict", "/versions/4")
        while "AVAILABLE" not in httpx.get(status, timeout=60).text:
            assert time.monotonic() < deadline
            time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0
    assert "CTranslate2 (int8) runs version 4 of model small" in log
    assert "Traceback" not in log


@pytest.mark.slow
def test_a_server_gives_ctranslate2_the_first_tokens_of_outputs(tmp_path):
    version = imported_models.publish(tmp_path, "m2m", "beam")
    texts = imported_models.sources("m2m", 24)[:24]
    options = ("--engine", "ctranslate2", "--port", "0", "--rest-api-port", str(free_port()))
    process = start(tmp_path, "m2m", *options)
    try:
        assert process.stdout.readline().startswith("Serving m2m@1")
        _, address = (process.stdout.readline().split()[1] for _ in range(2))
        request = {"instances": [text.decode() for text in texts]}
        rows = httpx.post(address, json=request, timeout=60).json()["predictions"]
    finally:
        process.terminate()
        process.communicate(timeout=60)
    servable = load_verified("m2m", version)
    expected = servable.run("", {"source": np.array(texts, object)})
    servable.close()
    outputs = [text.decode() for text in expected["translation"]]
    same = [row for row in range(24) if rows[row]["translation"] == outputs[row]]
    assert len(same) >= 22  # both searches may miss the best output
    scores = [rows[row]["score"] for row in same]
    assert scores == pytest.approx(expected["score"][same].tolist(), abs=1e-4)


def test_a_model_without_an_equal_in_ctranslate2(registry):
    process = start(registry, "reverser", "--engine", "ctranslate2", "--port", "0")
    out, log = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert "CTranslate2 cannot search like version 2 of model reverser: " in log
    assert "Traceback" not in log


def test_a_missing_ctranslate2_ends_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(UserError) as caught:
        ctranslate2_loader("int8", 1)
    assert "regard[ctranslate2]" in caught.value.remedy


def test_a_type_of_weights_needs_ctranslate2(registry):
    with pytest.raises(UserError) as caught:
        serve_command(["reverser"], quantization="int8", registry=registry)
    assert caught.value.where == "--quantization"
