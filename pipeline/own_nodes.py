"""Code of the user's own in the graph: import it, check it, and connect its nodes.

A check before a run creates the nodes with channels of the declared types in place of the outputs
of Regard's nodes; nobody uses these nodes. The worker, another process, creates them again with
those outputs, and connects them.
"""

import copy
import inspect
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError, create_model
from tfx.components import SchemaGen, StatisticsGen
from tfx.dsl.component.experimental.decorators import BaseFunctionalComponent
from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.base_node import BaseNode
from tfx.types.channel import BaseChannel, Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec

from regard.components import data_nodes, nodes
from regard.components.common.code_digest import code_digest
from regard.core.errors import ConfigError, UserError
from regard.core.modules import importable, load_object
from regard.core.suggestions import suggest
from regard.models.settings.base import KeyPath, Problem, Section
from regard.models.settings.validation_errors import show, validation_problems
from regard.pipeline.config import Config
from regard.pipeline.config.own_nodes import NODES, NodeConfig

# A node's outputs by name.
Outputs = Mapping[str, BaseChannel]
# Receives all nodes by name, and returns more.
Extra = Callable[[Mapping[str, BaseNode]], Iterable[BaseNode]]
CODE = "own_code"  # the execution property with the digest of a node's code
_PRIMITIVES = (bool, int, float, str)  # the types of most parameters of functions
_MIN_INTEGER, _MAX_INTEGER = -(2**63), 2**63 - 1  # of ML Metadata
_NODE_ATTRIBUTES = ("id", "upstream_nodes", "executor_spec", "inputs", "outputs", "exec_properties")
_EXTRA: KeyPath = ("pipeline", "extra")
_REMEDY = "docs/how-to/extending.md shows a node, a run_fn, and how nodes are connected."


def check_own_code(config: Config) -> None:
    """Import the code of a configuration's user, and create the nodes without running them.

    Raises:
        UserError: The code does not fit. The message names every problem with its line and key.
    """
    with importable(config.pipeline.folder):
        problems = list(_function_problems(config))
        problems += _OwnNodes(config, _declared_outputs(config)).problems
    if problems:
        raise config.origin.mapping.error(problems, _REMEDY)


def connect_own_nodes(
    config: Config, regard_nodes: Iterable[BaseNode], extra: Extra | None = None
) -> list[BaseNode]:
    """Return the nodes of the user's own, connected to Regard's.

    Args:
        config: The configuration.
        regard_nodes: Regard's nodes.
        extra: Returns further nodes, after those of ``pipeline.extra``.

    Raises:
        UserError: The code of a node cannot be imported, or does not fit.
    """
    for problem in _function_problems(config):
        raise _error(problem)
    by_name = {node.id: node for node in regard_nodes}
    created = _OwnNodes(config, {name: node.outputs for name, node in by_name.items()})
    for problem in created.problems:
        raise _error(problem)
    by_name |= created.nodes
    for settings in config.pipeline.nodes:
        if settings.after is not None:
            by_name[settings.id].add_upstream_node(by_name[settings.after])
        if settings.before is not None:
            by_name[settings.before].add_upstream_node(by_name[settings.id])
    if config.pipeline.extra is not None:
        _add_nodes(_call_own_extra(config.pipeline.extra, dict(by_name)), by_name)
    if extra is not None:
        _add_nodes(extra(by_name), by_name)
    own = [node for name, node in by_name.items() if name not in config.regard_nodes]
    for node in own:
        if isinstance(node, BaseComponent):  # others, such as an Importer, run no code
            _add_code_digest(node)
    return own


