"""Two pipelines in one database of ML Metadata: each uses and cleans only its own outputs.

The tests run with a SQLite file, and the slow ones also with MariaDB.
"""

import itertools
import shutil
import socket
import sqlite3
import subprocess

import pytest
from ml_metadata import MetadataStore

from regard.components.common.run_record import SUCCEEDED, RunRecord
from regard.core.errors import EnvironmentFault, UserError
from regard.core.yaml_text import to_yaml
from regard.pipeline.clean import clean
from regard.pipeline.config.metadata import MetadataConfig, MysqlConfig
from regard.pipeline.metadata_store import (
    connection_config,
    metadata_store,
    new_run_context,
    store_of_run,
)
from regard.pipeline.runs.store import Run
from regard.pipeline.workspace import Workspace, output_folders
from tests.marks import slow
from tests.pipeline.metadata_servers import PASSWORD, start_server
from tests.pipeline.pushing import push

NEWEST = "among the newest 1"
numbers = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with start_server(tmp_path_factory.mktemp("mariadb")) as server:
        yield server


@pytest.fixture(params=["sqlite", slow("mysql")])
def section(request, tmp_path, monkeypatch):
    if request.param == "sqlite":
        return MetadataConfig(sqlite=str(tmp_path / "shared.sqlite"))
    monkeypatch.setenv("MLMD_PASSWORD", PASSWORD)
    server = request.getfixturevalue("server")
    return MetadataConfig(mysql=server.database(f"shared_{next(numbers)}"))


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))
    return Workspace(tmp_path / "home")


def add_run(workspace, name, number, section, corpus=None) -> Run:
    """Execute a pipeline of two nodes as a run with a record and a configuration."""
    paths = workspace.pipeline(name)
    run = Run(paths.runs / f"2026112{number}-000000")
    run.directory.mkdir(parents=True)
    run.update(RunRecord(id=run.id, name=name, status=SUCCEEDED, started=float(number)))
    if section.address:
        run.update(RunRecord(context=new_run_context(run)))
    values = section.model_dump()
    if section.mysql is not None:
        values["mysql"]["password"] = "${MLMD_PASSWORD}"
    run.config.write_text(to_yaml({"name": name, "metadata": values}), encoding="utf-8")
    push(paths, run.id, f"model-{number}", {"rows": number} | (corpus or {}), section)
    return run


def outputs(workspace, name, section) -> list[str]:
    root = metadata_store(section, workspace.pipeline(name)).artifacts
    folders = [path for path in output_folders(root) if ".system" not in path.parts]
    return sorted("/".join(path.parts[-3:]) for path in folders)


def test_cleaning_touches_its_own_pipeline_only(workspace, section, tmp_path):
    for number in (1, 2, 3):
        for name in ("m", "n"):  # alternately, so that their executions interleave
            add_run(workspace, name, number, section)
    before = outputs(workspace, "n", section)
    client = MetadataStore(connection_config(section, tmp_path))
    executions = len(client.get_executions())
    result = clean(workspace, "m", 1)
    assert list(result.runs.values()) == [None, None, NEWEST]
    assert outputs(workspace, "m", section) == [
        *("CorpusGen/examples/9", "CorpusGen/findings/9", "Pusher/pushed_model/10")
    ]
    assert outputs(workspace, "n", section) == before
    assert len(before) == 9
    assert len(client.get_executions()) == executions == 12  # the rows stay
    live, deleted = 2, 4
    states = [(a.uri, a.state) for a in client.get_artifacts()]
    root = str(workspace.pipeline("m").root)
    assert (
        sorted(state for uri, state in states if uri.startswith(root)) == [live] * 3 + [deleted] * 6
    )
    assert {state for uri, state in states if not uri.startswith(root)} == {live}
    assert clean(workspace, "m", 1).bytes == 0
    push(workspace.pipeline("m"), "again", "model-3", {"rows": 3}, section)  # from the cache
    push(workspace.pipeline("n"), "again", "model-1", {"rows": 1}, section)
    assert outputs(workspace, "n", section) == before
    push(workspace.pipeline("m"), "another", "model-1", {"rows": 1}, section)
    assert len(outputs(workspace, "m", section)) == 6  # what was removed is made again


def test_what_a_kept_run_took_from_the_cache_is_kept(workspace, section):
    add_run(workspace, "n", 1, section)
    for number in (1, 2):
        add_run(workspace, "m", number, section, {"rows": 0})
    assert list(clean(workspace, "m", 1).runs.values()) == [None, NEWEST]
    assert outputs(workspace, "m", section) == [
        *("CorpusGen/examples/3", "CorpusGen/findings/3", "Pusher/pushed_model/6")
    ]


