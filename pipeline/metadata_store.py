"""The database of ML Metadata in which a pipeline records its runs: its own file, or a shared one.

Other pipelines may record theirs in a shared database, so only executions and artifacts of the
context of this pipeline are used or changed there, and no row is removed.
"""

from __future__ import annotations

import hashlib
import os
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from regard.components.common.references import resolve_references
from regard.core import owned_folders
from regard.core.errors import EnvironmentFault, UserError
from regard.core.files import file_state
from regard.core.native_output import silence_output
from regard.pipeline import metadata_file, mysql_server
from regard.pipeline.config.metadata import OWN_FILES, MetadataConfig
from regard.pipeline.runs.store import Run
from regard.pipeline.workspace import PipelinePaths, output_folders

if TYPE_CHECKING:
    from ml_metadata.metadata_store import MetadataStore as Client
    from ml_metadata.proto import metadata_store_pb2

_PIPELINE, _RUN = "pipeline", "pipeline_run"  # TFX's types of contexts
_SQLITE = "metadata.sqlite"  # the key, for errors
# ML Metadata does not say why a server refuses a connection.
_TLS_REMEDY = "Check the keys ssl_… too; ssl_verify_server_cert: true may refuse a valid server."
_NO_TLS_REMEDY = "If the server requires TLS, set metadata.mysql.ssl_ca."
# Reasons of ML Metadata if another process creates the tables, or writes.
_TEMPORARY = ("concurrent connection", "already exists", "database is locked")
_ATTEMPTS, _WAIT_SECONDS = 20, 0.25


class MetadataStore(ABC):
    """Records the executions and the artifacts of one pipeline.

    Args:
        paths: The folders of the pipeline.
        section: The section ``metadata`` of its configuration.

    Attributes:
        is_shared: Whether other pipelines may use the database.
    """

    is_shared: ClassVar[bool] = False

    def __init__(self, paths: PipelinePaths, section: MetadataConfig):
        self.paths, self.section, self.name = paths, section, paths.root.name

    @property
    @abstractmethod
    def artifacts(self) -> Path:
        """TFX's pipeline root. The numbers of its folders are ids of executions of this store."""

    def run_context(self, run_id: str) -> str:
        """Return the name of a run's context of the type ``pipeline_run``."""
        return Run(self.paths.runs / run_id).record().context or run_id

    def context_ids(self, run_ids: Iterable[str]) -> dict[str, int]:
        """Return the ids of the contexts of runs, as far as the store has them.

        Raises:
            UserError: The store cannot be used.
        """
        client = self._open()
        names = {run_id: self.run_context(run_id) for run_id in run_ids}
        contexts = {
            run_id: client.get_context_by_type_and_name(_RUN, name)
            for run_id, name in names.items()
        }
        return {run_id: context.id for run_id, context in contexts.items() if context is not None}

    @abstractmethod
    def check(self) -> None:
        """Check that the store can be used. A damaged file is replaced by its copy.

        Raises:
            UserError: It cannot be used.
        """

    @abstractmethod
    def store_copy(self) -> None:
        """Copy the pipeline's own file after a successful run."""

    @abstractmethod
    def state(self) -> list[int]:
        """Return a value that each execution of the pipeline changes.

        Raises:
            OSError, UserError: The store cannot be used.
        """

    @abstractmethod
    def needed_executions(self, run_ids: Iterable[str]) -> set[int] | None:
        """Return the ids of the executions of runs, and of those that made what they used.

        Returns:
            None if the store does not know the pipeline.

        Raises:
            UserError: The store cannot be used.
        """

    @abstractmethod
    def own_outputs(self) -> list[Path]:
        """Return the folders of outputs that the pipeline's runs created.

        Raises:
            UserError: The store cannot be used.
        """

    @abstractmethod
    def keep_executions(self, executions: set[int] | None) -> int:
        """Forget the other executions, and return the bytes that this frees.

        Raises:
            UserError: The store cannot be changed.
        """

    def _open(self, create: bool = False) -> Client:
        """Connect to the store; it gets its tables if it is empty.

        Args:
            create: Whether to create a SQLite file that does not exist.

        Raises:
            UserError: It cannot be used.
        """
        from ml_metadata.metadata_store import MetadataStore as Client

        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return Client(connection_config(self.section, self.paths.metadata, create))
            except RuntimeError as error:
                is_temporary = any(text in str(error) for text in _TEMPORARY)
                if not is_temporary or attempt == _ATTEMPTS:
                    raise self._explain(str(error)) from error
                time.sleep(_WAIT_SECONDS)
        raise AssertionError

    def _explain(self, reason: str) -> UserError:
        """Return an error for the reason that ML Metadata gives."""
        message = f"The database of ML Metadata cannot be used: {reason.splitlines()[0]}"
        return EnvironmentFault(message, str(self.paths.metadata))


