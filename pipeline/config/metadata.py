"""The section ``metadata``: the database in which ML Metadata records the runs."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field
from typing_extensions import Self

from regard.components.common.references import References
from regard.models.settings.base import KeyPath, Problem, Section, absolute
from regard.models.settings.secrets import LITERAL

_PASSWORD: KeyPath = ("metadata", "mysql", "password")
_Path = Annotated[str, Field(min_length=1)]
_TLS_FILES = ("ssl_ca", "ssl_capath", "ssl_cert", "ssl_key")
OWN_FILES = "`regard clean` treats the files there as a single pipeline's own"


class MysqlConfig(Section):
    """A database of a MySQL or MariaDB server.

    Attributes:
        host: Name or address of the server.
        port: TCP port of the server.
        database: Name of the database, which must exist. Regard creates the tables.
        user: Name of a user with all privileges on the database, who authenticates by
            mysql_native_password.
        password: Password of the user, as a reference to an environment variable such as
            "${MLMD_PASSWORD}"; null: none.
        ssl_ca: PEM file with the certificate of the authority. Each of the keys ssl_… turns on TLS,
            which encrypts the connection.
        ssl_capath: Folder with the certificates of several authorities.
        ssl_cert: PEM file with a certificate of the user, for users that the server knows by it.
        ssl_key: PEM file with the private key of ssl_cert.
        ssl_cipher: Ciphers to choose from, as OpenSSL names them.
        ssl_verify_server_cert: Whether the certificate of the server must be that of an authority,
            and name the host. ML Metadata 1.17 then refuses every server (docs/how-to/metadata.md).
    """

    host: Annotated[str, Field(pattern=r"^[^\s/:]+$", examples=["database.example.com"])]
    port: Annotated[int, Field(ge=1, le=65535)] = 3306
    database: Annotated[str, Field(pattern=r"^[\w$-]{1,64}$", examples=["ml_metadata"])]
    user: Annotated[str, Field(min_length=1, examples=["regard"])]
    password: str | None = None
    ssl_ca: _Path | None = None
    ssl_capath: _Path | None = None
    ssl_cert: _Path | None = None
    ssl_key: _Path | None = None
    ssl_cipher: Annotated[str, Field(min_length=1)] | None = None
    ssl_verify_server_cert: bool = False

    def own_problems(self) -> Iterator[Problem]:
        """Yield a problem if a certificate has no key, or a key no certificate."""
        for name, other in (("ssl_cert", "ssl_key"), ("ssl_key", "ssl_cert")):
            if getattr(self, name) is not None and getattr(self, other) is None:
                yield Problem((name,), f"needs {other}, too")

    def tls_options(self) -> dict[str, str | bool]:
        """Return the options for TLS that are set, by their keys; none: without TLS."""
        values = ((name, getattr(self, name)) for name in type(self).model_fields)
        return {name: value for name, value in values if name.startswith("ssl_") and value}

    def tls_files(self) -> dict[str, str]:
        """Return the files and folders of TLS that are set, by their keys."""
        return {key: str(path) for key, path in self.tls_options().items() if key in _TLS_FILES}


class MetadataConfig(Section):
    """The database of ML Metadata, which pipelines may share. Kubeflow Pipelines uses its own.

    Attributes:
        sqlite: SQLite file on a local disk; null: a file of its own for each pipeline.
        mysql: MySQL or MariaDB database; null: a SQLite file.
    """

    sqlite: Annotated[str, Field(min_length=1)] | None = None
    mysql: MysqlConfig | None = None

    @property
    def address(self) -> str:
        """The file or the database, for messages; empty for the pipeline's own file."""
        if self.mysql is not None:
            return f"{self.mysql.host}:{self.mysql.port}/{self.mysql.database}"
        return self.sqlite or ""

    def is_inside(self, folder: Path) -> bool:
        """Return whether the SQLite file is below a folder, links followed."""
        real = Path(os.path.realpath(self.sqlite or os.devnull))
        return real.is_relative_to(os.path.realpath(folder))

    def own_problems(self) -> Iterator[Problem]:
        """Yield a problem if there are two databases."""
        if self.sqlite is not None and self.mysql is not None:
            yield Problem(("sqlite",), "cannot be used with metadata.mysql; remove one of them")

    def resolved(self, folder: Callable[..., Path]) -> Self:
        """Return the section with absolute paths; see `absolute_paths`."""
        sqlite = self.sqlite and absolute(folder("metadata", "sqlite"), self.sqlite)
        if (mysql := self.mysql) is not None:
            files = {
                key: absolute(folder("metadata", "mysql", key), path)
                for key, path in mysql.tls_files().items()
            }
            mysql = mysql.model_copy(update=files)
        return self.model_copy(update={"sqlite": sqlite, "mysql": mysql})


def validate_file(metadata: MetadataConfig, pipelines: Path) -> Iterator[Problem]:
    """Yield a problem if the shared file is in the folder of a pipeline, whose own it may be.

    Args:
        metadata: The section, with an absolute path.
        pipelines: The folder with the folders of all pipelines.
    """
    if metadata.is_inside(pipelines):
        yield Problem(("metadata", "sqlite"), f"must not be in {pipelines}; {OWN_FILES}")


def validate_password(metadata: MetadataConfig, references: References) -> Iterator[Problem]:
    """Yield a problem if the file has a password instead of a reference to a variable.

    Args:
        metadata: The section.
        references: The variables that the file refers to. What refers to one is recorded as the
            reference, so that no file has the password.
    """
    password = metadata.mysql.password if metadata.mysql is not None else None
    if password is not None and password not in references.get(_PASSWORD, {}).values():
        yield Problem(_PASSWORD, LITERAL)
