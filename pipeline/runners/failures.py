"""Explain why a node failed in one sentence; the traceback stays in the log."""

import dataclasses
import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from regard.core import errors
from regard.core.errors import EnvironmentFault, Failure, UserError
from regard.core.formatting import truncate
from regard.pipeline.workspace import Workspace

UNREACHABLE_REMEDY = "Check beam.options.job_endpoint, and that the job service runs."
DATABASE_REMEDY = "Check metadata.mysql.host and port, and that the server runs."
_NO_SPACE = "No space left on device"
# Messages of SQLite, which ML Metadata uses, and of the C library.
_MESSAGES = {
    "database or disk is full": errno.ENOSPC,
    _NO_SPACE: errno.ENOSPC,
    "Disk quota exceeded": errno.EDQUOT,
    "attempt to write a readonly database": errno.EROFS,
    "Read-only file system": errno.EROFS,
}
_SYSTEM_REMEDIES = {
    errno.ENOSPC: "Free some space on that disk, then run the same command again to resume.",
    errno.EDQUOT: "Free some of your quota, then run the same command again to resume.",
    errno.EROFS: "Choose a writable folder with REGARD_HOME, or with the option or key for this "
    "folder.",
    errno.ENOTDIR: "A part of the path is a file. Choose another folder.",
    errno.EACCES: "Correct the permissions, or choose another folder.",
    errno.EPERM: "Correct the permissions, or choose another folder.",
    errno.ENAMETOOLONG: "Choose a shorter path.",
    errno.ELOOP: "A link in the path leads to itself. Correct the link, or choose another path.",
}
# By messages of Flink, Spark, gRPC and MySQL, what helps before the next attempt.
_CLUSTER_REMEDIES = {
    "minimum required resources|NoResourceAvailable": "The cluster has too few free slots: lower "
    "beam.workers, or add TaskManagers.",
    "Insufficient number of network buffers": "Set Flink's options taskmanager.memory.network and "
    "taskmanager.network.sort-shuffle.min-buffers as in docs/flink.yaml.",
    "task manager was lost|eartbeat of TaskManager|no longer reachable|NoRestartBackoff"
    "|ExecutorLostFailure": "The cluster lost a host and did not restart the job: configure "
    "restarts and spare slots for Flink (docs/flink.yaml), or spark.task.maxFailures for Spark.",
    "StatusCode.(UNAVAILABLE|DEADLINE_EXCEEDED)": UNREACHABLE_REMEDY,
    "mysql_(real_connect|query) failed": DATABASE_REMEDY,
}
# Beam appends the step to the message, and passes some errors on only as a traceback's text.
_BEAM_SUFFIX = re.compile(r" \[while running '[^\n]*?'\]")
_MARK = re.compile(r"\bregard\.core\.errors\.(\w+): ")


def is_transient(failure: Failure) -> bool:
    """Return whether a retry may succeed: every failure except a mistake in data or configuration.

    Full disks, missing permissions and lost workers are for the user to fix, but a retry may
    succeed.
    """
    return not failure.user or failure.code == EnvironmentFault.code


def explain(error: BaseException, node: str | None = None) -> Failure:
    """Find the most useful reason in an exception and its causes."""
    failure = _find_reason(error)
    return failure if node is None else dataclasses.replace(failure, node=node)


def as_user_error(error: OSError) -> UserError | None:
    """Return an error of the system that the user can fix, such as a full disk."""
    failure = explain(error)
    if not failure.user:
        return None
    return EnvironmentFault(failure.error, failure.where, failure.remedy)


def _find_reason(error: BaseException) -> Failure:
    """Find the link of the chain that names the reason."""
    chain = list(_chain(error))
    for link in chain:
        if isinstance(link, UserError):
            message = _BEAM_SUFFIX.sub("", str(link.args[0]))
            return Failure(message, None, link.where, link.remedy, user=True, code=link.code)
    for link in chain:
        if isinstance(link, OSError) and link.errno in _SYSTEM_REMEDIES:
            return _system(link.errno, str(link.filename) if link.filename else None)
    for link in chain:
        text = str(link)
        if _MARK.search(text):
            return _from_text(text)
        for message, number in _MESSAGES.items():
            if message in text:
                return _system(number, None)
    reason = f"{type(error).__name__}: {_sentence(error)}"
    for pattern, remedy in _CLUSTER_REMEDIES.items():
        if any(re.search(pattern, str(link)) for link in chain):
            where = "metadata.mysql" if remedy == DATABASE_REMEDY else "beam"
            code = EnvironmentFault.code
            return Failure(reason, where=where, remedy=remedy, user=True, code=code)
    return Failure(error=reason, user=False)


def _system(number: int, where: str | None) -> Failure:
    """Return a disk error; if the library does not name the disk, the fullest of ours."""
    if where is None and number in (errno.ENOSPC, errno.EDQUOT):
        folders = [Workspace.from_environment().home, Path(tempfile.gettempdir())]
        existing = [folder for folder in folders if folder.is_dir()]
        where = str(min(existing, key=lambda folder: shutil.disk_usage(folder).free))
    elif where is None:
        where = str(Workspace.from_environment().home)
    remedy = _SYSTEM_REMEDIES[number]
    code = EnvironmentFault.code
    return Failure(os.strerror(number), where=where, remedy=remedy, user=True, code=code)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, then its causes."""
    visited: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in visited:
        visited.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def _from_text(text: str) -> Failure:
    """Parse the UserError of a Beam worker: ``where: message``, then the remedy."""
    *_, name, error_text = _MARK.split(text)
    error_text = _BEAM_SUFFIX.sub("", error_text).split("\n\n", 1)[0]
    message, _, remedy = error_text.strip().partition("\n")
    code = getattr(getattr(errors, name, None), "code", None)
    return Failure(message.strip(), remedy=remedy.strip() or None, user=True, code=code)


def _sentence(error: BaseException, width: int = 300) -> str:
    """Return the most informative line of the message, without Beam's suffix."""
    text = _BEAM_SUFFIX.sub("", str(error))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return "no message"
    # A traceback ends with its reason; other messages begin with it.
    line = lines[-1] if "Traceback (most recent call last)" in text else lines[0]
    return truncate(line, width)
