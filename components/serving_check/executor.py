"""The ServingCheck's work: choose rows, have them checked, and bless or fail."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact
from tfx.utils import path_utils

from components import events, predictions
from components.errors import UserError
from components.files import atomic_write
from components.serving_check.process import run_check
from components.serving_check.questions import in_memory, questions
from serving import ops, warmup
from serving.questions import question

NODE = "ServingCheck"
RESULT = "serving_check.json"
# The names that TFX's InfraValidator uses and its Pusher looks for.
BLESSED_FILE = "INFRA_BLESSED"
BLESSED_PROPERTY = "blessed"

TOLERANCES = {"absolute": 1e-3, "relative": 1e-4, "array": 1e-3, "ties": 1 / 16}
# The check runs on the CPU. An accelerator multiplies matrices in lower precision (TF32 has ten
# bits of mantissa), so its answers are the same only to about three digits.
TOLERANCES_ACCELERATOR = {"absolute": 5e-2, "relative": 1e-2, "array": 5e-2, "ties": 1 / 4}


class ServingCheckExecutor(BaseExecutor):
    """Writes ``serving_check.json``, warm-up requests and the blessing in TFX's form, or fails."""

    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Checks the export.

        Raises:
            UserError: if a server version that the configuration names could not run the model.
            RuntimeError: if the export is wrong: it names the row and the values that differ.
        """
        model = artifact_utils.get_single_instance(input_dict["model"])
        examples = artifact_utils.get_single_instance(input_dict["examples"])
        answers = Path(artifact_utils.get_single_uri(input_dict["predictions"]))
        blessing = artifact_utils.get_single_instance(output_dict["blessing"])
        servers = json.loads(exec_properties["tf_serving"])
        _check_versions(servers)
        contract = predictions.read_summary(answers)["contract"]
        rows = questions(answers, examples, int(exec_properties["rows"]))
        exported = path_utils.serving_model_path(model.uri)
        trained = in_memory(Path(exported), contract)
        request = {
            "model": exported,
            "servers": servers,
            "rows": [*rows, *trained],
            "tolerances": _tolerances(answers, trained),
        }
        result = run_check(request, int(exec_properties["timeout_seconds"]))
        text = json.dumps(result, indent=2, ensure_ascii=False) + "\n"
        atomic_write(Path(blessing.uri) / RESULT, text)
        _raise_failures(result)
        for tie in result["ties"]:
            events.emit("warning", node=NODE, text=f"a near tie was decided by rounding: {tie}")
        warm = [question(row, contract) for row in rows]
        warmup.write(Path(blessing.uri) / Path(warmup.FILE).name, contract, warm)
        atomic_write(Path(blessing.uri) / BLESSED_FILE, "")
        blessing.set_int_custom_property(BLESSED_PROPERTY, 1)
        events.emit("progress", node=NODE, text=_success(result, servers), fraction=1.0)


def _check_versions(servers: list[str]) -> None:
    for server in servers:
        try:
            ops.text_ops(server)
        except ValueError as error:
            raise UserError(str(error), where="serving.tf_serving") from error


def _tolerances(answers: Path, trained: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """By where the Predictor and the Trainer answered: the check itself is on a CPU."""
    devices = {predictions.read_summary(answers).get("device", "CPU")}
    devices |= {row["device"] for row in trained}
    return TOLERANCES if devices == {"CPU"} else TOLERANCES_ACCELERATOR


def _raise_failures(result: dict[str, Any]) -> None:
    if result["failures"]:
        failures = "\n  ".join(result["failures"])
        raise RuntimeError(f"the exported model failed the serving check:\n  {failures}")
    for server, missing in result["unsupported_ops"].items():
        if missing:
            told = ", ".join(f"{op} (node {node})" for op, node in missing.items())
            raise UserError(
                f"TensorFlow Serving {server} cannot run the exported model: it has no operation"
                f" {told}",
                where="serving.tf_serving",
                remedy=f"Leave {server} out of serving.tf_serving, and serve with a newer one.",
            )


def _success(result: dict[str, Any], servers: list[str]) -> str:
    return (
        f"{result['rows']} rows answered alike in a fresh process, loaded in"
        f" {result['load_seconds']:.1f} s; operations fit TensorFlow Serving {', '.join(servers)}"
    )
