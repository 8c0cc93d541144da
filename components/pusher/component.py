"""The Pusher's place in the graph: what goes in and what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.types import standard_artifacts
from tfx.types.channel import BaseChannel, Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from components import parameters
from components.artifacts import Findings
from components.files import source_digest
from components.pusher.executor import PusherExecutor

SOURCES = (
    "components/parameters.py",
    "components/profiles.py",
    "components/provenance.py",
    "components/pusher",
    "components/registry",
    "models/unspaced.py",
)


class PusherSpec(ComponentSpec):
    """A model and its blessings in, a pushed model out."""

    PARAMETERS = {
        "registry": ExecutionParameter(type=str),
        "name": ExecutionParameter(type=str),
        "record": ExecutionParameter(type=str),
        "code": ExecutionParameter(type=str),
        **parameters.properties("data", "training"),
    }
    INPUTS = {
        "model": ChannelParameter(type=standard_artifacts.Model),
        "model_blessing": ChannelParameter(type=standard_artifacts.ModelBlessing),
        "infra_blessing": ChannelParameter(type=standard_artifacts.InfraBlessing),
        "evaluation": ChannelParameter(type=standard_artifacts.ModelEvaluation),
        "findings": ChannelParameter(type=Findings),
        "corpus": ChannelParameter(type=Findings),
    }
    OUTPUTS = {"pushed_model": ChannelParameter(type=standard_artifacts.PushedModel)}


class Pusher(BaseComponent):
    """Copies the model to the next version of the registry, if it is blessed and checked.

    Args:
        model: the exported model of the Trainer.
        model_blessing: the Evaluator's.
        infra_blessing: the ServingCheck's.
        registry: the folder that TensorFlow Serving's model folders are in.
        name: the model's name there.
        record: a JSON object to keep beside the model, such as the configuration.
        evaluation: the Evaluator's metrics, which are kept there too.
        findings: the ExampleValidator's, whose profile of the training split is kept there too.
        corpus: CorpusGen's findings, of which the fingerprint, the rows and the spans are kept
            there.
        code: a digest of the code, for the cache; by default that of this component.
        run_parameters: the parameters of a run, by name; the record gets their values.
    """

    SPEC_CLASS = PusherSpec
    EXECUTOR_SPEC = ExecutorClassSpec(PusherExecutor)

    def __init__(
        self,
        model: BaseChannel,
        model_blessing: BaseChannel,
        infra_blessing: BaseChannel,
        registry: str,
        name: str,
        record: str,
        evaluation: BaseChannel,
        findings: BaseChannel,
        corpus: BaseChannel,
        code: str | None = None,
        run_parameters: Mapping[str, Any] | None = None,
    ):
        super().__init__(
            PusherSpec(
                model=model,
                model_blessing=model_blessing,
                infra_blessing=infra_blessing,
                evaluation=evaluation,
                findings=findings,
                corpus=corpus,
                registry=registry,
                name=name,
                record=record,
                code=source_digest(*SOURCES) if code is None else code,
                pushed_model=Channel(type=standard_artifacts.PushedModel),
                **(run_parameters or {}),
            )
        )