class OwnFile(MetadataStore):
    """The SQLite file in the folder of the pipeline."""

    @property
    def artifacts(self) -> Path:
        return self.paths.artifacts

    def context_ids(self, run_ids: Iterable[str]) -> dict[str, int]:
        return super().context_ids(run_ids) if self.paths.metadata.exists() else {}

    def check(self) -> None:
        metadata_file.check(self.paths.metadata)

    def store_copy(self) -> None:
        metadata_file.store_copy(self.paths.metadata)

    def state(self) -> list[int]:
        return list(file_state(self.paths.metadata))

    def needed_executions(self, run_ids: Iterable[str]) -> set[int] | None:
        return metadata_file.needed_executions(self.paths.metadata, run_ids)

    def own_outputs(self) -> list[Path]:
        return metadata_file.own_outputs(self.artifacts, self.paths.metadata, self.name)

    def keep_executions(self, executions: set[int] | None) -> int:
        if metadata_file.has_other_pipelines(self.paths.metadata, self.name):
            return 0
        return metadata_file.keep_executions(self.paths.metadata, executions)


class SharedStore(MetadataStore):
    """A database that several pipelines use.

    Each database has a pipeline root of its own, because its executions are numbered on their own.
    """

    is_shared = True

    @property
    def artifacts(self) -> Path:
        digest = hashlib.sha256(self.section.address.encode()).hexdigest()
        return self.paths.root / f"{self.paths.artifacts.name}-{digest[:12]}"

    def context_ids(self, run_ids: Iterable[str]) -> dict[str, int]:
        if self._is_missing:
            return {}
        with silence_output():
            return super().context_ids(run_ids)

    def check(self) -> None:
        if (mysql := self.section.mysql) is not None:
            mysql_server.check_server(mysql)
        elif (folder := Path(self.section.sqlite or "").parent) and not folder.is_dir():
            raise UserError(f"The folder {folder} does not exist.", _SQLITE, "Create it.")
        elif self.section.is_inside(pipelines := self.paths.root.parent):
            message = f"The file must not be in {pipelines}; {OWN_FILES}."
            raise UserError(message, _SQLITE, "Use a file in another folder.")
        with silence_output():
            self._open(create=True)

    def store_copy(self) -> None:
        """Do nothing: whoever runs the database keeps copies of it."""

    def state(self) -> list[int]:
        from ml_metadata.metadata_store import ListOptions, OrderByField

        if self._is_missing:
            return []
        client = self._open()
        if (context := client.get_context_by_type_and_name(_PIPELINE, self.name)) is None:
            return []
        newest = ListOptions(limit=1, order_by=OrderByField.UPDATE_TIME, is_asc=False)
        executions = client.get_executions_by_context(context.id, newest)
        return [v for e in executions for v in (e.id, e.last_update_time_since_epoch)]

    def needed_executions(self, run_ids: Iterable[str]) -> set[int] | None:
        if self._is_missing:
            return None
        with silence_output():
            client = self._open()
        if client.get_context_by_type_and_name(_PIPELINE, self.name) is None:
            return None
        new = {
            execution.id
            for context in self.context_ids(run_ids).values()
            for execution in client.get_executions_by_context(context)
        }
        needed = set[int]()
        while new:
            needed |= new
            used = {event.artifact_id for event in client.get_events_by_execution_ids(new)}
            makers = {
                event.execution_id
                for event in client.get_events_by_artifact_ids(used)
                if event.type == event.OUTPUT
            }
            new = {
                execution.id
                for execution in client.get_executions_by_id(makers - needed)
                if execution.last_known_state == execution.COMPLETE
            }
        return needed

    def own_outputs(self) -> list[Path]:
        if not owned_folders.is_owned(self.artifacts, owned_folders.ARTIFACTS):
            return []
        return output_folders(self.artifacts)

    def keep_executions(self, executions: set[int] | None) -> int:
        """Mark the artifacts of the pipeline whose folders were removed as deleted; return 0."""
        if executions is None:
            return 0
        with silence_output():
            client = self._open()
        context = client.get_context_by_type_and_name(_PIPELINE, self.name)
        removed = []
        for artifact in client.get_artifacts_by_context(context.id):
            # Another workspace may have a pipeline of this name.
            is_own = Path(artifact.uri).is_relative_to(self.artifacts)
            is_deleted = artifact.state == artifact.DELETED
            if is_own and not is_deleted and not Path(artifact.uri).exists():
                artifact.state = artifact.DELETED
                removed.append(artifact)
        if removed:
            client.put_artifacts(removed)
        return 0

    @property
    def _is_missing(self) -> bool:
        return self.section.sqlite is not None and not os.path.exists(self.section.sqlite)

    def _explain(self, reason: str) -> UserError:
        mysql, address = self.section.mysql, self.section.address
        key = _SQLITE if mysql is None else mysql_server.SECTION
        message = f"The database {address} cannot be used: {reason.splitlines()[0]}"
        remedy = "Correct the section metadata, or use another database."
        if "MLMD database version" in reason:
            message = f"The database {address} cannot be used: {reason.split('. ')[0]}."
            remedy = (
                "Upgrade the database with ml-metadata (enable_upgrade_migration), after a backup, "
                "or use another database."
            )
        elif mysql is not None and "mysql_real_connect" in reason:
            key = f"{mysql_server.SECTION}.user"
            has_tls = bool(mysql.tls_options())
            names = (
                f"{mysql.user}, the password or TLS" if has_tls else f"{mysql.user} or the password"
            )
            message = f"The server of {address} refuses the user {names}."
            remedy = (
                "Correct metadata.mysql.user and the variable of metadata.mysql.password. The user "
                "must authenticate by mysql_native_password. "
            ) + (_TLS_REMEDY if has_tls else _NO_TLS_REMEDY)
        elif mysql is not None and "Changing to database" in reason:
            key = f"{mysql_server.SECTION}.database"
            message = f"There is no database {address}, or {mysql.user} has no access to it."
            remedy = (
                f"CREATE DATABASE `{mysql.database}` CHARACTER SET utf8mb4; "
                f"GRANT ALL ON `{mysql.database}`.* TO '{mysql.user}'"
            )
        return EnvironmentFault(message, key, remedy)


