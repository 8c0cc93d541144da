"""Models to run: versions of the registry, SavedModel folders, and served models."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.components.registry.publish import check_content
from regard.components.registry.records import VersionRecord, read_record
from regard.components.registry.store import Registry
from regard.core.errors import DataError, EnvironmentFault, NotFoundError, UserError
from regard.models.tasks import TASKS, describe
from regard.models.tasks.description import Description
from regard.pipeline.prediction.search_options import load_with_search  # imports TensorFlow
from regard.serving import contract, saved_model
from regard.serving.client import Client, ClientError
from regard.serving.client.conversion import ClientSignature
from regard.serving.saved_model import InputLengthError, InputRow, Model, Prediction
from regard.serving.session import SessionError

TOKEN = "REGARD_TOKEN"  # the environment variable with a server's token
N_BEST = "nbest"  # the signature with all hypotheses
_NO_ACCESS = ("UNAUTHENTICATED", "PERMISSION_DENIED")
_CUT = ("source_cut", "cut")
_ADDRESS = re.compile(
    r"(?P<target>(?:grpcs?|https?)://[^/]+)/(?P<name>[^/@]+)(?:@(?P<version>\d+))?"
)


def open_model(
    text: str,
    registry: Path,
    server: str | None = None,
    search: Mapping[str, Any] | None = None,
    few_runs: bool = False,
) -> tuple[Model, VersionRecord]:
    """Load a model, or connect to a served one.

    Args:
        text: ``NAME``, ``NAME@VERSION``, a folder, or ``grpc://HOST:PORT/NAME[@VERSION]``
            (``grpcs``, ``http``, ``https``).
        registry: the registry's folder.
        server: ``grpc://HOST:PORT`` of the server that runs the model ``NAME[@VERSION]``.
        search: keys of the section ``search`` that replace those of the model.
        few_runs: see ``Session``.

    Returns:
        The model, and its record, which is empty outside the registry.

    Raises:
        UserError: there is no such model, or it cannot be used.
    """
    if server is not None or "://" in text:
        address = text if server is None else f"{server.rstrip('/')}/{text}"
        served = ServedByAddress(address)
        if search and not _lists_answers(served.contract, search):
            message = "A served model keeps the search that it was exported with."
            remedy = "Leave out the options of the search, or run the model without a server."
            raise UserError(message, address, remedy)
        return served, VersionRecord()
    path = Registry(registry).resolve(text)
    check_content(path)
    try:
        if not search or _lists_answers(contract.read_contract(path), search):
            return load_model(path, few_runs), read_record(path)
    except contract.SavedModelError as error:
        raise _unusable_model(path, error) from error

    return load_with_search(path, search), read_record(path)


def _lists_answers(described: contract.Contract, search: Mapping[str, Any]) -> bool:
    """Whether only ``n_best`` is given, for a task without a search that lists its answers."""
    has_list = search.keys() == {"n_best"} and N_BEST in described["signatures"]
    return has_list and describe(described["task"]).search is None


def load_model(path: Path, few_runs: bool = False) -> saved_model.ServedModel:
    """Load a SavedModel; see ``Session``.

    Raises:
        UserError: the folder holds no SavedModel with a contract.
    """
    try:
        return saved_model.load(path, few_runs)
    except (OSError, ValueError, SessionError) as error:
        reason = (str(error).splitlines() or ["no reason given"])[0]
        remedy = "Give the folder that contains saved_model.pb and variables/."
        raise UserError(f"The model cannot be loaded: {reason}", str(path), remedy) from error
    except contract.SavedModelError as error:
        raise _unusable_model(path, error) from error


def _unusable_model(path: Path, error: contract.SavedModelError) -> UserError:
    remedy = "Train it again with `regard run`, or give another model."
    return UserError(f"The model cannot be used: {error}", str(path), remedy)


def _error_class(error: ClientError | ValueError) -> type[UserError]:
    """Return the kind of error that a server's status, or an invalid address, is for the user."""
    if isinstance(error, ValueError):
        return UserError
    statuses = {"INVALID_ARGUMENT": DataError, "NOT_FOUND": NotFoundError}
    return statuses.get(error.code, EnvironmentFault)


