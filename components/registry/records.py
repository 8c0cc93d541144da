"""The record of a version, ``regard.json``: its fields, and how it is read."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from regard.components.common.artifact_files import JsonFile
from regard.core.errors import EnvironmentFault, UserError
from regard.core.regular_files import read_regular
from regard.serving.contract import RECORD

_MAX_BYTES = 16 << 20
_MAX_VERSION = 2**63 - 1  # the highest version of a model server


class _Part(BaseModel):
    """A part of a record. Unknown keys are kept, so that versions of Regard may add some."""

    model_config = ConfigDict(extra="allow", strict=True)

    def to_dict(self) -> dict[str, Any]:
        """Return the keys that are set as JSON values."""
        return self.model_dump(exclude_unset=True)


class WithdrawnModel(_Part):
    """A model that production was rolled back from.

    Attributes:
        version: the version that it was first pushed as.
        digest: the digest of its content.
    """

    version: int
    digest: str


class PushResult(JsonFile):
    """What the Pusher did, ``pushed.json``.

    Attributes:
        pushed: whether the model is a version of the registry.
        text: what happened, as a sentence for the user.
        path: the folder of the version; empty without one.
        version: its number.
    """

    FILE = "pushed.json"

    pushed: bool
    text: str
    path: str = ""
    version: int | None = None


class RecordedMetric(_Part):
    """The value and the signature of a metric."""

    value: float
    signature: str = ""


class RecordedSpan(_Part):
    """A span of the data that the model was trained on."""

    name: str
    version: int | None = None
    rows: dict[str, int] = {}
    fingerprint: str = ""
    replayed: bool = False


WARM_START = "warm_start"  # property of a model artifact whose Trainer looked up its start


class WarmStartRecord(_Part):
    """The model that the training started from, and the key of that training."""

    start: dict[str, str] = {}
    training: str = ""


class ImportRecord(_Part):
    """Where an imported model comes from.

    Attributes:
        format: the format of the folder, for example ``marian``.
        folder: the name of the folder.
        files: the SHA-256 of each file that was read.
        licence: the licence that the folder states; empty without one.
    """

    format: str = ""
    folder: str = ""
    files: dict[str, str] = {}
    licence: str = ""


class VersionRecord(_Part):
    """The content of ``regard.json``.

    Attributes:
        name: the model's name.
        version: its version.
        created: the time of publication, ISO 8601 in UTC.
        run: the id of the run that pushed it.
        digest: the digest of the model's content.
        recipe: the digest of everything that determines the model.
        data_fingerprint: the digest of the data.
        code: the digest of the code that pushed it.
        blessing: the gate's decision as a sentence.
        reason: the reason for a rollback.
        compared_with: the version that the gate compared it with.
        rollback_of: the version whose model a rollback published again.
        rolled_back_from: the version that a rollback replaced.
        config: the configuration.
        regard: the version and commit of Regard.
        stack: the versions of the main libraries.
        rows: rows of each split.
        metrics: the metrics on the test split.
        spans: the spans of the data.
        withdrawn: models that must not be pushed again.
        warm_start: the model that the training started from.
        imported: where the model comes from, if it was imported.
    """

    name: str = ""
    version: int = 0
    created: str = ""
    run: str = ""
    digest: str = ""
    recipe: str = ""
    data_fingerprint: str = ""
    code: str = ""
    blessing: str = ""
    reason: str = ""
    compared_with: str | None = None
    rollback_of: int | None = None
    rolled_back_from: int | None = None
    config: dict[str, Any] = {}
    regard: dict[str, Any] = {}
    stack: dict[str, Any] = {}
    rows: dict[str, int] = {}
    metrics: dict[str, RecordedMetric] = {}
    spans: list[RecordedSpan] = []
    withdrawn: list[WithdrawnModel] = []
    warm_start: WarmStartRecord = WarmStartRecord()
    imported: ImportRecord = ImportRecord()

    def to_json(self) -> str:
        """Return the text of ``regard.json``."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"


def read_record(version: Path) -> VersionRecord:
    """Read the record in a version's folder; an empty one if there is no file.

    Raises:
        UserError: the file is not a valid record.
    """
    path = version / RECORD
    try:
        return VersionRecord.model_validate_json(read_regular(path, _MAX_BYTES))
    except (FileNotFoundError, NotADirectoryError):  # also if the version is being pruned
        return VersionRecord()
    except OSError as error:
        message = f"The record cannot be read: {error.strerror}"
        raise EnvironmentFault(message, str(path), "Remove it, or restore the record.") from None
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise UserError(
            ": ".join(filter(None, ("not a valid record", key, first["msg"]))),
            where=str(path),
            remedy="Move the file out of the registry. The version is then identified by its "
            "content.",
        ) from None


def read_record_or_empty(version: Path) -> VersionRecord:
    """Read a record; return an empty one if the file is missing or invalid."""
    try:
        return read_record(version)
    except UserError:
        return VersionRecord()


def parse_number(name: str) -> int | None:
    """Return the version that a model server reads from a folder's name; ``0012`` is 12."""
    digits = name.lstrip("0") or name[-1:]
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > len(str(_MAX_VERSION)):
        return None
    number = int(digits)
    return number if number <= _MAX_VERSION else None


def next_version(names: Iterable[str], where: str) -> int:
    """Return a number above every numbered entry, also those without a model or with zeros."""
    numbers = (parse_number(name) for name in names)
    version = max((number for number in numbers if number is not None), default=0) + 1
    if parse_number(str(version)) is None:
        message = f"Version {version - 1} exists, and model servers do not support higher versions"
        remedy = "Push under another name."
        raise UserError(message, where, remedy)
    return version
