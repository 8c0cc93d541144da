"""The section ``metadata``: its checks, and the password, which no file has."""

import pytest

from regard.core.errors import ConfigError
from regard.pipeline.config import config_from_values, load
from regard.pipeline.config.metadata import MetadataConfig
from tests.pipeline.config.refusals import compare, load_text, problems_of

HEAD = "name: x\ndata:\n  train: '{SPAN}.tsv'\nmetadata:\n"
MYSQL = HEAD + "  mysql:\n    host: db\n    database: mlmd\n    user: regard\n"


def test_each_pipeline_has_its_own_file_by_default(tmp_path):
    metadata = load_text(tmp_path, HEAD.replace("metadata:\n", "")).metadata
    assert metadata == MetadataConfig()
    assert metadata.address == ""


def test_a_file_is_relative_to_the_configuration(tmp_path):
    metadata = load_text(tmp_path, HEAD + "  sqlite: ../shared.sqlite\n").metadata
    assert metadata.sqlite == metadata.address == str(tmp_path.parent / "shared.sqlite")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MYSQL + "  sqlite: a.sqlite\n", "9: metadata.sqlite: cannot be used with metadata.mysql"),
        (
            HEAD + "  sqlite: s3://bucket/a.sqlite\n",
            "5: metadata.sqlite: 's3://bucket/a.sqlite' is",
        ),
        (
            HEAD + "  sqlite: pipelines/../pipelines/a/metadata.sqlite\n",
            "5: metadata.sqlite: must not be in ",
        ),
        (MYSQL + "    port: 0\n", "9: metadata.mysql.port: must be greater than or equal to 1"),
        (MYSQL.replace("host: db", "host: db:3306"), "6: metadata.mysql.host:"),
        (MYSQL + "    password: s3cret\n", "9: metadata.mysql.password: must refer to an env"),
        (MYSQL + "    password: 'x${MLMD_PASSWORD}'\n", "9: metadata.mysql.password: must refer"),
        (MYSQL + "    password: '${UNSET:-s3cret}'\n", "9: metadata.mysql.password: must refer"),
        (MYSQL + "    password: '${UNSET}'\n", "9: metadata.mysql.password: the environment var"),
    ],
)
def test_what_cannot_work_is_refused(tmp_path, monkeypatch, text, expected):
    monkeypatch.setenv("MLMD_PASSWORD", "s3cret-of-the-server")
    monkeypatch.delenv("UNSET", raising=False)
    lines = problems_of(tmp_path, text)
    compare(lines, expected)
    assert "s3cret" not in str(lines)


def test_the_password_is_recorded_as_a_reference(tmp_path, monkeypatch):
    monkeypatch.setenv("MLMD_PASSWORD", "12345678")
    config = load_text(tmp_path, MYSQL + '    password: "${MLMD_PASSWORD}"\n')
    recorded = config.recorded()
    assert recorded["metadata"]["mysql"]["password"] == "${MLMD_PASSWORD}"
    assert "12345678" not in str(recorded)
    assert config_from_values(recorded).metadata == config.metadata
    assert config.metadata.mysql.password == "12345678"
    assert config.metadata.address == "db:3306/mlmd"


def test_a_given_password_is_refused_although_the_file_has_a_reference(tmp_path, monkeypatch):
    monkeypatch.setenv("MLMD_PASSWORD", "12345678")
    load_text(tmp_path, MYSQL + '    password: "${MLMD_PASSWORD}"\n')
    option = "metadata.mysql.password='12345678'"  # as a shell expands the variable
    with pytest.raises(ConfigError, match="password: must refer to an env") as caught:
        load(tmp_path / "x.yaml", options=[option])
    assert "12345678" not in str(caught.value)
    reference = "metadata.mysql.password='${MLMD_PASSWORD}'"
    assert load(tmp_path / "x.yaml", options=[reference]).origin.assignments == [reference]


@pytest.mark.parametrize(
    "secret", ["s3cret-of-the-server", "12345678", "s3cret'\\\"of\nserver" * 9]
)
@pytest.mark.parametrize("padding", [0, 20, 30, 200])
def test_no_error_shows_the_password(tmp_path, monkeypatch, secret, padding):
    monkeypatch.setenv("MLMD_PASSWORD", secret)
    value = f"[{{a: '{'x' * padding}', b: \"'\", password: '${{MLMD_PASSWORD}}'}}]"
    for text in (
        f"{HEAD}  mysql: {value}",
        f"{HEAD.replace('metadata:', 'pipeline:')}  nodes: {value}",
        f"{HEAD.replace('metadata:', 'metadata: ')}{value}",
    ):
        lines = str(problems_of(tmp_path, text + "\n"))
        assert secret[:4] not in lines
