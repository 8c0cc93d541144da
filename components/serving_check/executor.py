"""The ServingCheck's executor: checks the export in a fresh process, and blesses it or fails."""

import base64
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact
from tfx.utils import path_utils

from regard.components.common import prediction_table
from regard.components.common.artifact_files import examples_split
from regard.components.common.artifact_types import Artifacts, Properties
from regard.components.predictor.split_reader import read_images
from regard.core import events
from regard.core.errors import UserError
from regard.core.files import atomic_write, write_json
from regard.serving import checks, supported_ops, warmup_requests
from regard.serving.check_inputs import RequestRow, parse_row
from regard.serving.checks import CheckRequest, CheckResult
from regard.serving.contract import IN_MEMORY, WARMUP, Contract, input_kinds, text_inputs
from regard.serving.output_comparison import Tolerances

NODE = "ServingCheck"
RESULT = "serving_check.json"
# The names of TFX's InfraValidator, which TFX's Pusher expects.
BLESSED_FILE = "INFRA_BLESSED"
BLESSED_PROPERTY = "blessed"

TOLERANCES: Tolerances = {"absolute": 1e-3, "relative": 1e-4, "array": 1e-3, "ties": 1 / 16}
# The check runs on the CPU. An accelerator multiplies matrices in lower precision (TF32 has ten
# bits of mantissa), so that its outputs agree only to about three digits.
TOLERANCES_ACCELERATOR: Tolerances = {
    "absolute": 5e-2,
    "relative": 1e-2,
    "array": 5e-2,
    "ties": 1 / 4,
}
_MAX_LOG_LINES = 15
TIMEOUT_SECONDS = 900


