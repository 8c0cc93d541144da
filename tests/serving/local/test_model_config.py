"""Configuration files: what they mean, and what is refused."""

from __future__ import annotations

import pytest

from serving.local.model_config import Batching, Policy, read_batching, read_models
from serving.local.status import ServingError

MODELS = """
model_config_list {
  config {
    name: "de"
    base_path: "/models/de"
    model_platform: "tensorflow"
    model_version_policy { specific { versions: 3 versions: 4 } }
    version_labels { key: "stable" value: 3 }
  }
  config { name: "fr" base_path: "file:///models/fr" model_platform: "tensorflow" }
  config {
    name: "zh" base_path: "/zh" model_platform: "tensorflow"
    model_version_policy { latest { num_versions: 2 } }
  }
  config {
    name: "es" base_path: "/es" model_platform: "tensorflow" model_version_policy { all {} }
  }
}
"""


def read(tmp_path, text, reader=read_models):
    path = tmp_path / "file.config"
    path.write_text(text, encoding="utf-8")
    return reader(path)


def test_models(tmp_path):
    de, fr, zh, es = read(tmp_path, MODELS)
    assert (de.name, str(de.base_path), de.labels) == ("de", "/models/de", {"stable": 3})
    assert de.policy == Policy(None, specific=(3, 4))
    assert (str(fr.base_path), fr.policy) == ("/models/fr", Policy())
    assert zh.policy == Policy(latest=2)
    assert es.policy == Policy(None, every=True)


def entry(**changed):
    fields = {"name": "m", "base_path": "/m", "model_platform": "tensorflow", **changed}
    inner = " ".join(f'{name}: "{value}"' for name, value in fields.items() if value is not None)
    return f"config {{ {inner} }}"


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([entry(), entry()], "Illegal to list model m multiple times in config list"),
        ([entry(base_path="m")], "Expected model m to have an absolute path or URI"),
        ([entry(model_platform=None)], "neither model type nor platform for model m"),
        ([entry(model_platform="torch")], "does not support platform torch"),
        ([entry(name="../etc")], "is no name of a model"),
        ([entry(name="..")], "is no name of a model"),
        ([entry(name="")], "is no name of a model"),
        (["config { nam: 1 }"], r'file.config:1:\d+ : .* has no field named "nam"'),
    ],
)
def test_models_that_cannot_be(tmp_path, entries, message):
    with pytest.raises(ServingError, match=message):
        read(tmp_path, f"model_config_list {{ {' '.join(entries)} }}")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ServingError, match="No such file"):
        read_models(tmp_path / "none")
    with pytest.raises(ServingError, match="only model_config_list"):
        read(tmp_path, "")


def test_batching(tmp_path):
    text = """
    max_batch_size { value: 32 }
    batch_timeout_micros { value: 500 }
    max_enqueued_batches { value: 7 }
    num_batch_threads { value: 3 }
    thread_pool_name { value: "pool" }
    allowed_batch_sizes: 8
    allowed_batch_sizes: 32
    pad_variable_length_inputs: true
    """
    assert read(tmp_path, text, read_batching) == Batching(
        max_batch_size=32,
        batch_timeout_micros=500,
        max_enqueued_batches=7,
        num_batch_threads=3,
        allowed_batch_sizes=(8, 32),
        pad_variable_length_inputs=True,
    )
    assert read(tmp_path, "", read_batching) == Batching()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max_batch_size: 3", "file.config:1:"),
        ("max_batch_size { value: 0 }", "max_batch_size must be at least 1, not 0"),
        (
            "max_batch_size { value: 9 } allowed_batch_sizes: 8",
            "Last entry in allowed_batch_sizes must match max_batch_size; last entry was 8;"
            " expected 9",
        ),
        ("allowed_batch_sizes: 8 allowed_batch_sizes: 4", "must be monotonically increasing"),
    ],
)
def test_batching_that_cannot_be(tmp_path, text, message):
    with pytest.raises(ServingError, match=message):
        read(tmp_path, text, read_batching)
