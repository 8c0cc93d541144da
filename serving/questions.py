"""What a model is asked in a check: real rows, and rows that a server must survive.

Imports nothing of ours, so that the serving check can load it by its path.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

LONG_CHARACTERS = 5000
FEW = 2


@dataclasses.dataclass(frozen=True)
class Question:
    """One row that the model is asked.

    Attributes:
        name: what it is called in a sentence.
        inputs: by name, as the model takes them.
        shown: the inputs for people.
        kept: the outputs of an earlier answer, by name; none where there was none.
        kept_by: whose answer that was.
    """

    name: str
    inputs: dict[str, Any]
    shown: str
    kept: dict[str, Any] = dataclasses.field(default_factory=dict)
    kept_by: str = "of the Predictor"


def question(row: dict[str, Any], contract: dict[str, Any]) -> Question:
    """A row of a request to the check; its images are bytes again."""
    inputs = dict(row["inputs"])
    for entry in contract["inputs"]:
        if entry["kind"] == "image":
            inputs[entry["name"]] = base64.b64decode(inputs[entry["name"]])
    kept_by = row.get("kept_by", Question.kept_by)
    return Question(f"row {row['row']}", inputs, row["shown"], row["answer"], kept_by)


def about(
    questions: list[Question],
    answers: Sequence[Mapping[str, Any]],
    entries: Sequence[Mapping[str, str]],
) -> list[Question]:
    """The questions as a signature takes them, which may be about the answers to them.

    Args:
        questions: with the inputs of the model.
        answers: to them, by output; only needed where an input of the signature is like one.
        entries: the signature's inputs, by the contract.
    """
    if all("like" not in entry for entry in entries):
        return questions
    asked = []
    for question, outputs in zip(questions, answers, strict=False):
        known = {**question.inputs, **outputs}
        inputs = {entry["name"]: known[entry.get("like", entry["name"])] for entry in entries}
        asked.append(dataclasses.replace(question, inputs=inputs, kept={}))
    return asked


def asked_of(
    signature: str, questions: list[Question], contract: Mapping[str, Any]
) -> list[Question]:
    """Those that a signature is asked: all; of one that shows all heads few, for it says much.

    Args:
        signature: its name.
        questions: all of them, real rows first.
        contract: the model's.
    """
    shows_heads = (contract.get("heads") or {}).get("signature") == signature
    return questions[:FEW] if shows_heads else questions


def unusual(questions: list[Question], contract: dict[str, Any]) -> list[Question]:
    """Rows that a server must survive: texts that are empty, and far too long.

    What is no text stays as in the first of the questions. Of points and images there is nothing
    to make up: the questions have the fewest and the most points that there are.
    """
    texts = [entry["name"] for entry in contract["inputs"] if entry["kind"] == "text"]
    if not texts or (len(texts) < len(contract["inputs"]) and not questions):
        return []
    others = questions[0].inputs if questions else {}
    empty = {**others, **dict.fromkeys(texts, "")}
    long = {name: long_text([question.inputs[name] for question in questions]) for name in texts}
    return [
        Question("the empty row", empty, ", ".join(["''"] * len(texts))),
        Question(
            "the long row", {**others, **long}, ", ".join(repr(_short(long[n])) for n in texts)
        ),
    ]


def long_text(texts: list[str]) -> str:
    """Real texts, strung together to one far longer than any model is trained on."""
    text = " ".join(texts) or "a"
    return (f"{text} " * (LONG_CHARACTERS // len(text) + 1))[:LONG_CHARACTERS].strip()


def _short(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
