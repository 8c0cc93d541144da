"""The section ``metadata``: its checks, and the password, which no file has."""

import pytest

from regard.core.errors import ConfigError, UserError
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
        (MYSQL + "    ssl_cert: a.pem\n", "9: metadata.mysql.ssl_cert: needs ssl_key, too"),
        (MYSQL + "    ssl_key: a.pem\n", "9: metadata.mysql.ssl_key: needs ssl_cert, too"),
        (
            MYSQL + "    ssl_ca: s3://bucket/ca.pem\n",
            "9: metadata.mysql.ssl_ca: 's3://bucket/ca.pem'",
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


def test_files_of_tls_are_relative_to_the_configuration(tmp_path):
    text = "    ssl_ca: ca.pem\n    ssl_capath: /etc/ssl/certs\n    ssl_cipher: HIGH\n"
    config = load_text(tmp_path, MYSQL + text)
    expected = {"ssl_ca": f"{tmp_path}/ca.pem", "ssl_capath": "/etc/ssl/certs"}
    assert config.metadata.mysql.tls_files() == expected
    assert config.metadata.mysql.tls_options() == {**expected, "ssl_cipher": "HIGH"}
    assert config_from_values(config.recorded()).metadata == config.metadata


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


@pytest.mark.parametrize("secret", ["12345", "a'b", "x", "true", "1e5", "null", "2026-01-01"])
@pytest.mark.parametrize("reference", ["${SHORT}", "'${SHORT}'"])
def test_a_short_password_is_a_text_and_recorded_as_a_reference(
    tmp_path, monkeypatch, secret, reference
):
    monkeypatch.setenv("SHORT", secret)
    path = tmp_path / "x.yaml"
    configs = [load_text(tmp_path, f"{MYSQL}    password: {reference}\n")]
    path.write_text(MYSQL)
    configs.append(load(path, options=[f"metadata.mysql.password={reference}"]))
    configs.append(load(path, options=["metadata.mysql={password: '${SHORT}'}"]))
    for config in configs:
        assert config.metadata.mysql.password == secret
        assert config.recorded()["metadata"]["mysql"]["password"] == "${SHORT}"


@pytest.mark.parametrize("secret", ["12345", "a'b", "x"])
@pytest.mark.parametrize("padding", [0, 16, 17, 18, 19, 20, 21, 22, 200])
def test_no_error_shows_a_short_password(tmp_path, monkeypatch, secret, padding):
    monkeypatch.setenv("SHORT", secret)
    for value in (
        "{database: [1], password: '${SHORT}'}",
        f"[{{a: '{'-' * padding}', password: '${{SHORT}}'}}]",
        "{password: ['${SHORT}']}",
    ):
        lines = str(problems_of(tmp_path, f"{HEAD}  mysql: {value}\n"))
        assert repr(secret) not in lines
        assert "12" not in lines
        assert "a mapping" in lines or "a text" in lines  # and no other word is changed


def test_a_short_value_of_another_key_helps_to_understand_the_error(tmp_path, monkeypatch):
    monkeypatch.setenv("SHORT", "12345x")
    (line,) = problems_of(tmp_path, f"{MYSQL}    port: ${{SHORT}}\n")
    assert "'12345x' was given" in line


def test_the_remedy_for_a_password_that_is_not_set_works(tmp_path, monkeypatch):
    monkeypatch.delenv("UNSET", raising=False)
    (line,) = problems_of(tmp_path, MYSQL + "    password: '${UNSET}'\n")
    assert "UNSET is not set" in line
    assert "DEFAULT" not in line
    (line,) = problems_of(tmp_path, MYSQL.replace("host: db", "host: '${UNSET}'"))
    assert "${UNSET:-DEFAULT}" in line
    (tmp_path / "x.yaml").write_text(MYSQL)
    with pytest.raises(UserError) as caught:
        load(tmp_path / "x.yaml", options=["metadata.mysql.password=${UNSET}"])
    assert "DEFAULT" not in str(caught.value)
