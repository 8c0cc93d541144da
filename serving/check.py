"""Checks an exported model as a model server would meet it: alone.

Run as a script by an isolated interpreter (``python -I serving/check.py REQUEST RESULT``) it
imports TensorFlow and TensorFlow Text and nothing else, loads the SavedModel, sends it real rows
and compares the answers with those that were kept. Both files are JSON; see `check`.
"""

from __future__ import annotations

import base64
import dataclasses
import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

OURS = ("pipeline", "components", "models", "serving")
DEFAULT = "serving_default"
LONG_CHARACTERS = 5000
MOST_FAILURES = 10


def check(request: dict[str, Any]) -> dict[str, Any]:
    """Runs every check and says what failed.

    Args:
        request: ``model`` (a SavedModel's folder), ``servers`` (versions of TensorFlow Serving),
            ``rows`` (each ``row``, its number; ``inputs``, by name, images in base64; ``shown``,
            the inputs for people; ``answer``, the outputs that were kept, by name) and
            ``tolerances`` (``absolute`` and ``relative`` of a number, ``array`` of the numbers in
            an array, ``ties``: the share of rows where an answer of equal score may stand in for
            another).

    Returns:
        ``failures`` (a list of sentences), ``unsupported_ops`` by server version, and what was
        measured.
    """
    model = request["model"]
    ops, saved_model = _sibling("ops"), _sibling("saved_model")
    import tensorflow as tf

    # In this order: what is registered before TensorFlow Text is imported is TensorFlow's own.
    used = ops.used_ops(model)
    core = ops.core_ops(used)
    import tensorflow_text

    result: dict[str, Any] = {
        "failures": [],
        "unsupported_ops": {
            server: ops.unsupported(used, core, server) for server in request["servers"]
        },
        "ops": len(used),
        "text_ops": sorted(used - core),
        "versions": {
            "tensorflow": tf.__version__,
            "tensorflow_text": tensorflow_text.__version__,
        },
    }
    started = time.monotonic()
    try:
        loaded = saved_model.load(model)
    except saved_model.SavedModelError as error:
        result["failures"].append(str(error))
        return result
    result["load_seconds"] = round(time.monotonic() - started, 3)
    promised = loaded.contract
    for name in dict.fromkeys([DEFAULT, promised["detail"], *promised["signatures"]]):
        try:
            loaded.signature(name)
        except saved_model.SavedModelError as error:
            result["failures"].append(str(error))
    if not result["failures"]:
        _check_answers(saved_model, loaded, request, result)
    result["failures"] = result["failures"][:MOST_FAILURES]
    return result


def _check_answers(
    saved_model: ModuleType, model: Any, request: dict[str, Any], result: dict[str, Any]
) -> None:
    def ask(signature: str, asked: list[Question]) -> tuple[list[dict[str, Any]], list[str]]:
        try:
            answers = model.ask(signature, [question.inputs for question in asked])
            return [dict(answer.outputs) for answer in answers], []
        except saved_model.SavedModelError as error:
            return [], [str(error)]

    limits = request["tolerances"]
    comparison = _sibling("comparison").Comparison(model.contract, limits)
    questions = [_question(row, model.contract) for row in request["rows"]]
    extremes = unusual(questions, model.contract)
    started = time.monotonic()
    ask(DEFAULT, (questions or extremes)[:1])
    result["first_answer_seconds"] = round(time.monotonic() - started, 3)
    # A model may be told to refuse what is too long; it then cannot be asked that beside others.
    taken = [one for one in extremes if not _refuses(saved_model, model, one)]
    result["refused"] = [one.name for one in extremes if one not in taken]
    questions += taken
    failures: list[str] = result["failures"]
    ties: list[str] = []
    for signature in model.contract["signatures"]:
        batched, wrong = ask(signature, questions)
        failures += [f"{signature}: {text}" for text in wrong]
        if wrong:
            continue
        for question, answer in zip(questions, batched, strict=True):
            what = f"{signature}, {question.name} ({question.shown})"
            failures += [f"{what}: {text}" for text in comparison.impossible(answer)]
            alone, wrong = ask(signature, [question])
            failures += [f"{what}, alone: {text}" for text in wrong]
            pairs = [] if wrong else [("in a batch", "alone", alone[0])]
            if question.kept:
                pairs.append(("now", "of the Predictor", question.kept))
            for here, there, other in pairs:
                text, tie = comparison.difference(answer, other)
                if text:
                    (ties if tie else failures).append(f"{what}: {here} and {there}: {text}")
    result["rows"] = len(questions)
    result["ties"] = ties
    # The same row is compared several times; what counts is how many rows are concerned.
    concerned = {one.name for one in questions if any(f", {one.name} (" in tie for tie in ties)}
    if len(concerned) > limits["ties"] * len(questions):
        failures.extend(ties)


@dataclasses.dataclass(frozen=True)
class Question:
    """One row that the model is asked.

    Attributes:
        name: what it is called in a sentence.
        inputs: by name, as the model takes them.
        shown: the inputs for people.
        kept: the outputs of an earlier answer, by name; none where there was none.
    """

    name: str
    inputs: dict[str, Any]
    shown: str
    kept: dict[str, Any] = dataclasses.field(default_factory=dict)


def _question(row: dict[str, Any], contract: dict[str, Any]) -> Question:
    inputs = dict(row["inputs"])
    for entry in contract["inputs"]:
        if entry["kind"] == "image":
            inputs[entry["name"]] = base64.b64decode(inputs[entry["name"]])
    return Question(f"row {row['row']}", inputs, row["shown"], row["answer"])


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


def _refuses(saved_model: ModuleType, model: Any, question: Question) -> bool:
    try:
        model.ask(DEFAULT, [question.inputs])
    except saved_model.SourceRefused:
        return True
    except saved_model.SavedModelError:
        return False  # it is asked again, and then told
    return False


def long_text(texts: list[str]) -> str:
    """Real texts, strung together to one far longer than any model is trained on."""
    text = " ".join(texts) or "a"
    return (f"{text} " * (LONG_CHARACTERS // len(text) + 1))[:LONG_CHARACTERS].strip()


def _short(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _sibling(name: str) -> ModuleType:
    """A module beside this file, by its path: an isolated interpreter does not see our packages."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


def main(request: str, result: str) -> None:
    """Reads the request, checks, and writes the result as a whole."""
    answer = check(json.loads(Path(request).read_text(encoding="utf-8")))
    loaded = sorted(name for name in OURS if name in sys.modules)
    if loaded:
        answer["failures"].append(f"it needed packages of the training side: {', '.join(loaded)}")
    temporary = f"{result}.tmp"
    Path(temporary).write_text(json.dumps(answer, ensure_ascii=False), encoding="utf-8")
    os.replace(temporary, result)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
