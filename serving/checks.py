"""Check an exported model as a model server would run it: in a process without Regard's other code.

An isolated interpreter runs this file as a script (``python -I serving/checks.py REQUEST RESULT``).
It imports this package and ``regard.core``, loads the SavedModel, runs real rows and compares the
outputs with earlier ones. Both files are JSON; see `check`.
"""

import json
import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

from typing_extensions import NotRequired, TypedDict

if __name__ == "__main__":
    # Make regard.serving and regard.core importable, and nothing else of Regard.
    _serving = Path(__file__).resolve().parent
    for _name, _path in (
        ("regard", []),
        ("regard.serving", [str(_serving)]),
        ("regard.core", [str(_serving.parent / "core")]),
    ):
        _package = ModuleType(_name)
        _package.__path__ = _path
        sys.modules[_name] = _package

from regard.core.processor import count_cores
from regard.serving import check_inputs, saved_model, supported_ops
from regard.serving.contract import DEFAULT_SIGNATURE, Contract, SavedModelError
from regard.serving.output_comparison import OutputComparison, Tolerances

MAX_FAILURES = 10
Outputs = Mapping[str, Any]


class CheckRequest(TypedDict):
    """What to check.

    ``model`` is the SavedModel's folder, ``servers`` are versions of TensorFlow Serving, ``rows``
    real rows with earlier outputs, and ``tolerances`` the allowed differences. ``has_long_row``
    says whether a row of very long texts is run, too, which is the default.
    """

    model: str
    servers: list[str]
    rows: list[check_inputs.RequestRow]
    tolerances: Tolerances
    has_long_row: NotRequired[bool]


class CheckResult(TypedDict, total=False):
    """The findings.

    ``failures`` are sentences. ``unsupported_ops`` lists for each server version its missing
    operations, each with a node that uses it. ``ties`` are differences between hypotheses of equal
    score, and ``refused`` the extreme rows that the model rejects.
    """

    failures: list[str]
    unsupported_ops: dict[str, dict[str, str]]
    load_seconds: float
    refused: list[str]
    rows: int
    ties: list[str]


def check(request: CheckRequest) -> CheckResult:
    """Run all checks on an exported model."""
    used = supported_ops.used_ops(request["model"])
    core = supported_ops.core_ops(used)
    result: CheckResult = {
        "failures": [],
        "unsupported_ops": {
            server: {op: used[op] for op in supported_ops.unsupported(used, core, server)}
            for server in request["servers"]
        },
    }
    started = time.monotonic()
    try:
        model = saved_model.load(request["model"], few_runs=True)
    except SavedModelError as error:
        result["failures"].append(str(error))
        return result
    result["load_seconds"] = round(time.monotonic() - started, 3)
    for name in _signature_order(model.contract):
        try:
            model.signature(name)
        except SavedModelError as error:
            result["failures"].append(str(error))
    if not result["failures"]:
        _check_outputs(model, request, result)
    result["failures"] = result["failures"][:MAX_FAILURES]
    return result


def _signature_order(contract: Contract) -> list[str]:
    """Return all signatures; later ones may take the outputs of the detail signature as input."""
    return list(dict.fromkeys([DEFAULT_SIGNATURE, contract["detail"], *contract["signatures"]]))


def _predict(
    model: saved_model.ServedModel, signature: str, rows: Sequence[check_inputs.CheckRow]
) -> tuple[list[Outputs], list[str]]:
    """Return the outputs of one batch, or the error."""
    try:
        predictions = model.predict(signature, [row.inputs for row in rows])
    except SavedModelError as error:
        return [], [str(error)]
    return [prediction.outputs for prediction in predictions], []