def test_incomplete_outputs_are_those_of_the_own_pipeline(workspace, section):
    add_run(workspace, "m", 1, section)  # executions 1 and 2
    add_run(workspace, "n", 1, section)
    root = metadata_store(section, workspace.pipeline("n")).artifacts
    (root / "Pusher" / "pushed_model" / "2").mkdir()  # complete, but of the other pipeline
    before = outputs(workspace, "m", section)
    add_run(workspace, "n", 2, section)
    assert "Pusher/pushed_model/2" not in outputs(workspace, "n", section)
    assert len(outputs(workspace, "n", section)) == 6
    assert outputs(workspace, "m", section) == before


def test_a_pipeline_of_the_same_name_elsewhere_has_its_own_outputs(workspace, section, tmp_path):
    add_run(workspace, "m", 1, section)
    other = Workspace(tmp_path / "other")
    add_run(other, "m", 1, section)
    assert len(outputs(other, "m", section)) == 3
    add_run(other, "m", 2, section)
    clean(other, "m", 1)
    assert len(outputs(other, "m", section)) == len(outputs(workspace, "m", section)) == 3


def test_each_database_has_its_own_outputs(workspace, section, tmp_path):
    own = MetadataConfig()
    add_run(workspace, "m", 1, own)
    add_run(workspace, "m", 2, section)
    add_run(workspace, "m", 3, own)
    assert len(outputs(workspace, "m", own)) == 6
    assert len(outputs(workspace, "m", section)) == 3
    assert list(clean(workspace, "m", 1).runs.values()) == [None, None, NEWEST]
    assert len(outputs(workspace, "m", own)) == 3
    assert outputs(workspace, "m", section) == []


def test_each_execution_changes_the_state(workspace, section):
    metadata = metadata_store(section, workspace.pipeline("m"))
    assert metadata.state() == []
    add_run(workspace, "m", 1, section)
    first = metadata.state()
    add_run(workspace, "n", 1, section)
    assert metadata.state() == first
    add_run(workspace, "m", 2, section)
    assert metadata.state() != first


def test_runs_of_one_second_have_their_own_contexts(workspace, section):
    runs = [add_run(workspace, name, 1, section) for name in ("m", "n")]
    ids = [store_of_run(run).context_ids([run.id, "none"]) for run in runs]
    assert [list(one) for one in ids] == [[runs[0].id], [runs[1].id]]
    assert ids[0] != ids[1]


def test_an_unknown_pipeline_loses_nothing(workspace, section):
    run = add_run(workspace, "m", 1, section)
    before = outputs(workspace, "m", section)
    metadata = metadata_store(section, workspace.pipeline("unknown"))
    assert metadata.needed_executions([run.id]) is None
    assert metadata.own_outputs() == []
    assert metadata.keep_executions(None) == 0
    assert outputs(workspace, "m", section) == before


def test_readers_create_no_missing_file(workspace, tmp_path):
    section = MetadataConfig(sqlite=str(tmp_path / "shared.sqlite"))
    run = add_run(workspace, "m", 1, section)
    (tmp_path / "shared.sqlite").rename(tmp_path / "moved.sqlite")
    before = outputs(workspace, "m", section)
    metadata = metadata_store(section, workspace.pipeline("m"))
    assert clean(workspace, "m", 1, dry_run=True).bytes == 0
    assert metadata.context_ids([run.id]) == {}
    assert metadata.needed_executions([run.id]) is None
    assert metadata.state() == []
    with pytest.raises(UserError, match="unable to open"):
        metadata.keep_executions({1})
    assert not (tmp_path / "shared.sqlite").exists()
    assert outputs(workspace, "m", section) == before
    metadata.check()  # before a run
    assert (tmp_path / "shared.sqlite").exists()


def test_another_pipeline_in_a_pipelines_own_file_loses_nothing(workspace):
    own = workspace.pipeline("m").metadata
    section = MetadataConfig(sqlite=str(own))  # `check` refuses it
    add_run(workspace, "m", 1, MetadataConfig())
    add_run(workspace, "n", 1, section)
    add_run(workspace, "m", 2, MetadataConfig())
    clean(workspace, "m", 1)
    client = MetadataStore(connection_config(section, own))
    assert len(client.get_executions()) == 6
    assert len(client.get_artifacts()) == 9
    assert len(outputs(workspace, "m", MetadataConfig())) == 3
    assert len(outputs(workspace, "n", section)) == 3


@pytest.mark.parametrize("is_link", [False, True])
def test_a_file_of_a_pipeline_is_refused(workspace, tmp_path, is_link):
    path = workspace.pipeline("other").metadata
    path.parent.mkdir(parents=True)
    if is_link:
        (tmp_path / "link.sqlite").symlink_to(path)
        path = tmp_path / "link.sqlite"
    section = MetadataConfig(sqlite=str(path))
    assert "must not be in" in check_error(section, workspace, "metadata.sqlite")
    assert not path.exists()


