"""What ``regard.json`` beside a model says, and what it cannot say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from components.errors import UserError

RECORD = "regard.json"


class _Part(BaseModel):
    """What is read of a part of a record; there may be more in it."""

    model_config = ConfigDict(extra="allow", strict=True)


class _Withdrawn(_Part):
    version: int
    digest: str


class _Score(_Part):
    value: float
    signature: str = ""


class _Span(_Part):
    name: str
    version: int | None = None
    rows: dict[str, int] = {}
    fingerprint: str = ""


class _WarmStart(_Part):
    start: dict[str, str] = {}
    training: str = ""


class _Record(_Part):
    """What others rely on where it is there; anything else is told as it stands."""

    name: str = ""
    version: int = 0
    created: str = ""
    run: str = ""
    digest: str = ""
    recipe: str = ""
    data_fingerprint: str = ""
    mlmd_uuid: str = ""
    blessing: str = ""
    reason: str = ""
    compared_with: str | None = None
    rollback_of: int = 0
    rolled_back_from: int = 0
    config: dict[str, Any] = {}
    regard: dict[str, Any] = {}
    stack: dict[str, Any] = {}
    rows: dict[str, int] = {}
    metrics: dict[str, _Score] = {}
    spans: list[_Span] = []
    withdrawn: list[_Withdrawn] = []
    warm_start: _WarmStart = _WarmStart()


def read_record(version: Path) -> dict[str, Any]:
    """The ``regard.json`` of a version's folder; empty where there is none.

    Raises:
        UserError: it is no record.
    """
    path = version / RECORD
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        _Record.model_validate(record)
    except (FileNotFoundError, NotADirectoryError):  # also where it is pruned just now
        return {}
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        reason = first["msg"].partition(" or instance of")[0]
        raise _refusal(path, ": ".join(filter(None, ("no record", key, reason)))) from None
    except (ValueError, RecursionError) as error:
        raise _refusal(path, f"not valid JSON: {error}") from error
    return record


def known_of(version: Path) -> dict[str, Any]:
    """The same, where a record that cannot be read says nothing, as if there were none."""
    try:
        return read_record(version)
    except UserError:
        return {}


def _refusal(path: Path, message: str) -> UserError:
    return UserError(
        message,
        where=str(path),
        remedy="Move the file away, out of the registry: the version then counts by its content.",
    )
