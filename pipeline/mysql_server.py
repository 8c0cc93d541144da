"""Check the files and the address of a MySQL server, which ML Metadata's errors do not name."""

import os
import socket
import stat

from regard.core.errors import EnvironmentFault, NotFoundError, UserError
from regard.pipeline.config.metadata import MysqlConfig
from regard.pipeline.runners.failures import DATABASE_REMEDY

SECTION = "metadata.mysql"
_FOLDER = "ssl_capath"  # the other keys of TLS are files
_TIMEOUT_SECONDS = 5.0


def check_server(mysql: MysqlConfig) -> None:
    """Check that the files of TLS can be read and that a server listens.

    Args:
        mysql: The section, with absolute paths.

    Raises:
        UserError: A file or folder cannot be used, or no server listens.
    """
    for name, path in mysql.tls_files().items():
        _check_path(path, f"{SECTION}.{name}", is_folder=name == _FOLDER)
    try:
        socket.create_connection((mysql.host, mysql.port), _TIMEOUT_SECONDS).close()
    except OSError as error:
        reason = error.strerror or "no answer"
        message = f"The MySQL server {mysql.host}:{mysql.port} cannot be reached: {reason}."
        raise EnvironmentFault(message, f"{SECTION}.host", DATABASE_REMEDY) from error


def _check_path(path: str, key: str, is_folder: bool) -> None:
    """Check that a file, or the files of a folder, can be read."""
    try:
        mode = os.stat(path).st_mode
    except PermissionError as error:
        raise _denied(path, key) from error
    except OSError as error:
        raise NotFoundError(f"{path} does not exist.", key, "Correct the path.") from error
    if is_folder and not stat.S_ISDIR(mode):
        raise UserError(f"{path} is not a folder.", key, "Name a folder, or use ssl_ca for a file.")
    if not is_folder and not stat.S_ISREG(mode):
        remedy = "Name a PEM file. Only ssl_capath is a folder."
        raise UserError(f"{path} is not a file.", key, remedy)
    if not os.access(path, os.R_OK | os.X_OK if is_folder else os.R_OK):
        raise _denied(path, key)


def _denied(path: str, key: str) -> EnvironmentFault:
    remedy = "Change its permissions, or those of a folder in its path."
    return EnvironmentFault(f"Permission to read {path} is denied.", key, remedy)