def _check_outputs(
    model: saved_model.ServedModel, request: CheckRequest, result: CheckResult
) -> None:
    """Compare the outputs of a batch, of single rows and of earlier runs."""
    contract = model.contract
    comparison = OutputComparison(contract, request["tolerances"])
    rows = [check_inputs.parse_row(row, contract) for row in request["rows"]]
    has_long_row = request.get("has_long_row", True)
    extremes = check_inputs.create_extreme_rows(rows, contract, has_long_row)
    # A model may reject long inputs; those cannot be in a batch with others.
    accepted = [row for row in extremes if not _rejects(model, row)]
    result["refused"] = [row.name for row in extremes if row not in accepted]
    rows += accepted
    failures = result["failures"]
    ties: list[str] = []
    outputs_by_signature: dict[str, list[Outputs]] = {}
    for signature in _signature_order(contract):
        detail = outputs_by_signature.get(contract["detail"], [])
        batch = check_inputs.rows_for_signature(signature, rows, detail, contract)
        batched, errors = _predict(model, signature, batch)
        failures += [f"{signature}: {text}" for text in errors]
        if errors:
            continue
        outputs_by_signature[signature] = batched
        entries = contract["signatures"][signature]["inputs"]
        repeated = {entry["name"]: entry["like"] for entry in entries if "like" in entry}
        with ThreadPoolExecutor(count_cores()) as pool:  # a single row keeps one core busy
            singles = list(
                pool.map(lambda row, name=signature: _predict(model, name, [row]), batch)
            )
        for row, outputs, (alone, errors) in zip(batch, batched, singles, strict=True):
            where = f"{signature}, {row.name} ({row.description})"
            all_outputs = {**{name: row.inputs[key] for key, name in repeated.items()}, **outputs}
            failures += [f"{where}: {text}" for text in comparison.find_invalid(all_outputs)]
            failures += [f"{where}, alone: {text}" for text in errors]
            pairs = [] if errors else [("in a batch", "alone", alone[0])]
            # Expected are the outputs of ``serving_default`` for a source that this one truncates.
            is_split = signature != DEFAULT_SIGNATURE and saved_model.splits_sentences(contract)
            if row.expected and not (is_split and outputs.get(contract["cut"] or "")):
                pairs.append(("now", row.expected_from, row.expected))
            for here, there, other in pairs:
                text, is_tie = comparison.compare(outputs, other)
                if text:
                    (ties if is_tie else failures).append(f"{where}: {here} and {there}: {text}")
    result["rows"] = len(rows)
    result["ties"] = ties
    # One row is compared several times; the limit is on rows.
    tied_rows = {row.name for row in rows if any(f", {row.name} (" in tie for tie in ties)}
    if len(tied_rows) > request["tolerances"]["ties"] * len(rows):
        failures.extend(ties)
    _check_scores(contract, rows, outputs_by_signature, comparison, result)


def _check_scores(
    contract: Contract,
    rows: Sequence[check_inputs.CheckRow],
    outputs: Mapping[str, Sequence[Outputs]],
    comparison: OutputComparison,
    result: CheckResult,
) -> None:
    """Compare the score of each hypothesis with the score that the search gave it.

    A hypothesis that the tokenizer splits into other tokens is not compared.
    """
    scored, detail, score = contract["scored"] or "", contract["detail"], contract["score"]
    if scored not in outputs or detail not in outputs or score is None:
        return
    tokens = contract["looks"]["rows"] if contract["looks"] else None
    for row, rescored, searched in zip(rows, outputs[scored], outputs[detail], strict=True):
        if tokens and tokens in rescored and rescored[tokens] != searched[tokens]:
            continue
        if math.isnan(searched[score]):  # of an empty hypothesis for a blank input
            continue
        text, _ = comparison.compare({score: rescored[score]}, {score: searched[score]})
        if text:
            where = f"{scored}, {row.name} ({row.description})"
            result["failures"].append(f"{where}: rescored and from the search: {text}")


def _rejects(model: saved_model.ServedModel, row: check_inputs.CheckRow) -> bool:
    try:
        model.predict(DEFAULT_SIGNATURE, [row.inputs])
    except saved_model.InputLengthError:
        return True
    except SavedModelError:
        return False  # reported when the row runs in the batch
    return False


def main(request: str, result: str) -> None:
    """Read the request, run the checks, and write the result atomically."""
    findings = check(json.loads(Path(request).read_text(encoding="utf-8")))
    temporary = f"{result}.tmp"
    Path(temporary).write_text(json.dumps(findings, ensure_ascii=False), encoding="utf-8")
    os.replace(temporary, result)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
    sys.stdout.flush()
    sys.stderr.flush()
    # Skip the interpreter's shutdown, which would destroy all of TensorFlow's objects.
    os._exit(0)
