"""Files of TLS and the address of a server, before ML Metadata connects."""

import os
import socket

import pytest

from regard.core.errors import EnvironmentFault, NotFoundError, UserError
from regard.pipeline.config.metadata import MysqlConfig
from regard.pipeline.mysql_server import check_server


@pytest.fixture
def port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def section(port, **files):
    values = {"host": "127.0.0.1", "database": "d", "user": "u"}
    return MysqlConfig(port=port, **values, **{key: str(path) for key, path in files.items()})


@pytest.fixture
def files(tmp_path):
    """A file for each key, and a folder for ssl_capath."""
    (tmp_path / "a.pem").touch()
    (tmp_path / "certificates").mkdir()
    names = dict.fromkeys(("ssl_ca", "ssl_cert", "ssl_key"), tmp_path / "a.pem")
    return {**names, "ssl_capath": tmp_path / "certificates"}


def test_files_that_can_be_read_and_a_server_that_listens(port, files):
    check_server(section(port))
    check_server(section(port, **files))


def test_a_server_that_does_not_listen_is_an_error_of_its_host():
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = server.getsockname()[1]
    with pytest.raises(EnvironmentFault, match=str(closed)) as error:
        check_server(section(closed))
    assert error.value.where == "metadata.mysql.host"


@pytest.mark.parametrize("key", ["ssl_ca", "ssl_capath", "ssl_cert", "ssl_key"])
def test_a_path_that_cannot_be_used_is_an_error_of_its_key(port, files, tmp_path, monkeypatch, key):
    other = "a.pem" if key == "ssl_capath" else "certificates"
    os.mkfifo(tmp_path / "pipe")
    for name, kind in (("none.pem", NotFoundError), (other, UserError), ("pipe", UserError)):
        with pytest.raises(UserError, match=name) as error:
            check_server(section(port, **{**files, key: tmp_path / name}))
        assert (type(error.value), error.value.where) == (kind, f"metadata.mysql.{key}")
        assert error.value.remedy
    denied = str(files[key])
    monkeypatch.setattr(os, "access", lambda path, mode: path != denied)  # root may read all files
    with pytest.raises(EnvironmentFault, match=denied) as error:
        check_server(section(port, **{key: denied}))
    assert error.value.where == f"metadata.mysql.{key}"


def test_a_path_in_a_folder_without_permission(port, files, monkeypatch):
    def denied(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "stat", denied)
    with pytest.raises(EnvironmentFault) as error:
        check_server(section(port, ssl_ca=files["ssl_ca"]))
    assert error.value.where == "metadata.mysql.ssl_ca"
