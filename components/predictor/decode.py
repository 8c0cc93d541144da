"""Asks an exported model for rows, in batches of about equal length."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from models.metrics.aligning import ALIGNMENT, SOURCE, TARGET
from serving import saved_model
from serving.saved_model import Answer, SavedModelError

# What a model shows of a given answer, and what it is called beside its own answer.
SHOWN = {"alignment": ALIGNMENT, "source_pieces": SOURCE, "target_pieces": TARGET}


@dataclasses.dataclass(frozen=True)
class Decoded:
    """The answers in the order of the rows, the model's contract, and how long they took.

    The contract is the model's own; what was asked besides is in the answers' contract.
    """

    answers: list[Answer]
    contract: Mapping[str, Any]
    seconds: float
    load_seconds: float

    @property
    def sentences_per_second(self) -> float:
        """The speed of decoding; loading the model is not counted."""
        return len(self.answers) / self.seconds if self.seconds else 0.0


def decode(
    model: Path,
    rows: Sequence[Mapping[str, Any]],
    batch_size: int,
    progress: Callable[[int, float], None] = lambda done, seconds: None,
    given: Sequence[Any] | None = None,
) -> Decoded:
    """Loads a SavedModel and asks the signature that tells most for every row.

    The longest rows come first: the largest batch shows at once whether the memory suffices, and
    the time left is never guessed too short. The order of the result is that of ``rows``. An
    empty text is decoded like any other.

    Args:
        model: the folder with ``saved_model.pb``.
        rows: the inputs of each, by name.
        batch_size: rows a batch.
        progress: called after each batch with the rows done and the seconds spent.
        given: an answer to each row, of which the model is to show where it looks: the answers have
            the outputs of ``SHOWN`` besides. Models that cannot show it leave them out.

    Raises:
        SavedModelError: the signature or one of its outputs is missing, or the model takes
            something that the rows do not have.
    """
    started = time.monotonic()
    loaded = saved_model.load(model)
    signature = loaded.contract["detail"]
    loaded.signature(signature)
    load_seconds = time.monotonic() - started
    for entry in loaded.contract["inputs"]:
        if rows and entry["name"] not in rows[0]:
            given = ", ".join(rows[0])
            raise SavedModelError(f"it takes {entry['name']}, and the rows have {given}")
    lengths = [_length(row) for row in rows]
    order = sorted(range(len(rows)), key=lambda index: (-lengths[index], index))
    answers: dict[int, Answer] = {}
    seconds = 0.0
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        began = time.monotonic()
        batch = loaded.ask(signature, [rows[index] for index in chosen])
        seconds += time.monotonic() - began
        if given is not None and _shows(loaded.contract):
            asked = [(rows[index], given[index]) for index in chosen]
            batch = [
                _with(answer, shown)
                for answer, shown in zip(batch, _look(loaded, asked), strict=True)
            ]
        answers.update(zip(chosen, batch, strict=True))
        progress(len(answers), seconds)
    return Decoded(
        [answers[index] for index in range(len(rows))], loaded.contract, seconds, load_seconds
    )


def _shows(contract: Mapping[str, Any]) -> bool:
    """Whether the model says where it looks for each piece of a given answer."""
    scored = contract["signatures"].get(contract["scored"], {}).get("outputs", {})
    return set(SHOWN) <= set(scored)


def _look(
    loaded: saved_model.ServedModel, asked: Sequence[tuple[Mapping[str, Any], Any]]
) -> list[Answer]:
    signature = loaded.contract["scored"]
    entries = loaded.contract["signatures"][signature]["inputs"]
    return loaded.ask(
        signature,
        [
            {entry["name"]: row.get(entry["name"], answer) for entry in entries}
            for row, answer in asked
        ],
    )


def _with(answer: Answer, shown: Answer) -> Answer:
    """An answer with what was shown of another, and a contract that knows of both."""
    contract = answer.contract
    detail, scored = (contract["signatures"][contract[key]] for key in ("detail", "scored"))
    more = {called: scored["outputs"][name] for name, called in SHOWN.items()}
    outputs = {**detail["outputs"], **more}
    signatures = {**contract["signatures"], contract["detail"]: {**detail, "outputs": outputs}}
    found = {called: shown.outputs[name] for name, called in SHOWN.items()}
    return Answer({**answer.outputs, **found}, {**contract, "signatures": signatures})


def device() -> str:
    """``GPU`` where TensorFlow would decode on one, else ``CPU``."""
    import tensorflow as tf

    return "GPU" if tf.config.list_physical_devices("GPU") else "CPU"


def _length(row: Mapping[str, Any]) -> int:
    """About how much work a row is: its characters and points; images are all the same size."""
    return sum(len(value) for value in row.values() if not isinstance(value, bytes))
