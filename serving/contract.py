"""The contract of an exported model: its signatures and what their outputs mean.

It is a JSON file in the SavedModel. ``regard.models.tasks.served_model.ExportedModel`` explains its
keys. This module needs neither TensorFlow nor the rest of Regard.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from typing_extensions import NotRequired, TypedDict

from regard.core.features import Kind
from regard.core.kinds import KINDS
from regard.core.regular_files import read_regular

CONTRACT = "assets.extra/contract.json"
MODEL_FILE = "saved_model.pb"
RECORD = "regard.json"  # the record of a version in the registry
# An empty file in a pinned version: it is created atomically and removed with the version.
PIN = "regard.pinned"
PROFILE = "assets.extra/profile.json"  # the profile of the training data
WARMUP = "assets.extra/tf_serving_warmup_requests"  # which a model server runs first
DEFAULT_SIGNATURE = "serving_default"
IN_MEMORY = "assets.extra/in_memory.json"  # rows, and the model's outputs for them before export
TRAINING = "assets.extra/training.npz"  # what a warm start needs in addition to the weights
LENGTH_SPEC = ("int32", "[batch]")
_MAX_BYTES = 16 << 20


class InputEntry(TypedDict):
    """An input of a signature.

    ``like`` names the model input or output that it repeats, ``default`` is the value of an input
    that a client may leave out. ``dimensions`` are those of points, if they are not 2.
    """

    name: str
    kind: str
    like: NotRequired[str]
    default: NotRequired[str]
    dimensions: NotRequired[int]


class SignatureEntry(TypedDict):
    """A signature: its inputs, and for each output the length outputs of its dimensions."""

    inputs: list[InputEntry]
    outputs: Mapping[str, Sequence[str | None]]


class AttentionEntry(TypedDict):
    """The outputs with attention weights and with the names of their rows and columns."""

    weights: str
    rows: str
    columns: str


class HeadsEntry(TypedDict):
    """The signature with the attention of each layer and head."""

    signature: str
    looks: list[AttentionEntry]


class SizeEntry(TypedDict, total=False):
    """The output or input that measures a row, for bucketing."""

    output: str
    input: str
    minus: int
    unit: str


class ConfidenceEntry(TypedDict):
    """The output with the confidence, and what it is the probability of."""

    output: str
    metric: NotRequired[str]  # not known of a served model
    good: NotRequired[float]
    histogram: NotRequired[list[int]]
    max_drift: NotRequired[float]


class Contract(TypedDict):
    """The contents of ``contract.json``."""

    task: str
    about: NotRequired[str]
    inputs: list[InputEntry]
    answer: str
    answer_kind: str
    score: str | None
    detail: str
    scored: str | None
    size: SizeEntry | None
    looks: AttentionEntry | None
    heads: NotRequired[HeadsEntry | None]  # not in older exports
    cut: str | None
    confidence: NotRequired[ConfidenceEntry | None]  # not in older exports
    tags: NotRequired[list[str]]
    protect: NotRequired[dict[str, Any] | None]
    blank: NotRequired[str]
    signatures: dict[str, SignatureEntry]


class SavedModelError(Exception):
    """The SavedModel does not fit its contract, or has none."""


def read_contract(path: str | os.PathLike[str]) -> Contract:
    """Read the contract of a SavedModel without loading the model.

    Args:
        path: the SavedModel's folder.

    Raises:
        SavedModelError: there is no contract, or it is invalid.
    """
    try:
        content = read_regular(Path(path) / CONTRACT, _MAX_BYTES)
    except FileNotFoundError:
        raise SavedModelError(
            f"It has no {CONTRACT}, which describes its signatures. It was exported by an older"
            " Regard or by another program."
        ) from None
    except OSError as error:
        raise SavedModelError(f"Its {CONTRACT} cannot be read: {error.strerror}.") from None
    try:
        contract: Any = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise SavedModelError(f"Its {CONTRACT} is not valid JSON: {error}") from None
    if not isinstance(contract, dict):
        raise SavedModelError(f"Its {CONTRACT} is not a JSON object.")
    missing = sorted(Contract.__required_keys__ - set(contract))
    if missing:
        raise SavedModelError(f"Its {CONTRACT} has no {', '.join(missing)}.")
    try:
        signatures = [contract, *contract["signatures"].values()]
        kinds = {entry["kind"] for signature in signatures for entry in signature["inputs"]}
    except (AttributeError, KeyError, TypeError):
        raise SavedModelError(f"Its {CONTRACT} describes an input without a kind.") from None
    if contract["answer_kind"] not in KINDS:
        answer = contract["answer_kind"]
        raise SavedModelError(f"Its {CONTRACT} has an answer of the unknown kind {answer!r}.")
    if unknown := sorted(kinds - {name for name, kind in KINDS.items() if kind.tensor}):
        raise SavedModelError(f"Its {CONTRACT} has inputs of unknown kinds: {', '.join(unknown)}.")
    return cast(Contract, contract)


def input_kinds(contract: Contract | Mapping[str, Any]) -> dict[str, Kind]:
    """Return the kind of each model input by name."""
    return {entry["name"]: KINDS[entry["kind"]] for entry in contract["inputs"]}


def text_inputs(contract: Contract | Mapping[str, Any]) -> list[str]:
    """Return the names of the model inputs that are texts."""
    return [name for name, kind in input_kinds(contract).items() if kind.is_text]


def answer_kind(contract: Contract | Mapping[str, Any]) -> Kind:
    """Return the kind of the main output."""
    return KINDS[contract["answer_kind"]]