def check_error(section, workspace, where, kind=UserError) -> str:
    with pytest.raises(kind) as caught:
        metadata_store(section, workspace.pipeline("m")).check()
    assert caught.value.where == where
    assert caught.value.remedy
    assert PASSWORD not in str(caught.value)
    return caught.value.message


@pytest.mark.parametrize("version", [6, 99])
def test_a_file_with_another_schema_is_refused(workspace, tmp_path, version):
    section = MetadataConfig(sqlite=str(tmp_path / "shared.sqlite"))
    metadata_store(section, workspace.pipeline("m")).check()
    with sqlite3.connect(section.sqlite) as database:
        database.execute("UPDATE MLMDEnv SET schema_version = ?", (version,))
    assert f"version {version}" in check_error(section, workspace, "metadata.sqlite")


def test_a_file_that_cannot_be_used_is_refused(workspace, tmp_path):
    (tmp_path / "shared.sqlite").write_bytes(b"damaged" * 1000)
    section = MetadataConfig(sqlite=str(tmp_path / "shared.sqlite"))
    assert "not a database" in check_error(section, workspace, "metadata.sqlite")
    section = MetadataConfig(sqlite=str(tmp_path / "missing" / "shared.sqlite"))
    assert "missing" in check_error(section, workspace, "metadata.sqlite")


def test_a_server_that_does_not_answer_is_an_error(workspace):
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    for host in ("localhost", "host.invalid"):
        mysql = MysqlConfig(host=host, port=port, database="mlmd", user="regard")
        section = MetadataConfig(mysql=mysql)
        message = check_error(section, workspace, "metadata.mysql.host", EnvironmentFault)
        assert f"{host}:{port} cannot be reached" in message


@pytest.mark.slow
def test_what_the_server_refuses_is_an_error(workspace, server):
    server.database("old")
    server.execute("CREATE TABLE old.MLMDEnv (schema_version INT PRIMARY KEY)")
    server.execute("INSERT INTO old.MLMDEnv VALUES (6)")
    cases = {
        "the user nobody": ("user", server.config("old", user="nobody")),
        "the password": ("user", server.config("old", password="wrong")),
        "no database localhost": ("database", server.config("missing")),
        "version 6": ("", server.config("old")),
    }
    for text, (key, mysql) in cases.items():
        section = MetadataConfig(mysql=mysql)
        where = f"metadata.mysql.{key}".removesuffix(".")
        assert text in check_error(section, workspace, where)


TLS = {
    "ssl_ca": "ca.pem",
    "ssl_capath": "/etc/ssl/certs",
    "ssl_cert": "cert.pem",
    "ssl_key": "key.pem",
    "ssl_cipher": "AES256-SHA",
    "ssl_verify_server_cert": True,
}


def test_the_connection_has_the_options_of_tls(tmp_path):
    values = {"host": "h", "database": "d", "user": "u", "password": "p"}
    plain = MetadataConfig(mysql=MysqlConfig.model_validate(values))
    assert not connection_config(plain, tmp_path).mysql.HasField("ssl_options")
    section = MetadataConfig(mysql=MysqlConfig.model_validate({**values, **TLS}))
    options = connection_config(section, tmp_path).mysql.ssl_options
    assert {f"ssl_{field.name}": value for field, value in options.ListFields()} == TLS


@pytest.mark.slow
def test_a_user_who_needs_tls(workspace, tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    options = ["-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    command = ["openssl", "req", *options, "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    with start_server(tmp_path, f"--ssl-cert={cert}", f"--ssl-key={key}") as server:
        server.database("secure")
        server.execute("ALTER USER regard REQUIRE SSL")
        plain = MetadataConfig(mysql=server.config("secure"))
        assert "the password" in check_error(plain, workspace, "metadata.mysql.user")
        section = MetadataConfig(mysql=server.config("secure", ssl_ca=cert))
        metadata_store(section, workspace.pipeline("m")).check()


def test_the_variable_of_a_recorded_password_must_be_set(workspace, tmp_path, monkeypatch):
    monkeypatch.delenv("MLMD_PASSWORD", raising=False)
    run = Run(workspace.pipeline("m").runs / "20261121-000000")
    run.directory.mkdir(parents=True)
    mysql = {"host": "h", "database": "d", "user": "u", "password": "${MLMD_PASSWORD}"}
    run.config.write_text(to_yaml({"metadata": {"mysql": mysql}}))
    with pytest.raises(UserError, match="MLMD_PASSWORD") as caught:
        store_of_run(run)
    assert str(run.config) in caught.value.where


def test_the_run_of_another_version_has_its_own_file(workspace):
    run = Run(workspace.pipeline("m").runs / "20261121-000000")
    run.directory.mkdir(parents=True)
    for content in ("metadata: {other: 1}", "{", ""):
        run.config.write_text(content)
        assert store_of_run(run).artifacts == workspace.pipeline("m").artifacts
