"""Why a node failed, in one sentence for the user; the traceback stays in the log."""

from __future__ import annotations

import dataclasses
import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from components.errors import UserError
from pipeline.workspace import Workspace

_NO_SPACE = "No space left on device"
# How SQLite, below ML Metadata, and the C library say it.
_TEXTS = {
    "database or disk is full": errno.ENOSPC,
    _NO_SPACE: errno.ENOSPC,
    "Disk quota exceeded": errno.EDQUOT,
    "attempt to write a readonly database": errno.EROFS,
    "Read-only file system": errno.EROFS,
}
_SYSTEM_REMEDIES = {
    errno.ENOSPC: "Free some space on that disk, then start the run again: it goes on.",
    errno.EDQUOT: "Free some of your quota, then start the run again: it goes on.",
    errno.EROFS: "Choose a folder that can be written: with REGARD_HOME, or with the option or key "
    "that names this one.",
    errno.EACCES: "Mend the permissions, or choose another folder.",
    errno.EPERM: "Mend the permissions, or choose another folder.",
}
# Beam adds where it was to the message, and hands on some errors only as their traceback's text.
_BEAM_ADDITION = re.compile(r" \[while running '[^\n]*?'\]")
_MARK = "components.errors.UserError: "


@dataclasses.dataclass(frozen=True)
class Failure:
    """A failure as it is shown: ``user`` tells whether the user can mend it."""

    node: str | None
    error: str
    where: str | None = None
    remedy: str | None = None
    user: bool = False

    def fields(self) -> dict[str, Any]:
        """The failure as the fields of an event or of ``run.json``, without empty ones."""
        return {k: v for k, v in dataclasses.asdict(self).items() if v is not None}


def may_pass(failure: Mapping[str, Any]) -> bool:
    """Whether a failure's fields tell of what may be otherwise next time: all but a user's fault.

    A full disk and missing rights are the user's to mend, but lie in no data and no settings.
    """
    return not failure.get("user") or failure.get("remedy") in _SYSTEM_REMEDIES.values()


def explain(error: BaseException, node: str | None = None) -> Failure:
    """Finds the reason that helps the user in an exception and in what it was raised from."""
    chain = list(_chain(error))
    for link in chain:
        if isinstance(link, UserError):
            message = _BEAM_ADDITION.sub("", str(link.args[0]))
            return Failure(node, message, link.where, link.remedy, user=True)
    for link in chain:
        if isinstance(link, OSError) and link.errno in _SYSTEM_REMEDIES:
            return _system(node, link.errno, str(link.filename) if link.filename else None)
    for link in chain:
        text = str(link)
        if _MARK in text:
            return _from_text(text, node)
        for words, number in _TEXTS.items():
            if words in text:
                return _system(node, number, None)
    return Failure(node, f"{type(error).__name__}: {_sentence(error)}")


def _system(node: str | None, number: int, where: str | None) -> Failure:
    """A fault of a disk; where the library does not say which, the fullest one of ours."""
    if where is None and number in (errno.ENOSPC, errno.EDQUOT):
        places = [Workspace.from_environment().home, Path(tempfile.gettempdir())]
        there = [place for place in places if place.is_dir()]
        where = str(min(there, key=lambda place: shutil.disk_usage(place).free))
    elif where is None:
        where = str(Workspace.from_environment().home)
    return Failure(node, os.strerror(number), where, _SYSTEM_REMEDIES[number], user=True)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception, then what caused it, to the first."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def _from_text(text: str, node: str | None) -> Failure:
    """A UserError of a Beam worker, of which only ``where: message`` and the remedy are left."""
    told = _BEAM_ADDITION.sub("", text.rsplit(_MARK, 1)[1]).split("\n\n", 1)[0]
    message, _, remedy = told.strip().partition("\n")
    return Failure(node, message.strip(), None, remedy.strip() or None, user=True)


def _sentence(error: BaseException, width: int = 300) -> str:
    """The last line of the message that says something, without Beam's addition."""
    text = _BEAM_ADDITION.sub("", str(error))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return "no message"
    # A traceback in the message ends with its reason; other messages begin with it.
    line = lines[-1] if "Traceback (most recent call last)" in text else lines[0]
    return line if len(line) <= width else line[: width - 1] + "…"
