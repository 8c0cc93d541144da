"""The Pusher's executor: checks the blessings, pushes the model, and records its path."""

import json
import re
from pathlib import Path

from tfx.components.util import model_utils
from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact
from tfx.utils import path_utils

from regard.components.common import runtime_parameters
from regard.components.common.artifact_types import Artifacts, Properties
from regard.components.data.profiles import PROFILE_FILE
from regard.components.evaluator.results import Decision, Evaluation
from regard.components.registry import records
from regard.components.registry.publish import WithdrawnModelError, push
from regard.components.registry.store import Registry
from regard.core import events, provenance
from regard.core.errors import EnvironmentFault
from regard.serving.contract import PROFILE, WARMUP

NODE = "Pusher"


class PusherExecutor(BaseExecutor):
    """Pushes a blessed model, and marks the artifact as TFX's Pusher does, with the reason."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Properties
    ) -> None:
        """Push the model, or mark it as not pushed.

        Raises:
            UserError: the registry cannot be written.
        """
        pushed = artifact_utils.get_single_instance(output_dict["pushed_model"])
        blessing = artifact_utils.get_single_instance(input_dict["model_blessing"])
        infra = _optional(input_dict, "infra_blessing")
        decision = Decision.read(Path(blessing.uri))
        sentence = decision.sentence if decision else ""
        if not model_utils.is_model_blessed(blessing):
            if not exec_properties["publish_anyway"]:
                _finish(pushed, None, f"Not pushed. {sentence}")
                return
            sentence += " Published with --publish-anyway."
        own = _optional(input_dict, "own_blessing")
        if own is not None and not model_utils.is_model_blessed(own):
            if not exec_properties["publish_anyway"]:
                reason = own.get_string_custom_property("reason")
                _finish(pushed, None, f"Not pushed. {reason or 'It has no blessing of your own.'}")
                return
            sentence += " Published with --publish-anyway."
        if infra is not None and not model_utils.is_infra_validated(infra):
            _finish(pushed, None, "Not pushed. The serving check failed.")
            return

        model = artifact_utils.get_single_instance(input_dict["model"])
        registry, name = Path(exec_properties["registry"]), exec_properties["name"]
        record = _record(input_dict, exec_properties).model_copy(update={"blessing": sentence})
        # The run's id is not an execution property, because it would change the cache key.
        if self._context is not None and self._context.pipeline_run_id:
            run = self._context.pipeline_run_id
            # In a shared database of ML Metadata, the id is a part of NAME.ID.RANDOM.
            if match := re.fullmatch(rf"{re.escape(name)}\.([\d-]+)\.[0-9a-f]+", run):
                run = match[1]
            record = record.model_copy(update={"run": run})
        extra_files = {}
        if infra is not None and (requests := Path(infra.uri) / Path(WARMUP).name).exists():
            extra_files[WARMUP] = requests.read_bytes()
        if (checks := _optional(input_dict, "findings")) is not None:
            extra_files[PROFILE] = (Path(checks.uri) / PROFILE_FILE).read_bytes()
        source = Path(path_utils.serving_model_path(model.uri))
        try:
            number, is_new = push(source, registry, name, record, extra_files)
        except WithdrawnModelError as error:
            text = f"Not pushed. Production was rolled back from this model, {name}@{error.version}"
            if error.version in Registry(registry).versions(name):
                text += f"; `regard rollback {name} {error.version}` restores it"
            _finish(pushed, None, f"{text}.")
            return
        except OSError as error:
            raise EnvironmentFault(
                f"The model cannot be pushed: {error.strerror or error}",
                where=str(error.filename or registry),
                remedy="Make the registry a writable folder with room for the model, or set"
                " serving.registry. Then run again: finished nodes are not repeated.",
            ) from error
        destination = registry / name / str(number)
        location = Registry(registry).location(name, str(number))
        if is_new:
            _finish(pushed, destination, f"Pushed as {name}@{number}: {location}")
        else:  # a note, since the summary of the run does not contain it
            text = f"{name}@{number} is this same model already: {location}"
            _finish(pushed, destination, text, "note")


def _optional(input_dict: Artifacts, name: str) -> Artifact | None:
    """Return an input; None if the component was created without it."""
    artifacts = input_dict.get(name)
    return artifact_utils.get_single_instance(artifacts) if artifacts else None


def _finish(
    pushed: Artifact, destination: Path | None, text: str, event_kind: str = "result"
) -> None:
    """Mark the artifact with the properties of TFX's Pusher, and report the result."""
    pushed.set_int_custom_property("pushed", 0 if destination is None else 1)
    result = records.PushResult(pushed=False, text=text)
    if destination is not None:
        path, version = str(destination), destination.name
        result = records.PushResult(pushed=True, text=text, path=path, version=int(version))
        pushed.set_string_custom_property("pushed_destination", path)
        pushed.set_string_custom_property("pushed_version", version)
    result.write(Path(pushed.uri))
    events.emit(event_kind, node=NODE, text=text)


def _record(input_dict: Artifacts, exec_properties: Properties) -> records.VersionRecord:
    """Combine the record that the graph knows with the results of this run."""
    fields = json.loads(exec_properties["record"])
    fields["config"] = runtime_parameters.apply_parameters(fields["config"], exec_properties)
    if (corpus := _optional(input_dict, "corpus")) is not None:
        findings = json.loads((Path(corpus.uri) / "corpus.json").read_text(encoding="utf-8"))
        keys = {"fingerprint": "data_fingerprint", "rows": "rows", "spans": "spans"}
        fields |= {name: findings[key] for key, name in keys.items() if key in findings}
    model = artifact_utils.get_single_instance(input_dict["model"])
    if start := model.get_string_custom_property(records.WARM_START):
        fields[records.WARM_START] = json.loads(start)
    fields["code"] = exec_properties["code"]
    fields["regard"], fields["stack"] = provenance.code_version(), provenance.stack_versions()
    metrics = _optional(input_dict, "evaluation")
    evaluation = Evaluation.read(Path(metrics.uri)) if metrics is not None else None
    if evaluation is not None:
        fields["metrics"] = {
            name: records.RecordedMetric(value=metric.value, signature=metric.signature)
            for name, metric in evaluation.metrics.items()
        }
        # If production could not be decoded, the version that the graph knows stays.
        if evaluation.production and evaluation.production.version:
            fields["compared_with"] = evaluation.production.version
    return records.VersionRecord.model_validate(fields)
