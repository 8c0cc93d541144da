"""Checks an exported model as a model server would meet it: alone.

Run as a script by an isolated interpreter (``python -I serving/check.py REQUEST RESULT``) it
imports TensorFlow and TensorFlow Text and nothing else, loads the SavedModel, sends it real rows
and compares the answers with those that were kept. Both files are JSON; see `check`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

OURS = ("pipeline", "components", "models", "serving")
DEFAULT = "serving_default"
MOST_FAILURES = 10


def check(request: dict[str, Any]) -> dict[str, Any]:
    """Runs every check and says what failed.

    Args:
        request: ``model`` (a SavedModel's folder), ``servers`` (versions of TensorFlow Serving),
            ``rows`` (each ``row``, its number; ``inputs``, by name, images in base64; ``shown``,
            the inputs for people; ``answer``, the outputs that were kept, by name; ``kept_by``,
            whose they are, by default the Predictor's) and ``tolerances`` (``absolute`` and
            ``relative`` of a number, ``array`` of the numbers in an array, ``ties``: the share of
            rows where an answer of equal score may stand in for another).

    Returns:
        ``failures`` (a list of sentences), ``unsupported_ops`` by server version, each with
        a node that has it, and what was measured.
    """
    model = request["model"]
    ops, saved_model = _sibling("ops"), _sibling("saved_model")
    uncollected = _sibling("importing").uncollected
    with uncollected():
        import tensorflow as tf

    # In this order: what is registered before TensorFlow Text is imported is TensorFlow's own.
    used = ops.used_ops(model)
    core = ops.core_ops(used)
    with uncollected():
        import tensorflow_text

    result: dict[str, Any] = {
        "failures": [],
        "unsupported_ops": {
            server: {op: used[op] for op in ops.unsupported(used, core, server)}
            for server in request["servers"]
        },
        "ops": len(used),
        "text_ops": sorted(set(used) - core),
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
    def ask(signature: str, asked: list[Any]) -> tuple[list[dict[str, Any]], list[str]]:
        try:
            answers = model.ask(signature, [question.inputs for question in asked])
            return [dict(answer.outputs) for answer in answers], []
        except saved_model.SavedModelError as error:
            return [], [str(error)]

    limits = request["tolerances"]
    comparison = _sibling("comparison").Comparison(model.contract, limits)
    kinds = _sibling("questions")
    questions = [kinds.question(row, model.contract) for row in request["rows"]]
    extremes = kinds.unusual(questions, model.contract)
    started = time.monotonic()
    ask(DEFAULT, (questions or extremes)[:1])
    result["first_answer_seconds"] = round(time.monotonic() - started, 3)
    # A model may be told to refuse what is too long; it then cannot be asked that beside others.
    taken = [one for one in extremes if not _refuses(saved_model, model, one)]
    result["refused"] = [one.name for one in extremes if one not in taken]
    questions += taken
    failures: list[str] = result["failures"]
    ties: list[str] = []
    answered: dict[str, list[dict[str, Any]]] = {}
    # Some are asked about the answers of the one that tells most.
    first = [DEFAULT, model.contract["detail"]]
    for signature in dict.fromkeys([*first, *model.contract["signatures"]]):
        told = answered.get(model.contract["detail"], [])
        few = kinds.asked_of(signature, questions, model.contract)
        asked = kinds.about(few, told, model.contract["signatures"][signature]["inputs"])
        batched, wrong = ask(signature, asked)
        failures += [f"{signature}: {text}" for text in wrong]
        if wrong:
            continue
        answered[signature] = batched
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # one row keeps one core busy
            each = list(pool.map(lambda one, name=signature: ask(name, [one]), asked))
        for question, answer, (alone, wrong) in zip(asked, batched, each, strict=True):
            what = f"{signature}, {question.name} ({question.shown})"
            failures += [f"{what}: {text}" for text in comparison.impossible(answer)]
            failures += [f"{what}, alone: {text}" for text in wrong]
            pairs = [] if wrong else [("in a batch", "alone", alone[0])]
            if question.kept:
                pairs.append(("now", question.kept_by, question.kept))
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
    _check_scores(model.contract, questions, answered, comparison, result)


def _check_scores(
    contract: dict[str, Any],
    questions: list[Any],
    answered: dict[str, list[dict[str, Any]]],
    comparison: Any,
    result: dict[str, Any],
) -> None:
    """The score of an answer is the one that the search gave it.

    A text that the tokenizer now cuts into other pieces than it was written in is another
    hypothesis, and is only counted: as ``respelt``.
    """
    scored, detail = contract["scored"], contract["detail"]
    if scored not in answered or detail not in answered:
        return
    pieces = (contract["looks"] or {}).get("rows")
    result["respelt"] = 0
    for question, now, then in zip(questions, answered[scored], answered[detail], strict=True):
        if pieces in now and now[pieces] != then[pieces]:
            result["respelt"] += 1
            continue
        name = contract["score"]
        text, _ = comparison.difference({name: now[name]}, {name: then[name]})
        if text:
            what = f"{scored}, {question.name} ({question.shown})"
            result["failures"].append(f"{what}: of the answer and of the search: {text}")


def _refuses(saved_model: ModuleType, model: Any, question: Any) -> bool:
    try:
        model.ask(DEFAULT, [question.inputs])
    except saved_model.SourceRefused:
        return True
    except saved_model.SavedModelError:
        return False  # it is asked again, and then told
    return False


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
    sys.stdout.flush()
    sys.stderr.flush()
    # Without the interpreter's own end, which takes apart all that TensorFlow has made.
    os._exit(0)
