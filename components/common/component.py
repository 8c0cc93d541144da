"""The base of Regard's TFX components: what a node takes and produces."""

from collections.abc import Mapping
from typing import Any, ClassVar

from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.dsl.components.base.executor_spec import BeamExecutorSpec, ExecutorClassSpec
from tfx.types.artifact import Artifact
from tfx.types.channel import BaseChannel, Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from regard.components.common import runtime_parameters
from regard.components.common.code_digest import code_digest
from regard.components.common.node_arguments import NodeArguments
from regard.core.errors import UserError
from regard.core.suggestions import suggest

ArtifactTypes = Mapping[str, type[Artifact]]


class Component(BaseComponent):
    """A TFX component that declares its specification by class attributes.

    Every component also has a parameter ``code`` for the cache, the digest of its code: by
    default, of the package of the executor.

    Attributes:
        EXECUTOR: the executor; one with Beam receives the pipeline's Beam options.
        PARAMETERS: the type of each parameter.
        RUN_SECTIONS: the sections whose run-time parameters the component takes.
        INPUTS: the artifact type of each input.
        OPTIONAL_INPUTS: the artifact type of each input that may be None.
        OUTPUTS: the artifact type of each output.

    Args:
        run_parameters: the run-time parameters of the pipeline by name; None for a local run.
        arguments: the parameters and input channels. An output channel replaces the default one.

    Raises:
        UserError: an argument is unknown.
        ValueError: an argument is missing.
        TypeError: an argument has the wrong type.
    """

    EXECUTOR: ClassVar[type[BaseExecutor]]
    PARAMETERS: ClassVar[Mapping[str, type]] = {}
    RUN_SECTIONS: ClassVar[tuple[str, ...]] = ()
    INPUTS: ClassVar[ArtifactTypes] = {}
    OPTIONAL_INPUTS: ClassVar[ArtifactTypes] = {}
    OUTPUTS: ClassVar[ArtifactTypes] = {}

    def __init_subclass__(cls) -> None:
        """Build the specification that TFX expects."""
        content = {
            "PARAMETERS": {
                name: ExecutionParameter(type=kind)
                for name, kind in {**cls.PARAMETERS, "code": str}.items()
            }
            | runtime_parameters.properties(*cls.RUN_SECTIONS),
            "INPUTS": {
                name: ChannelParameter(type=kind, optional=name in cls.OPTIONAL_INPUTS)
                for name, kind in {**cls.INPUTS, **cls.OPTIONAL_INPUTS}.items()
            },
            "OUTPUTS": {name: ChannelParameter(type=kind) for name, kind in cls.OUTPUTS.items()},
        }
        cls.SPEC_CLASS = type(f"{cls.__name__}Spec", (ComponentSpec,), content)
        uses_beam = issubclass(cls.EXECUTOR, BaseBeamExecutor)
        spec_class = BeamExecutorSpec if uses_beam else ExecutorClassSpec
        cls.EXECUTOR_SPEC = spec_class(cls.EXECUTOR)

    @classmethod
    def check_inputs(cls, task: str | None = None, **inputs: BaseChannel | None) -> NodeArguments:
        """Return the checks of a component's arguments, begun with its input channels.

        Args:
            task: the name of the task; None for a component that does not depend on one.
            inputs: the channels.
        """
        arguments = NodeArguments(cls.__name__, task)
        connected = {name for name, channel in inputs.items() if channel is not None}
        optional = {name: kind for name, kind in cls.OPTIONAL_INPUTS.items() if name in connected}
        arguments.check_channels({**cls.INPUTS, **optional}, inputs)
        return arguments

    def __init__(self, run_parameters: Mapping[str, Any] | None = None, **arguments: Any):
        spec = self.SPEC_CLASS
        names = [*spec.INPUTS, *spec.PARAMETERS, *spec.OUTPUTS]
        # TFX ignores unknown arguments.
        if unknown := [name for name in arguments if name not in names]:
            problems = (f"{name!r} is not an argument. {suggest(name, names)}." for name in unknown)
            raise UserError(" ".join(problems), type(self).__name__)
        if "code" not in arguments:
            arguments["code"] = code_digest(self.EXECUTOR.__module__.rpartition(".")[0])
        outputs = {name: Channel(type=kind) for name, kind in self.OUTPUTS.items()}
        values = runtime_parameters.of_sections(run_parameters, *self.RUN_SECTIONS)
        super().__init__(spec(**{**outputs, **values, **arguments}))
