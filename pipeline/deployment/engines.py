"""Load versions of models for a server that computes with TensorFlow, CTranslate2 or JAX."""

import contextlib
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from grpc import StatusCode

from regard.components.registry.publish import check_content
from regard.components.registry.records import read_record
from regard.components.trainer.job_process import jax_environment
from regard.core import locks, owned_folders
from regard.core.errors import EnvironmentFault, UserError
from regard.core.processes import ChildProcess
from regard.pipeline.deployment.export import check_engine
from regard.serving.server.ctranslate2_servable import CTranslate2Servable, find_unsupported_search
from regard.serving.server.errors import ServingError
from regard.serving.server.jax_servable import JaxServable, import_jax
from regard.serving.server.servable import LoadServable, Servable

_MAX_SECONDS = 600.0
_FOLDER_PREFIX, _FOLDER_LOCK = "regard-serve-", "lock"
log = logging.getLogger("regard.serve")
T = TypeVar("T")


def load_verified(name: str, path: Path) -> Servable:
    """Load a version for TensorFlow, whose files must be those that its record names.

    Raises:
        ServingError: they are not, or the version cannot be loaded.
    """
    _check_record(path)
    return Servable(name, path)


def ctranslate2_loader(quantization: str, threads: int) -> LoadServable:
    """Return the function that loads a version of a model, converts and verifies it.

    Args:
        quantization: the type of the weights, as for `export.to_ctranslate2`.
        threads: batches that run at once.

    Raises:
        UserError: CTranslate2 is not installed, or does not compute with this type.
    """
    check_engine(quantization)

    def load(name: str, path: Path) -> CTranslate2Servable:
        _check_record(path)
        search = read_record(path).config.get("search") or {}
        label = f"version {path.name} of model {name}"
        if not search or (unsupported := find_unsupported_search(search)):
            keys = ", ".join(f"search.{key}" for key in unsupported) if search else "no record"
            message = f"CTranslate2 cannot search like {label}: {keys}."
            raise ServingError(StatusCode.FAILED_PRECONDITION, message)
        with conversion_folder() as folder:
            converted = folder / "converted"
            _convert(path, converted, quantization)
            servable = CTranslate2Servable(name, path, converted, search, threads)
        loss = _verify(servable, lambda: servable.verify(quantization))
        log.info("CTranslate2 (%s) runs %s; %.2g nats per token lost", quantization, label, loss)
        return servable

    return load


def jax_loader(lengths: Sequence[int]) -> LoadServable:
    """Return the function that loads a version of a model, converts it to JAX and verifies it.

    Args:
        lengths: the numbers of source tokens to compile programs for, ascending.

    Raises:
        UserError: JAX is not installed.
    """
    try:
        import_jax()
    except ImportError:
        remedy = 'Install it with: pip install "regard[jax]"'
        raise EnvironmentFault("JAX is not installed.", remedy=remedy) from None
    command = [sys.executable, "-m", "regard.pipeline.deployment.jax_conversion"]

    def load(name: str, path: Path) -> JaxServable:
        _check_record(path)
        with conversion_folder() as folder:
            environment = {**jax_environment(os.environ), "JAX_PLATFORMS": "cpu"}
            _run([*command, str(path), str(folder), *map(str, lengths)], environment)
            servable = JaxServable(name, path, folder)
        compiled = ", ".join(map(str, _verify(servable, servable.verify)))
        label = f"version {path.name} of model {name}"
        log.info("JAX runs %s, for sources of up to %s tokens", label, compiled)
        return servable

    return load


@contextlib.contextmanager
def conversion_folder() -> Iterator[Path]:
    """Create a temporary folder for a conversion; remove those of servers that were killed.

    In a pod, the folder for temporary files survives the restarts of the container.
    """
    mark = owned_folders.mark_name(owned_folders.SCRATCH)
    for path in Path(tempfile.gettempdir()).glob(f"{_FOLDER_PREFIX}*"):
        with contextlib.suppress(OSError):  # of another user, or removed by another server
            if owned_folders.is_owned(path, owned_folders.SCRATCH):
                with locks.acquire_existing(path / _FOLDER_LOCK):
                    owned_folders.remove_content(path, mark)
    # The lock is there before the mark, so that nobody removes a folder that is being made.
    folder = tempfile.TemporaryDirectory(prefix=_FOLDER_PREFIX, ignore_cleanup_errors=True)
    with folder as name, locks.acquire(Path(name, _FOLDER_LOCK)):
        owned_folders.mark(name, owned_folders.SCRATCH)
        yield Path(name)


def _verify(servable: Servable, verify: Callable[[], T]) -> T:
    """Return the result of a verification, or free the memory of the model."""
    try:
        return verify()
    except BaseException:
        servable.close()
        raise


def _check_record(version: Path) -> None:
    """Check that the files of a version are those of its record, if it has one.

    Raises:
        ServingError: one is missing, incomplete or damaged.
    """
    try:
        read_record(version)  # may be incomplete itself
        check_content(version)
    except UserError as error:
        message = f"Version {version.name}: {error.message}."
    except OSError as error:
        message = f"Version {version.name} cannot be read: {error.strerror}."
    else:
        return
    raise ServingError(StatusCode.UNAVAILABLE, message)


def _convert(version: Path, folder: Path, quantization: str) -> None:
    """Convert in another process, whose memory is then free.

    Raises:
        ServingError: CTranslate2 does not support the model, or the conversion is wrong.
    """
    command = [sys.executable, "-m", "regard.pipeline.cli", "export", str(version), "--json"]
    command += ["--out", str(folder), "--quantization", quantization]
    _run(command)


def _run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Return the standard output of a conversion, which ends with this process.

    Raises:
        ServingError: it failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        output, errors = Path(folder, "output"), Path(folder, "errors")
        with ChildProcess(command, errors, output, environment=environment) as child:
            status = child.wait(_MAX_SECONDS)
        if status == 0:
            return output.read_text(encoding="utf-8")
        if status is None:
            message = f"The conversion took longer than {_MAX_SECONDS:g} s."
        elif text := output.read_text(encoding="utf-8", errors="replace"):
            message = " ".join(text.split())  # a user's mistake is on standard output
        else:
            lines = errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            log.error("The conversion failed:\n%s", "\n".join(lines))
            message = f"The conversion ended with status {status}: {(lines or [''])[-1]}"
    raise ServingError(StatusCode.FAILED_PRECONDITION, message)