def metadata_store(section: MetadataConfig, paths: PipelinePaths) -> MetadataStore:
    """Return the store of a pipeline."""
    return (SharedStore if section.address else OwnFile)(paths, section)


def new_run_context(run: Run) -> str:
    """Return a name for a run's context that no run of another pipeline or workspace has.

    TFX would skip the nodes of a run whose name another one has, without a word.
    """
    return f"{run.name}.{run.id}.{uuid.uuid4().hex[:8]}"


def store_of_run(run: Run) -> MetadataStore:
    """Return the store that a run used, by its recorded configuration.

    Raises:
        UserError: The environment variable of a password is not set.
    """
    paths = run.workspace.pipeline(run.name)
    recorded = run.settings().get("metadata") or {}
    try:
        section = MetadataConfig.model_validate(resolve_references(recorded, os.environ, {}))
    except LookupError as error:
        message = f"The run used a database, and {error.args[0]}."
        raise EnvironmentFault(message, f"{run.config}: metadata", "Set the variable.") from error
    except ValueError:  # by another version of Regard
        section = MetadataConfig()
    return metadata_store(section, paths)


def connection_config(
    section: MetadataConfig, own: Path, create: bool = True
) -> metadata_store_pb2.ConnectionConfig:
    """Return the connection for ML Metadata and TFX.

    Args:
        section: The section of the configuration.
        own: The file of the pipeline, for a section without a database.
        create: Whether to create a SQLite file that does not exist.
    """
    from ml_metadata.proto import metadata_store_pb2

    config = metadata_store_pb2.ConnectionConfig()
    if (mysql := section.mysql) is None:
        config.sqlite.filename_uri = section.sqlite or str(own)
        modes = metadata_store_pb2.SqliteMetadataSourceConfig
        config.sqlite.connection_mode = modes.READWRITE_OPENCREATE if create else modes.READWRITE
        return config
    # For "localhost", the client would look for a socket file.
    config.mysql.host = "127.0.0.1" if mysql.host == "localhost" else mysql.host
    config.mysql.port, config.mysql.database = mysql.port, mysql.database
    config.mysql.user, config.mysql.password = mysql.user, mysql.password or ""
    config.mysql.skip_db_creation = True
    for name, value in mysql.tls_options().items():
        setattr(config.mysql.ssl_options, name.removeprefix("ssl_"), value)
    return config