class ServingCheckExecutor(BaseExecutor):
    """Writes ``serving_check.json``, warm-up requests and a blessing in TFX's form, or fails."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Properties
    ) -> None:
        """Check the export.

        Raises:
            UserError: a configured version of TensorFlow Serving cannot run the model.
            RuntimeError: the export is wrong; the message names the row and the values.
        """
        model = artifact_utils.get_single_instance(input_dict["model"])
        examples = artifact_utils.get_single_instance(input_dict["examples"])
        predictions = Path(artifact_utils.get_single_uri(input_dict["predictions"]))
        blessing = artifact_utils.get_single_instance(output_dict["blessing"])
        servers = json.loads(exec_properties["tf_serving_versions"])
        _validate_versions(servers)
        summary = prediction_table.read_summary(predictions)
        contract = summary["contract"]
        rows = sample_rows(predictions, examples, int(exec_properties["rows"]))
        # The process has another working directory.
        exported = os.path.abspath(path_utils.serving_model_path(model.uri))
        trainer_rows = exported_rows(Path(exported), contract)
        request: CheckRequest = {
            "model": exported,
            "servers": servers,
            "rows": [*rows, *trainer_rows],
            "tolerances": _tolerances(summary.get("device", "CPU"), trainer_rows),
        }
        result = run_check(request)
        write_json(Path(blessing.uri) / RESULT, result)
        raise_failures(result)
        for tie in result["ties"]:
            events.emit("warning", node=NODE, text=f"Rounding decided a near tie: {tie}")
        check_rows = [parse_row(row, contract) for row in rows]
        warmup_file = Path(blessing.uri) / Path(WARMUP).name
        warmup_requests.write(warmup_file, contract, check_rows)
        atomic_write(Path(blessing.uri) / BLESSED_FILE, "")
        blessing.set_int_custom_property(BLESSED_PROPERTY, 1)
        text = (
            f"{result['rows']} rows reproduced in a fresh process, loaded in"
            f" {result['load_seconds']:.1f} s; TensorFlow Serving {', '.join(servers)} has all"
            " operations"
        )
        events.emit("progress", node=NODE, text=text, fraction=1.0)


def run_check(request: CheckRequest) -> CheckResult:
    """Run ``serving/checks.py`` in a new, isolated interpreter.

    With ``-I`` the interpreter sees installed packages, but neither the working directory nor
    ``PYTHONPATH``.

    Raises:
        RuntimeError: the process fails, or takes longer than `TIMEOUT_SECONDS`.
    """
    with tempfile.TemporaryDirectory(prefix="regard-serving-check-") as folder:
        request_file, result_file = Path(folder) / "request.json", Path(folder) / "result.json"
        request_file.write_text(json.dumps(request, ensure_ascii=False), encoding="utf-8")
        command = [sys.executable, "-I", str(Path(checks.__file__))]
        try:
            process = subprocess.run(
                [*command, str(request_file), str(result_file)],
                cwd=folder,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=TIMEOUT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise RuntimeError(
                f"the exported model was not loaded and checked within {TIMEOUT_SECONDS} s"
                f" in a fresh process{_last_lines(error.stderr)}"
            ) from error
        if process.returncode or not result_file.exists():
            raise RuntimeError(
                f"the fresh process that loads the exported model ended with status"
                f" {process.returncode}{_last_lines(process.stderr)}"
            )
        return json.loads(result_file.read_text(encoding="utf-8"))


def _environment() -> dict[str, str]:
    environment = dict(os.environ)
    environment.pop(events.VARIABLE, None)
    environment["TF_CPP_MIN_LOG_LEVEL"] = "2"
    # This process may hold all memory of the accelerator, and most servers have none.
    environment["CUDA_VISIBLE_DEVICES"] = "-1"
    return environment


def _last_lines(output: bytes | None) -> str:
    lines = (output or b"").decode("utf-8", errors="replace").strip().splitlines()
    return ":\n" + "\n".join(lines[-_MAX_LOG_LINES:]) if lines else ""


def _validate_versions(servers: Sequence[str]) -> None:
    for server in servers:
        try:
            supported_ops.text_ops(server)
        except ValueError as error:
            raise UserError(str(error), where="serving.tf_serving_versions") from error


def _tolerances(predictor_device: str, trainer_rows: Sequence[RequestRow]) -> Tolerances:
    """Return the tolerances for the devices of the Predictor and the Trainer."""
    devices = {predictor_device, *(row["device"] for row in trainer_rows)}
    return TOLERANCES if devices == {"CPU"} else TOLERANCES_ACCELERATOR


def raise_failures(result: CheckResult) -> None:
    """Raise an error for the first kind of failures of a check.

    Raises:
        UserError: a configured version of TensorFlow Serving cannot run the model.
        RuntimeError: the export is wrong; the message names the row and the values.
    """
    if result["failures"]:
        failures = "\n  ".join(result["failures"])
        raise RuntimeError(f"the exported model failed the serving check:\n  {failures}")
    for server, missing in result["unsupported_ops"].items():
        if missing:
            operations = ", ".join(f"{op} (node {node})" for op, node in missing.items())
            raise UserError(
                f"TensorFlow Serving {server} cannot run the exported model: it lacks the operation"
                f" {operations}",
                where="serving.tf_serving_versions",
                remedy=f"Remove {server} from serving.tf_serving_versions, and use a newer server.",
            )


def sample_rows(predictions: Path, examples: Artifact, count: int) -> list[RequestRow]:
    """Return rows of all lengths, including the shortest and the longest.

    Args:
        predictions: the folder of the Predictor.
        examples: the examples of the predictions, which contain the images.
        count: the maximum number of rows.
    """
    summary = prediction_table.read_summary(predictions)
    contract = summary["contract"]
    table = predictions / prediction_table.CANDIDATE
    indices = _sample_by_length(_lengths(table, contract), count)
    rows = prediction_table.rows_at(table, indices)
    names = [name for name, kind in input_kinds(contract).items() if kind.names_file]
    images: dict[int, dict[str, bytes]] = {}
    if names:
        images = read_images(examples_split(examples, summary["split"]), names, indices)
    return [_request_row(row, contract, images.get(row["row"], {})) for row in rows]


def exported_rows(model: Path, contract: Contract) -> list[RequestRow]:
    """Return the rows that the Trainer stored with a model, with its outputs before the export.

    Args:
        model: the SavedModel's folder.
        contract: the model's contract.
    """
    kinds = input_kinds(contract)
    file = model / IN_MEMORY
    if not file.exists():
        return []
    return [
        {
            "row": f"{number} of the Trainer",
            "inputs": row["inputs"],
            "description": ", ".join(
                kinds[key].summarize(value) for key, value in row["inputs"].items()
            ),
            "answer": row["answer"],
            "kept_by": "in memory",
            "device": row["device"],
        }
        for number, row in enumerate(json.loads(file.read_text(encoding="utf-8")))
    ]


def _request_row(
    row: Mapping[str, Any], contract: Contract, images: Mapping[str, bytes]
) -> RequestRow:
    kinds = input_kinds(contract)
    inputs = {name: row[name] for name in kinds}
    inputs |= {name: base64.b64encode(image).decode("ascii") for name, image in images.items()}
    outputs = contract["signatures"][contract["detail"]]["outputs"]
    expected = {name: row[name] for name in outputs if name in row}
    expected[contract["answer"]] = row["hypothesis"]
    if contract["score"] is not None:
        expected[contract["score"]] = row["score"]
    description = ", ".join(kind.summarize(row[name]) for name, kind in kinds.items())
    return {"row": row["row"], "inputs": inputs, "description": description, "answer": expected}


def _lengths(table: Path, contract: Contract) -> list[int]:
    """Return the size of each row; without a size, the characters of its texts."""
    if contract["size"]:
        return prediction_table.read(table, ["size"])["size"]
    texts = text_inputs(contract)
    columns = prediction_table.read(table, ["row", *texts])
    rows = range(len(columns["row"]))
    return [sum(len(columns[name][row]) for name in texts) for row in rows]


def _sample_by_length(lengths: list[int], count: int) -> list[int]:
    """Return row indices spread evenly over the order by length."""
    order = sorted(range(len(lengths)), key=lambda row: (lengths[row], row))
    if len(order) <= count:
        return order
    step = (len(order) - 1) / max(1, count - 1)
    return [order[round(index * step)] for index in range(count)]
