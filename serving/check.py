"""Checks an exported model as a model server would meet it: alone.

Run as a script by an isolated interpreter (``python -I serving/check.py REQUEST RESULT``) it
imports TensorFlow and TensorFlow Text and nothing else, loads the SavedModel, sends it real rows
and compares the answers with those that were kept. Both files are JSON; see `check`.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import math
import os
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

OURS = ("pipeline", "components", "models", "serving")
LONG_CHARACTERS = 5000
MOST_FAILURES = 10


def check(request: dict[str, Any]) -> dict[str, Any]:
    """Runs every check and says what failed.

    Args:
        request: ``model`` (a SavedModel's folder), ``servers`` (versions of TensorFlow Serving),
            ``rows`` (each ``row``, ``source``, ``hypothesis``, ``score``, ``source_pieces``,
            ``target_pieces``, ``alignment``) and ``tolerances`` (``score_absolute``,
            ``score_relative``, ``alignment``, ``ties``: the share of rows where a hypothesis of
            equal score may stand in for another).

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
    loaded = saved_model.load(model)
    result["load_seconds"] = round(time.monotonic() - started, 3)
    functions = {}
    for name in saved_model.SIGNATURES:
        try:
            functions[name] = saved_model.signature(loaded, name)
        except saved_model.SavedModelError as error:
            result["failures"].append(str(error))
    if not result["failures"]:
        _check_answers(saved_model, functions, request, result)
    result["failures"] = result["failures"][:MOST_FAILURES]
    return result


def _check_answers(
    saved_model: ModuleType,
    functions: dict[str, Any],
    request: dict[str, Any],
    result: dict[str, Any],
) -> None:
    def ask(function: Any, sources: list[str]) -> tuple[list[dict[str, Any]], list[str]]:
        try:
            return [_kept(answer) for answer in saved_model.ask(function, sources)], []
        except saved_model.SavedModelError as error:
            return [], [str(error)]

    rows, limits = request["rows"], request["tolerances"]
    sources = [row["source"] for row in rows] + ["", long_source(rows)]
    names = [f"row {row['row']}" for row in rows] + ["the empty row", "the long row"]
    started = time.monotonic()
    ask(functions["serving_default"], sources[:1])
    result["first_answer_seconds"] = round(time.monotonic() - started, 3)
    failures: list[str] = result["failures"]
    ties: list[str] = []
    for signature, function in functions.items():
        batched, wrong = ask(function, sources)
        failures += [f"{signature}: {text}" for text in wrong]
        if wrong:
            continue
        for index, source in enumerate(sources):
            what = f"{signature}, {names[index]} ({_short(source)!r})"
            if not math.isfinite(batched[index]["score"]):
                failures.append(f"{what}: the score is {batched[index]['score']}")
            alone, wrong = ask(function, [source])
            failures += [f"{what}, alone: {text}" for text in wrong]
            pairs = [] if wrong else [("in a batch", "alone", alone[0])]
            if index < len(rows):
                pairs.append(("now", "of the Predictor", rows[index]))
            for here, there, other in pairs:
                text, tie = difference(batched[index], other, limits)
                if text:
                    (ties if tie else failures).append(f"{what}: {here} and {there}: {text}")
    result["rows"] = len(sources)
    result["ties"] = ties
    # The same row is compared four times at most; what counts is how many rows are concerned.
    concerned = {name for name in names if any(f"{name} (" in tie for tie in ties)}
    if len(concerned) > limits["ties"] * len(sources):
        failures.extend(ties)


def long_source(rows: list[dict[str, Any]]) -> str:
    """Real sources, strung together to a line far longer than any model is trained on."""
    text = " ".join(row["source"] for row in rows) or "a"
    return (f"{text} " * (LONG_CHARACTERS // len(text) + 1))[:LONG_CHARACTERS].strip()


def difference(
    got: dict[str, Any], want: dict[str, Any], limits: dict[str, float]
) -> tuple[str, bool]:
    """How two answers differ, in words; empty if they do not.

    Also says whether it is a tie: two hypotheses between which the model does not decide, so
    that rounding does.
    """
    scores = got["score"], want["score"]
    allowed = max(limits["score_absolute"], limits["score_relative"] * abs(scores[1]))
    close = abs(scores[0] - scores[1]) <= allowed
    if got["hypothesis"] != want["hypothesis"]:
        text = f"{got['hypothesis']!r} ({scores[0]:.5f}), {want['hypothesis']!r} ({scores[1]:.5f})"
        return f"the translations differ: {text}", close
    if not close:
        return f"the scores differ: {scores[0]:.6f} and {scores[1]:.6f}", False
    if "alignment" not in got:
        return "", False
    for key in ("source_pieces", "target_pieces"):
        if got[key] != want[key]:
            return f"the {key} differ: {got[key]} and {want[key]}", False
    return _alignment_difference(got["alignment"], want["alignment"], limits["alignment"]), False


def _alignment_difference(got: Any, want: Any, limit: float) -> str:
    import numpy as np

    weights, others = np.asarray(got), np.asarray(want)
    if weights.size == others.size == 0:  # nested lists lose the width of no rows
        return ""
    if weights.shape != others.shape:
        return f"the alignments' shapes differ: {weights.shape} and {others.shape}"
    worst = float(np.abs(weights - others).max(initial=0.0))
    # Not "worst > limit", which is also false for a weight that is not a number.
    return "" if worst <= limit else f"the alignments differ by {worst:.6f}"


def _kept(answer: Any) -> dict[str, Any]:
    """An answer as the Predictor's rows have it."""
    fields = dataclasses.asdict(answer)
    if fields["alignment"] is None:
        return {name: fields[name] for name in ("hypothesis", "score")}
    return fields


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
