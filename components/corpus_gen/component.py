"""CorpusGen's specification: files in, tf.Examples in splits out."""

from __future__ import annotations

from collections.abc import Mapping

from tfx import types
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import standard_artifacts
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from regard.components.common import runtime_parameters
from regard.components.common.artifacts import Findings
from regard.components.corpus_gen.executor import Executor


class CorpusGenSpec(ComponentSpec):
    """Parameters, inputs and outputs of CorpusGen."""

    PARAMETERS = {
        "corpus": ExecutionParameter(type=str),
        "fingerprint": ExecutionParameter(type=str),
        "code": ExecutionParameter(type=str),
        **runtime_parameters.properties("data"),
    }
    INPUTS: dict[str, ChannelParameter] = {}
    OUTPUTS = {
        "examples": ChannelParameter(type=standard_artifacts.Examples),
        "findings": ChannelParameter(type=Findings),
    }


class CorpusGen(base_beam_component.BaseBeamComponent):
    """Convert files to tf.Examples in the splits train, eval and test.

    It is not one of TFX's ExampleGens, because open-source Kubeflow Pipelines never runs their
    drivers: the cache key is the fingerprint, which the caller computes.

    Args:
        corpus: JSON of the ``Corpus``, with absolute paths.
        fingerprint: the digest of the files' content; empty if it is computed when the node runs,
            and then only written to the findings.
        code: the digest of this component's code.
        run_parameters: the parameters that a run on a cluster can set, by name.

    Outputs: ``examples`` (standard Examples: the features, ``file`` and ``line``) and
    ``findings`` (``corpus.json``: the fingerprint, rows of each split and span, and what was
    skipped or repaired).
    """

    SPEC_CLASS = CorpusGenSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)

    def __init__(
        self,
        corpus: str,
        fingerprint: str,
        code: str,
        run_parameters: Mapping[str, RuntimeParameter] | None = None,
    ):
        super().__init__(
            spec=CorpusGenSpec(
                corpus=corpus,
                fingerprint=fingerprint,
                code=code,
                examples=types.Channel(type=standard_artifacts.Examples),
                findings=types.Channel(type=Findings),
                **runtime_parameters.of_sections(run_parameters, "data"),
            )
        )
