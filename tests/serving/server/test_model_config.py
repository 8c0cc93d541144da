"""TensorFlow Serving's models.config: parsing and errors."""

import pytest
from grpc import StatusCode
from tensorflow_serving.config import model_server_config_pb2

from regard.serving.server.errors import ServingError
from regard.serving.server.model_config import VersionPolicy, parse_models, read_models

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


def read(tmp_path, text):
    path = tmp_path / "file.config"
    path.write_text(text, encoding="utf-8")
    return read_models(path)


def test_models(tmp_path):
    de, fr, zh, es = read(tmp_path, MODELS)
    assert (de.name, str(de.base_path), de.labels) == ("de", "/models/de", {"stable": 3})
    assert de.policy == VersionPolicy(None, specific=(3, 4))
    assert (str(fr.base_path), fr.policy) == ("/models/fr", VersionPolicy())
    assert zh.policy == VersionPolicy(latest=2)
    assert es.policy == VersionPolicy(None)


def entry(**changed):
    fields = {"name": "m", "base_path": "/m", "model_platform": "tensorflow", **changed}
    inner = " ".join(f'{name}: "{value}"' for name, value in fields.items() if value is not None)
    return f"config {{ {inner} }}"


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([entry(), entry()], "lists model 'm' twice"),
        ([entry(base_path="m")], "base_path 'm' is not absolute"),
        ([entry(model_platform=None)], "model_platform is none"),
        ([entry(model_platform="torch")], "model_platform is torch"),
        ([entry(name="../etc")], "is not a valid model name"),
        ([entry(name="..")], "is not a valid model name"),
        ([entry(name="")], "is not a valid model name"),
        ([entry(name=r"a\nb")], r"'a\\nb' is not a valid model name"),
        (["config { nam: 1 }"], r'file.config:1:\d+ : .* has no field named "nam"'),
    ],
)
def test_invalid_models(tmp_path, entries, message):
    with pytest.raises(ServingError, match=message):
        read(tmp_path, f"model_config_list {{ {' '.join(entries)} }}")


def test_missing_and_empty_files(tmp_path):
    with pytest.raises(ServingError, match="No such file"):
        read_models(tmp_path / "none")
    with pytest.raises(ServingError, match="no model_config_list"):
        read(tmp_path, "")
    with pytest.raises(ServingError, match=r"file.config has more than 1,048,576 characters"):
        read(tmp_path, " " * (1 << 21))


def test_a_null_character_in_a_path():
    config = model_server_config_pb2.ModelServerConfig()
    entry = config.model_config_list.config.add(name="m", base_path="/models/\0m")
    entry.model_platform = "tensorflow"
    with pytest.raises(ServingError, match="null character") as caught:
        parse_models(config)
    assert caught.value.code is StatusCode.INVALID_ARGUMENT