class ServedByAddress:
    """A model that `regard serve` or TensorFlow Serving runs.

    Its contract follows from the names of its inputs and outputs.

    Args:
        address: ``grpc://HOST:PORT/NAME[@VERSION]``, or with another scheme.

    Raises:
        UserError: the address is invalid, the server does not answer, or the model is not Regard's.
    """

    def __init__(self, address: str):
        match = _ADDRESS.fullmatch(address)
        if match is None:
            remedy = "Use grpc://HOST:PORT/NAME or http://HOST:PORT/NAME, with @VERSION if needed."
            raise UserError("The address of the model is invalid.", address, remedy)
        version = match["version"]
        self._address = address
        try:
            self._client = Client(
                match["target"],
                match["name"],
                version=int(version) if version else None,
                token=os.environ.get(TOKEN) or None,
            )
            self.contract = self._create_contract()
        except (ClientError, ValueError) as error:
            remedy = "Check the address, and that `regard serve` runs there."
            raise _error_class(error)(
                f"The server cannot be used: {error}", address, remedy
            ) from None

    def predict(self, name: str, rows: Sequence[InputRow]) -> list[Prediction]:
        """Run a signature.

        Raises:
            InputLengthError: an input is too long or too short.
            UserError: the server rejects the rows, or does not answer.
        """
        try:
            outputs = self._client.predict(rows, name)
        except ClientError as error:
            if length_error := InputLengthError.parse(error.message):
                raise length_error from None
            remedy = f"Set {TOKEN} to the server's token." if error.code in _NO_ACCESS else None
            message = f"The server reports: {error}"
            raise _error_class(error)(message, self._address, remedy) from None
        return [Prediction(row, self.contract) for row in outputs]

    def _create_contract(self) -> contract.Contract:
        signatures = self._client.metadata()
        default = signatures["serving_default"]
        names = {entry["name"] for entry in default.entries}
        task = _find_task(names, set(default.outputs))
        if task is None:
            remedy = "Use a model that Regard exported."
            raise UserError("The model's inputs and outputs fit no task.", self._address, remedy)
        kinds = {feature.name: feature.kind.name for feature in task.features}

        def inputs(signature: ClientSignature) -> list[contract.InputEntry]:
            """Return the inputs with the kinds of the task: for a server, an image is a text."""
            return [
                {**entry, "kind": kinds.get(entry["name"], entry["kind"])}
                for entry in signature.entries
            ]

        described: dict[str, contract.SignatureEntry] = {
            name: {"inputs": inputs(signature), "outputs": signature.dimensions}
            for name, signature in signatures.items()
            if not name.startswith(("__", "stream_"))
        }
        scored = "score" if "score" in described else None
        detail = "align" if "align" in described else "serving_default"
        return {
            "task": task.name,
            "inputs": inputs(default),
            "answer": task.output,
            "answer_kind": task.output_kind.name,
            "score": "score" if "score" in default.outputs else None,
            "detail": detail,
            "scored": scored,
            "size": None,
            "looks": _find_attention(signatures[detail]),
            "heads": None,
            "cut": next((name for name in _CUT if name in signatures[detail].outputs), None),
            "confidence": {"output": "confidence"} if "confidence" in default.outputs else None,
            "signatures": described,
        }


def _find_attention(signature: ClientSignature) -> contract.AttentionEntry | None:
    """Return the attention weights, with the outputs or inputs that name rows and columns."""
    dimensions = signature.dimensions
    weights = next((name for name, axes in dimensions.items() if len(axes) > 1), None)
    if weights is None:
        return None
    rows, columns = dimensions[weights][:2]
    source = signature.entries[0]["name"]
    return {
        "weights": weights,
        "rows": _output_along(rows, signature) or source,
        "columns": _output_along(columns, signature) or source,
    }


def _output_along(axis: str | None, signature: ClientSignature) -> str | None:
    """Return the output with one value per position of an axis: texts rather than numbers."""
    if axis is None:
        return None
    for kind in ("string", "int32"):
        for name, output in signature.outputs.items():
            if output.kind == kind and signature.dimensions[name] == [axis]:
                return name
    return None


def _find_task(inputs: set[str], outputs: set[str]) -> Description | None:
    for description in map(describe, TASKS):
        names = {feature.name for feature in description.features if feature.role == "input"}
        if names == inputs and description.output in outputs:
            return description
    return None