class _OwnNodes:
    """The components of ``pipeline.nodes``, and what is wrong with them.

    Args:
        config: The configuration.
        outputs: The outputs of Regard's nodes, or channels of the same types.

    Attributes:
        nodes: The components by name, without those that have a problem.
        problems: The problems, at their keys.
    """

    def __init__(self, config: Config, outputs: Mapping[str, Outputs]):
        self._folder = config.pipeline.folder
        self._outputs = dict(outputs)
        self.nodes: dict[str, BaseComponent] = {}
        self.problems: list[Problem] = []
        settings = {node.id: (index, node) for index, node in enumerate(config.pipeline.nodes)}
        for name in config.nodes:
            if name in settings:
                index, node = settings[name]
                self._create(node, (*NODES, index))

    def _create(self, settings: NodeConfig, path: KeyPath) -> None:
        """Create a component, unless a node whose output it reads has a problem."""
        problem_count = len(self.problems)
        component = self._load(settings, (*path, "component"))
        inputs = {}
        for key, reference in settings.inputs.items():
            producer, _, name = reference.partition(".")
            outputs = self._outputs.get(producer)
            if outputs is None:  # its own problem is among the problems
                return
            if name not in outputs:
                message = f"{producer} has no output {name!r}. {suggest(name, outputs)}"
                self.problems.append(Problem((*path, "inputs", key), message))
                continue
            inputs[key] = outputs[name]
        if component is None:
            return
        try:
            self.problems += _argument_problems(component, settings, inputs, path)
            parameters, problems = _parse_parameters(component, settings, path)
            self.problems += problems
            if len(self.problems) > problem_count:
                return
            node = component(**inputs, **parameters).with_id(settings.id)
            outputs = _check_node(node)
            if node.id != settings.id:
                raise ValueError(f"with_id returned the node {node.id}, not {settings.id}")
            self.problems += _number_problems(node, settings.parameters, path)
        except UserError as error:  # of one of Regard's components
            self.problems.append(Problem(path, error.message))
        except (Exception, SystemExit) as error:  # of the user's code, or a wrong type
            self.problems.append(Problem(path, f"{type(error).__name__}: {error}"))
        else:
            self.nodes[settings.id] = node
            self._outputs[settings.id] = outputs

    def _load(self, settings: NodeConfig, path: KeyPath) -> type[BaseComponent] | None:
        try:
            component = load_object(settings.component, self._folder)
        except UserError as error:
            self.problems.append(Problem(path, error.message))
            return None
        if not (isinstance(component, type) and issubclass(component, BaseComponent)):
            message = f"{settings.component} is no TFX component; use a class, or decorate a "
            self.problems.append(Problem(path, f"{message}function with @component"))
            return None
        component_class: type[BaseComponent] = component
        spec: Any = component_class.SPEC_CLASS
        is_spec = isinstance(spec, type) and issubclass(spec, ComponentSpec)
        if not (is_spec and all(hasattr(spec, name) for name in ("INPUTS", "PARAMETERS"))):
            message = f"the SPEC_CLASS of {settings.component} is not one of TFX with INPUTS and "
            self.problems.append(Problem(path, f"{message}PARAMETERS"))
            return None
        return component_class


def _argument_problems(
    component: type[BaseComponent],
    settings: NodeConfig,
    inputs: Mapping[str, BaseChannel],
    path: KeyPath,
) -> Iterator[Problem]:
    """Yield unknown and missing arguments, and inputs of a wrong type."""
    spec = component.SPEC_CLASS
    if CODE in spec.PARAMETERS:
        yield Problem((*path, "component"), f"the name of its parameter {CODE!r} is reserved")
    for key, channel in inputs.items():
        expected = spec.INPUTS.get(key)
        if expected is not None and not _is_accepted(expected, channel):
            message = f"{expected.type.TYPE_NAME} is expected; {settings.inputs[key]} has the type "
            yield Problem((*path, "inputs", key), message + channel.type_name)
    sections: dict[str, Mapping[str, bool]] = {}
    if issubclass(component, BaseFunctionalComponent):
        for section, known in {"inputs": spec.INPUTS, "parameters": spec.PARAMETERS}.items():
            sections[section] = {key: not argument.optional for key, argument in known.items()}
    elif (names := _argument_names(component)) is not None:
        # Which of them are inputs is unknown; the class itself refuses missing ones.
        sections = dict.fromkeys(("inputs", "parameters"), dict.fromkeys(names, False))
    for section, is_required in sections.items():
        yield from _key_problems(getattr(settings, section), is_required, (*path, section))


def _is_accepted(expected: ChannelParameter, channel: BaseChannel) -> bool:
    """Return whether an input may be this channel."""
    try:
        expected.type_check("input", channel)
    except TypeError:
        return False
    return True


def _key_problems(
    keys: Collection[str], is_required: Mapping[str, bool], path: KeyPath
) -> Iterator[Problem]:
    """Yield the unknown and the missing keys of a section.

    Args:
        keys: The keys that were given.
        is_required: Whether a key is required, for each that the component has.
        path: The path of the section.
    """
    for key in keys:
        if key not in is_required:
            hint = f". {suggest(key, is_required)}" if is_required else "; the component has none"
            yield Problem((*path, key), f"unknown key{hint}")
    for key, required in is_required.items():
        if required and key not in keys:
            yield Problem((*path, key), "is missing")


def _parse_parameters(
    component: type[BaseComponent], settings: NodeConfig, path: KeyPath
) -> tuple[dict[str, Any], list[Problem]]:
    """Return the parameters of a node, and those of a wrong type.

    A whole number becomes a float for a parameter of this type. Only a function declares the types
    of its parameters; those of a class are its own.
    """
    parameters: dict[str, Any] = copy.deepcopy(settings.parameters)  # the component may change them
    problems: list[Problem] = []
    is_function = issubclass(component, BaseFunctionalComponent)
    declared = component.SPEC_CLASS.PARAMETERS if is_function else {}
    for key in parameters.keys() & declared.keys():
        kind = declared[key].type
        if kind not in _PRIMITIVES and typing.get_origin(kind) not in (dict, list):
            continue  # a protocol buffer
        kind = kind | None if declared[key].optional else kind
        section: Any = create_model("Parameter", __base__=Section, value=(kind, ...))
        try:
            parameters[key] = section(value=parameters[key]).value
        except ValidationError as error:
            for problem in validation_problems(error, section):
                place = (*path, "parameters", key, *problem.path[1:])
                problems.append(Problem(place, problem.message))
    return parameters, problems


