"""The engine JAX of ``regard serve``: options, models that it refuses, and the process."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import httpx
import numpy as np
import pytest

from regard.core.errors import UserError
from regard.models.settings.search import SamplingSearchConfig
from regard.pipeline.cli.serve import serve as serve_command
from regard.pipeline.deployment import engines
from regard.pipeline.deployment.engines import jax_loader
from regard.pipeline.deployment.jax_conversion import convert, main
from regard.serving.contract import TRAINING
from regard.serving.server.errors import ServingError
from tests.pipeline.deployment.test_serve import start
from tests.processes import free_port
from tests.serving.server.test_ctranslate2_servable import LIMITS, sharpen
from tests.serving.server.test_jax_servable import DECODER, ENCODER, publish, publish_recurrent


@pytest.mark.parametrize(
    "lengths",
    [
        "",
        "0",
        "8,4",
        "8,8",
        "4,",
        "-3",
        "4.5",
        "four",
        "16,32;64",
        " ",
        "1,2,3,4,5,6,7,8,9",
        "1" * 5000,
    ],
)
def test_wrong_lengths(registry, lengths):
    with pytest.raises(UserError) as caught:
        serve_command(["reverser"], engine="jax", compiled_lengths=lengths, registry=registry)
    assert caught.value.where == "--compiled-lengths"


@pytest.mark.parametrize("engine", ["tensorflow", "ctranslate2"])
def test_lengths_need_jax(registry, engine):
    with pytest.raises(UserError) as caught:
        serve_command(["reverser"], engine=engine, compiled_lengths="4", registry=registry)
    assert caught.value.where == "--compiled-lengths"


def test_a_type_of_weights_is_not_for_jax(registry):
    with pytest.raises(UserError) as caught:
        serve_command(["reverser"], engine="jax", quantization="int8", registry=registry)
    assert caught.value.where == "--quantization"


def test_a_missing_jax_ends_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(UserError) as caught:
        jax_loader([4])
    assert "regard[jax]" in caught.value.remedy


def test_sampling_is_refused(tmp_path):
    version = publish(tmp_path, ENCODER, DECODER, SamplingSearchConfig(**LIMITS), sharpen)
    with pytest.raises(UserError) as caught:
        convert(version, tmp_path, [4])
    assert caught.value.where == f"{version}: search.type"
    (version / TRAINING).unlink()  # as that of an ensemble
    with pytest.raises(UserError, match="cannot be built again"):
        convert(version, tmp_path, [4])


def test_another_task_is_refused(tmp_path, capsys, registry):
    version = shutil.copytree(registry / "reverser" / "1", tmp_path / "1")
    contract = version / "assets.extra" / "contract.json"
    content = json.loads(contract.read_text("utf-8"))
    content["answer_kind"] = "number"
    contract.write_text(json.dumps(content))
    assert main([str(version), str(tmp_path), "4"]) == 2
    output = capsys.readouterr().out  # which a client can read
    assert "Only text-to-text models" in output
    assert str(tmp_path) not in output


@pytest.mark.slow
def test_a_server_with_jax(tmp_path):
    version = publish_recurrent(tmp_path)
    port = str(free_port())
    options = ("--engine", "jax", "--compiled-lengths", "4,8", "--port", "0")
    process = start(version.parents[1], "small", *options, "--rest-api-port", port)
    try:
        assert process.stdout.readline().startswith("Serving small@3")
        _, address = (process.stdout.readline().split()[1] for _ in range(2))
        texts = ["a cat sat", "the mat", "", "the mat " * 20, "a dog"]

        def predict(*texts):
            instances = [{"source": text} for text in texts]
            response = httpx.post(address, json={"instances": instances}, timeout=60)
            return response.json()["predictions"]

        alone, batched = [predict(text)[0] for text in texts], predict(*texts)
        for key in ("translation", "source_cut"):
            assert [output[key] for output in alone] == [output[key] for output in batched]
        scores = [[output["score"] for output in outputs] for outputs in (alone, batched)]
        np.testing.assert_allclose(*np.array(scores, float), rtol=1e-4, atol=1e-4)
        request = {"signature_name": "align", "instances": [{"source": "a"}]}
        assert httpx.post(address, json=request, timeout=60).status_code == 200
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0
    assert "JAX runs version 3 of model small, for sources of up to 4, 8 tokens\n" in log
    assert "Traceback" not in log


@pytest.mark.slow
def test_a_model_that_jax_does_not_run(registry):
    process = start(registry, "reverser", "--engine", "jax", "--port", "0")
    out, log = process.communicate(timeout=300)
    assert (process.returncode, out) == (2, "")
    assert "cannot be built again" in log
    assert "Traceback" not in log


def test_a_failed_conversion_shows_clients_one_line(caplog):
    """The rest, such as a traceback, is in the log."""
    script = "import sys; sys.exit('first line\\nlast line')"
    with pytest.raises(ServingError) as caught:
        engines._run([sys.executable, "-c", script])
    assert caught.value.message == "The conversion ended with status 1: last line"
    assert "first line" in caplog.text


def test_a_conversion_that_takes_too_long_is_ended(monkeypatch, tmp_path):
    monkeypatch.setattr(engines, "_MAX_SECONDS", 0.2)
    script = f"import time; time.sleep(2); open({str(tmp_path / 'done')!r}, 'w')"
    with pytest.raises(ServingError, match=r"longer than 0\.2 s"):
        engines._run([sys.executable, "-c", script])
    assert not (tmp_path / "done").exists()


def test_folders_of_killed_servers_are_removed(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    script = """
import os, signal
from regard.pipeline.deployment.engines import conversion_folder
with conversion_folder() as folder:
    (folder / "weights").write_bytes(b"x")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=False)
    (killed,) = tmp_path.iterdir()
    assert (killed / "weights").is_file()
    other = tmp_path / "regard-serve-of-a-user"
    other.mkdir()
    with engines.conversion_folder() as first:
        assert not killed.exists()
        with engines.conversion_folder() as second:
            assert sorted(tmp_path.iterdir()) == sorted([first, second, other])
    assert list(tmp_path.iterdir()) == [other]
