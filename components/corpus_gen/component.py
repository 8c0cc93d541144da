"""CorpusGen's specification: files in, tf.Examples in splits out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfx import types
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import standard_artifacts
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from components import parameters
from components.artifacts import Findings
from components.corpus_gen.executor import Executor


class CorpusGenSpec(ComponentSpec):
    """What CorpusGen takes and gives."""

    PARAMETERS = {
        "data": ExecutionParameter(type=str),
        "fingerprint": ExecutionParameter(type=str),
        "code": ExecutionParameter(type=str),
        **parameters.properties("data"),
    }
    INPUTS: dict[str, ChannelParameter] = {}
    OUTPUTS = {
        "examples": ChannelParameter(type=standard_artifacts.Examples),
        "findings": ChannelParameter(type=Findings),
    }


class CorpusGen(base_beam_component.BaseBeamComponent):
    """Files become tf.Examples in the splits train, eval and test.

    Not one of TFX's ExampleGens, whose drivers open-source Kubeflow Pipelines never runs: the
    cache key is the fingerprint, which the caller takes with ``fingerprint(data)``.

    Args:
        data: the ``data`` section as JSON, with absolute paths, and in ``features`` the task's
            features as JSON.
        fingerprint: the digest of the files' content; empty where it is only taken when the node
            runs, and then stands in the findings alone.
        code: the digest of this component's code.
        run_parameters: the parameters of a run, by name; none where it is run as it is made.

    Outputs: ``examples`` (standard Examples: the features, ``file`` and ``line``) and
    ``findings`` (``corpus.json``: the fingerprint, rows of each split, what was skipped and
    repaired, where).
    """

    SPEC_CLASS = CorpusGenSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)

    def __init__(
        self,
        data: str,
        fingerprint: str,
        code: str,
        run_parameters: Mapping[str, Any] | None = None,
    ):
        super().__init__(
            spec=CorpusGenSpec(
                data=data,
                fingerprint=fingerprint,
                code=code,
                examples=types.Channel(type=standard_artifacts.Examples),
                findings=types.Channel(type=Findings),
                **parameters.of_sections(run_parameters, "data"),
            )
        )
