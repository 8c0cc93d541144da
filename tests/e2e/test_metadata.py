"""Two pipelines record their runs in one database of MariaDB."""

import json

import pytest
import yaml

from tests.e2e.conftest import CONFIG
from tests.pipeline.metadata_servers import PASSWORD, start_server

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with start_server(tmp_path_factory.mktemp("mariadb")) as server:
        server.database("shared")
        yield server


def configure(shell, server, name: str) -> str:
    config = yaml.safe_load(CONFIG.format(data=shell.folder / "data", epochs=1))
    mysql = server.config("shared").model_dump() | {"password": "${MLMD_PASSWORD}"}
    path = shell.folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(config | {"name": name, "metadata": {"mysql": mysql}}))
    shell.environment["MLMD_PASSWORD"] = PASSWORD
    return path.name


def test_pipelines_share_a_database(shell, server):
    tiny, other = (configure(shell, server, name) for name in ("tiny", "other"))
    for arguments in ((tiny,), (other, "--to", "StatisticsGen"), (tiny,)):
        result = shell.run("run", *arguments)
        assert result.returncode == 0, result.stdout + result.stderr
    first, second = sorted((shell.home / "pipelines/tiny/runs").iterdir())
    assert f"as in run {first.name}" in (second / "log.txt").read_text()  # without a worker
    lineage = json.loads(shell.run("lineage", "tiny", "--json").stdout)
    assert lineage["missing"] == []
    assert lineage["run"]["id"] == first.name
    executions = [node["execution"] for node in lineage["nodes"]]
    assert executions == sorted(executions, reverse=True)
    assert {node["context"] for node in lineage["nodes"]} == {lineage["run"]["context"]}
    statistics = shell.home.glob("pipelines/other/artifacts-*/StatisticsGen/statistics/*")
    (number,) = (int(path.name) for path in statistics)
    assert number == max(executions) + 2  # the numbers are those of the database
    cleaned = shell.run("clean", "--keep", "1", "--json")
    assert [one["bytes"] for one in json.loads(cleaned.stdout)["pipelines"]] == [0, 0]
    assert list(shell.home.rglob("metadata.sqlite")) == []
    files = [file for file in shell.home.rglob("*") if file.is_file()]
    assert len(files) > 50
    assert [str(file) for file in files if PASSWORD.encode() in file.read_bytes()] == []


def test_without_the_variable_the_run_does_not_start(shell, server):
    tiny = configure(shell, server, "tiny")
    before = len(list(shell.home.glob("pipelines/*/runs/*")))
    shell.environment["MLMD_PASSWORD"] = "wrong-password"
    wrong = shell.run("run", tiny)
    del shell.environment["MLMD_PASSWORD"]
    for result in (wrong, shell.run("run", tiny)):
        assert result.returncode == 2
        assert "metadata.mysql" in result.stderr
        assert "Traceback" not in result.stderr
    assert len(list(shell.home.glob("pipelines/*/runs/*"))) == before
