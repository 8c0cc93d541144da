"""The Pusher's work: obey the blessings, push, and say where the model is."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfx.components.util import model_utils
from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact
from tfx.utils import path_utils

from components import events, parameters, profiles, provenance
from components.errors import UserError
from components.files import atomic_write
from components.pusher.push import push
from components.registry import PROFILE, Registry, read_record
from components.registry.publishing import Withdrawn
from serving import warmup
from serving.saved_model import IDENTIFIER

NODE = "Pusher"
RESULT = "pushed.json"


class PusherExecutor(BaseExecutor):
    """Pushes a blessed model; marks the artifact as TFX's Pusher does, and why."""

    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Pushes or marks not pushed.

        Raises:
            UserError: if the registry cannot be written.
        """
        pushed = artifact_utils.get_single_instance(output_dict["pushed_model"])
        blessing = artifact_utils.get_single_instance(input_dict["model_blessing"])
        infra = artifact_utils.get_single_instance(input_dict["infra_blessing"])
        sentence = _sentence(blessing)
        if not model_utils.is_model_blessed(blessing):
            _finish(pushed, None, f"Not pushed. {sentence}")
            return
        if not model_utils.is_infra_validated(infra):
            _finish(pushed, None, "Not pushed. The serving check did not pass.")
            return

        model = artifact_utils.get_single_instance(input_dict["model"])
        evaluation = Path(artifact_utils.get_single_uri(input_dict["evaluation"]))
        corpus = Path(artifact_utils.get_single_uri(input_dict["corpus"]))
        registry, name = Path(exec_properties["registry"]), exec_properties["name"]
        identifier = str(uuid.uuid4())
        record = {
            **_recorded(exec_properties),
            **_evaluation(evaluation),
            **_corpus(corpus),
            "blessing": sentence,
            "regard": provenance.code_version(),
            "stack": provenance.stack_versions(),
            "mlmd_uuid": identifier,
        }
        # Not among the execution's properties: by those the next run would miss the cache.
        if self._context is not None and self._context.pipeline_run_id:
            record["run"] = self._context.pipeline_run_id
        requests = Path(infra.uri) / Path(warmup.FILE).name
        extra = {IDENTIFIER: identifier.encode()}
        if requests.exists():
            extra[warmup.FILE] = requests.read_bytes()
        profile = Path(artifact_utils.get_single_uri(input_dict["findings"])) / profiles.FILE
        extra[PROFILE] = profile.read_bytes()
        source = Path(path_utils.serving_model_path(model.uri))
        try:
            number, new = push(source, registry, name, record, exec_properties["code"], extra)
        except Withdrawn as error:
            told = f"Not pushed. It is the model of {name}@{error.version}, which production was "
            told += "rolled back from"
            if error.version in Registry(registry).versions(name):
                told += f"; `regard rollback {name} {error.version}` brings it back"
            _finish(pushed, None, f"{told}.")
            return
        except OSError as error:
            raise UserError(
                f"the model cannot be pushed: {error.strerror or error}",
                where=str(error.filename or registry),
                remedy="Make the registry a folder you can write to, with room for the model,"
                " or set serving.registry; then run again: finished nodes are not repeated.",
            ) from error
        destination = registry / name / str(number)
        text = f"Pushed as {name}@{number}: {destination}"
        if not new:
            # Who pushed it may have been killed before ML Metadata heard of it.
            identifier = read_record(destination).get("mlmd_uuid", "")
            text = f"{name}@{number} is this same model already: {destination}"
        if identifier:
            # By this, the server's own name for it, the artifact is found in ML Metadata.
            pushed.set_string_custom_property("mlmd_uuid", identifier)
        _finish(pushed, destination, text)


def _finish(pushed: Artifact, destination: Path | None, text: str) -> None:
    """Marks the artifact with the properties of TFX's Pusher, and tells the user."""
    pushed.set_int_custom_property("pushed", 0 if destination is None else 1)
    result: dict[str, Any] = {"pushed": destination is not None, "text": text}
    if destination is not None:
        pushed.set_string_custom_property("pushed_destination", str(destination))
        pushed.set_string_custom_property("pushed_version", destination.name)
        result.update(path=str(destination), version=int(destination.name))
    content = json.dumps(result, indent=2, ensure_ascii=False) + "\n"
    atomic_write(Path(pushed.uri) / RESULT, content)
    events.emit("note", node=NODE, text=text)


def _sentence(blessing: Artifact) -> str:
    path = Path(blessing.uri) / "blessing.json"
    if not path.exists():
        return ""
    return json.loads(path.read_text(encoding="utf-8"))["sentence"]


def _recorded(exec_properties: Mapping[str, Any]) -> dict[str, Any]:
    """What was known when the graph was made, with what this run has set anew."""
    record = json.loads(exec_properties["record"])
    if "config" in record:
        record["config"] = parameters.applied(record["config"], exec_properties)
    return record


def _evaluation(folder: Path) -> dict[str, Any]:
    """What is kept of the Evaluator's ``metrics.json``.

    Value and signature of each metric; and the version that it was compared with, where it was:
    what the graph knew of that, which could not be decoded or was the newest of then, stands else.
    """
    path = folder / "metrics.json"
    if not path.exists():
        return {}
    found = json.loads(path.read_text(encoding="utf-8"))
    beside = (found["production"] or {}).get("version")
    return {
        "metrics": {
            name: {"value": metric["value"], "signature": metric["signature"]}
            for name, metric in found["metrics"].items()
        },
        **({"compared_with": beside} if beside else {}),
    }


def _corpus(folder: Path) -> dict[str, Any]:
    """What is kept of CorpusGen's ``corpus.json``: fingerprint, rows of each split, and spans."""
    path = folder / "corpus.json"
    if not path.exists():
        return {}
    found = json.loads(path.read_text(encoding="utf-8"))
    kept = {"fingerprint": "data_fingerprint", "rows": "rows", "spans": "spans"}
    return {name: found[key] for key, name in kept.items() if key in found}