def _check_node(node: object) -> Outputs:
    """Return the outputs of a node that the code of the user created.

    Raises:
        Exception: It is not a complete node, or an error of the user's code.
    """
    if not isinstance(node, BaseNode):
        raise TypeError(f"a TFX node is expected, not one of {type(node).__name__}")
    try:
        for name in _NODE_ATTRIBUTES:
            getattr(node, name)
    except AttributeError as error:
        raise TypeError(f"{error}. Call super().__init__ in its constructor") from error
    outputs: Outputs | None = node.outputs
    if not isinstance(outputs, Mapping):
        raise TypeError(f"outputs must be a mapping, not one of {type(outputs).__name__}")
    return outputs


def _number_problems(
    node: BaseNode, parameters: Collection[str], path: KeyPath
) -> Iterator[Problem]:
    """Yield the whole numbers that ML Metadata cannot record, also those that a class computes.

    Args:
        node: The node.
        parameters: The keys of its section ``parameters``.
        path: The key of the node.
    """
    for name, value in node.exec_properties.items():
        if isinstance(value, int) and not _MIN_INTEGER <= value <= _MAX_INTEGER:
            place = (*path, "parameters", name) if name in parameters else path
            message = f"{name} must be a whole number of 64 bits; {show(value)} was given"
            yield Problem(place, message)


def _argument_names(component: type[BaseComponent]) -> list[str] | None:
    """Return the names of the arguments of a component's class; None if it takes any."""
    arguments = inspect.signature(component).parameters.values()
    if any(argument.kind is argument.VAR_KEYWORD for argument in arguments):
        return None
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [argument.name for argument in arguments if argument.kind in by_name]


def _function_problems(config: Config) -> Iterator[Problem]:
    """Yield the references to functions that cannot be imported."""
    for path, reference in config.own_code.items():
        if path[:2] == NODES:
            continue
        try:
            if not callable(load_object(reference, config.pipeline.folder)):
                yield Problem(path, f"{reference} is no function")
        except UserError as error:
            yield Problem(path, error.message)


def _declared_outputs(config: Config) -> dict[str, Outputs]:
    """Return channels with the types of the outputs of Regard's nodes."""
    components = {"StatisticsGen": StatisticsGen, "SchemaGen": SchemaGen}
    for module in (data_nodes, nodes):
        components |= vars(module)
    result: dict[str, Outputs] = {}
    for name in config.regard_nodes:
        declared = components[name].SPEC_CLASS.OUTPUTS.items()
        result[name] = {key: Channel(type=parameter.type) for key, parameter in declared}
    return result


def _call_own_extra(reference: str, by_name: Mapping[str, BaseNode]) -> list[BaseNode]:
    """Return the result of ``pipeline.extra``, whose errors are those of the user."""
    try:
        return list(load_object(reference)(by_name))
    except (Exception, SystemExit) as error:
        raise _error(Problem(_EXTRA, f"{type(error).__name__}: {error}")) from error


def _add_nodes(added: Iterable[BaseNode], by_name: dict[str, BaseNode]) -> None:
    """Add the result of a function ``extra`` to the nodes by name."""
    names = {name.lower() for name in by_name}  # commands ignore the case
    for node in added:
        if not isinstance(node, BaseNode):
            message = f"it must return a list of TFX nodes, not one of {type(node).__name__}"
            raise _error(Problem(_EXTRA, message))
        try:
            _check_node(node)
        except Exception as error:  # of the user's code
            message = f"{type(node).__name__}: {error}"
            raise _error(Problem(_EXTRA, message)) from error
        for problem in _number_problems(node, (), _EXTRA):
            raise _error(problem)
        if node.id.lower() in names:
            message = f"there already is a node {node.id!r}; use .with_id(NAME)"
            raise _error(Problem(_EXTRA, message))
        names.add(node.id.lower())
        by_name[node.id] = node


def _add_code_digest(node: BaseComponent) -> None:
    """Add the digest of a node's code to its properties, and so to its cache key."""
    executor = getattr(node.executor_spec, "executor_class", None)
    modules = {owner.__module__ for owner in (type(node), executor) if owner is not None}
    own = {name for name in modules if name.partition(".")[0] not in ("regard", "tfx")}
    if "__main__" in own:
        message = f"The component {node.id} is defined in a script or a notebook."
        remedy = "Define it in a module, which other processes can import."
        raise UserError(message, node.id, remedy)
    if own:
        node.exec_properties[CODE] = code_digest(*sorted(own))


def _error(problem: Problem) -> UserError:
    return ConfigError(problem.message, ".".join(map(str, problem.path)), _REMEDY)
