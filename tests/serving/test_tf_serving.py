"""The files for TensorFlow Serving: what reads them here reads them."""

from __future__ import annotations

from pathlib import Path

import yaml
from google.protobuf import text_format
from tensorflow_serving.config import model_server_config_pb2

from serving.local.model_config import Policy, read_batching, read_models

FOLDER = Path(__file__).resolve().parents[2] / "serving" / "tf_serving"


def test_the_models():
    (model,) = read_models(FOLDER / "models.config")
    assert (model.name, model.policy) == ("quickstart", Policy())


def test_what_the_comments_propose_is_understood():
    lines = (FOLDER / "models.config").read_text(encoding="utf-8").splitlines()
    proposed = [line.strip().removeprefix("#") for line in lines if line.strip().startswith("#   ")]
    assert len(proposed) == 3
    config = model_server_config_pb2.ModelConfig()
    text_format.Parse("\n".join(proposed), config)
    assert dict(config.version_labels) == {"stable": 3, "canary": 4}


def test_the_batches():
    found = read_batching(FOLDER / "batching.config")
    assert (found.max_batch_size, found.batch_timeout_micros) == (64, 2000)
    assert found.pad_variable_length_inputs


def test_the_containers_files_are_there():
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
    service = compose["services"]["tensorflow-serving"]
    named = [flag.rpartition("/config/")[2] for flag in service["command"] if "/config/" in flag]
    assert sorted(named) == ["batching.config", "models.config", "monitoring.config"]
    assert all((FOLDER / name).is_file() for name in named)
