"""A private MariaDB server, for the tests of shared databases of ML Metadata."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from regard.pipeline.config.metadata import MysqlConfig
from tests.processes import free_port, service

PASSWORD = 'a"b☃-password'


class Server:
    """A server on the loopback interface with a user ``regard``."""

    def __init__(self, folder: Path, port: int):
        self.socket, self.port = folder / "socket", port

    def execute(self, statement: str) -> None:
        command = ["mariadb", "--no-defaults", f"--socket={self.socket}", "--user=root"]
        subprocess.run([*command, "-e", statement], check=True, capture_output=True)

    def database(self, name: str) -> MysqlConfig:
        """Create an empty database."""
        self.execute(
            f"CREATE DATABASE {name} CHARACTER SET utf8mb4; GRANT ALL ON {name}.* TO regard"
        )
        return self.config(name)

    def config(self, name: str, **changes) -> MysqlConfig:
        values = {"host": "localhost", "port": self.port, "database": name, "user": "regard"}
        return MysqlConfig.model_validate({**values, "password": PASSWORD, **changes})


@contextlib.contextmanager
def start_server(folder: Path, *settings: str) -> Iterator[Server]:
    """Start MariaDB in a folder of its own while the block runs; skip the test without it."""
    if not (shutil.which("mariadbd") and shutil.which("mariadb-install-db")):
        pytest.skip("MariaDB is not installed (Debian: mariadb-server)")
    data, server = folder / "data", Server(folder, free_port())
    options = ["--no-defaults", f"--datadir={data}", "--user=root"]
    # Without the test database and its anonymous user, who would come before ``regard``.
    install = ["--auth-root-authentication-method=normal", "--skip-test-db"]
    subprocess.run(["mariadb-install-db", *options, *install], check=True, capture_output=True)
    address = [f"--socket={server.socket}", "--bind-address=127.0.0.1", f"--port={server.port}"]
    with service(server.port, folder / "log.txt", "mariadbd", *options, *address, *settings):
        server.execute(f"CREATE USER regard IDENTIFIED BY '{PASSWORD}'")
        yield server
