"""Sections of the YAML file that are read from the source of the layers they configure.

The options of a score, an alignment, a pooling or a schedule are arguments of its constructor:
their names, types, bounds, defaults and descriptions stand there and nowhere else. ``regard
validate`` must not import Keras, which takes seconds, so the source of a layer is parsed here and
not imported.

A class takes part with the decorator ``@choice("name")`` of `regard.models.serialization`. Its
options are the annotated arguments of its constructor up to a ``*``; further arguments are for
Python only. Annotations may use what the module imports from ``typing`` and
``regard.models.settings``, the text of an option stands under ``Args`` in the class's docstring,
and the docstring's first line describes the section. Class attributes with literal values become
attributes of the section.
"""

import ast
import functools
import importlib
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, ClassVar, Literal, Union, cast

from pydantic import Field, TypeAdapter, create_model
from typing_extensions import Self

from regard.models.settings.base import Section

_DECORATOR = "choice"
_ARGS_HEADING = "Args:\n"
_ARGUMENT = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
_OPTION_MODULES = ("typing", "regard.models.settings")


class LayerSection(Section):
    """Base class of the sections of one kind of layers; a subclass names its folder or module.

    Attributes:
        type: The name of the layer.
        variants: The sections by name.
    """

    variants: ClassVar[dict[str, Any]] = {}  # before `type`, which hides the built-in
    type: str

    def __init_subclass__(cls, source: Path | None = None, **options: Any) -> None:
        """Prepare a kind of layers, or one of its sections.

        Args:
            source: The module, or the folder of the modules, that has the layers of a kind.
            options: As in the base class.
        """
        super().__init_subclass__(**options)

    @classmethod
    def __pydantic_init_subclass__(cls, source: Path | None = None, **options: Any) -> None:
        """Read the layers of a kind."""
        super().__pydantic_init_subclass__(**options)
        if source is not None:
            layers = read_choices(source)
            cls.variants = {name: _section(name, layer, cls) for name, (_, layer) in layers.items()}

    @classmethod
    def create(cls, name: str, **options: Any) -> Self:
        """Return the section of a layer.

        Args:
            name: The name of the layer.
            options: Its options, as in YAML files.
        """
        section: Self = cls.variants[name].model_validate(options)
        return section

    def __reduce__(self) -> tuple[Any, ...]:
        # The class is created at run time and cannot be imported by its name.
        kind: Any = next(base for base in self.__class__.__mro__ if "variants" in vars(base))
        options = self.model_dump(exclude_unset=True, exclude={"type"})
        return functools.partial(kind.create, self.type, **options), ()


def any_of(sections: Iterable[type[Section]]) -> Any:
    """Return the type of a value that is one of the sections."""
    return Union[tuple(sections)]  # noqa: UP007  # they are not known in the source


@dataclass(frozen=True)
class Option:
    """An option of a layer: an annotated argument of its constructor.

    Attributes:
        annotation: Its type.
        default: Its default.
        description: Its text in the docstring of the class.
    """

    annotation: Any
    default: Any
    description: str

    def validate_default(self) -> Any:
        """Return the default as the value of a section; a section is given by its name."""
        return TypeAdapter(self.annotation).validate_python(self.default)


@dataclass(frozen=True)
class LayerSource:
    """A class as its source describes it.

    Attributes:
        class_name: The name of the class.
        name: The name in YAML files; empty for a base class.
        summary: The first paragraph of its docstring.
        options: Its options by name, those of its base classes first.
        attributes: Its class attributes with literal values.
    """

    class_name: str
    name: str
    summary: str
    options: dict[str, Option] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)


def read_choices(path: Path) -> dict[str, tuple[Path, LayerSource]]:
    """Return the choices in a module, or in the modules of a folder, sorted by name.

    Args:
        path: A file, or a folder.

    Returns:
        The file and the class of each name.

    Raises:
        ValueError: Two classes have the same name.
    """
    choices: dict[str, tuple[Path, LayerSource]] = {}
    for file in sorted(path.glob("*.py")) if path.is_dir() else [path]:
        for layer in _read_module(file):
            if layer.name in choices:
                raise ValueError(f"{file}: the name {layer.name!r} is already taken.")
            choices[layer.name] = file, layer
    return dict(sorted(choices.items()))


def implementations(path: Path, module: str) -> dict[str, str]:
    """Return the class of each choice as ``module:name``.

    Args:
        path: A file, or a folder.
        module: The dotted name of the module, or that of the folder with ``.*``. A literal with
            ``.*`` in a module's source also adds all modules of the folder to digests of its code.
    """
    choices = {}
    for name, (file, layer) in read_choices(path).items():
        source = f"{module.removesuffix('.*')}.{file.stem}" if path.is_dir() else module
        choices[name] = f"{source}:{layer.class_name}"
    return choices


def classes_of_module(file: str, module: str) -> dict[str, Any]:
    """Return the choices of a module that calls this after its last class, by name.

    Args:
        file: Its ``__file__``.
        module: Its ``__name__``.
    """
    choices = implementations(Path(file), module)
    return {name: resolve_name(implementation) for name, implementation in choices.items()}


def _section(name: str, layer: LayerSource, base: type[Any]) -> type[Any]:
    """Return the section of a layer; ``base`` is that of its kind."""
    type_text = base.model_fields["type"].description
    fields: dict[str, Any] = {"type": (Literal[name], Field(name, description=type_text))}
    for option_name, option in layer.options.items():
        default = Field(option.validate_default(), description=option.description or None)
        fields[option_name] = option.annotation, default
    section = create_model(
        layer.class_name, __base__=base, __doc__=layer.summary, __module__=__name__, **fields
    )
    for attribute in layer.attributes.keys() - layer.options.keys():
        setattr(section, attribute, layer.attributes[attribute])
    return section


def _read_module(file: Path) -> Iterator[LayerSource]:
    """Yield the choices of a module."""
    tree = ast.parse(file.read_bytes(), filename=str(file))
    names = _imported_names(tree)
    layers: dict[str, LayerSource] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            layer = layers[node.name] = _read_class(node, layers, names)
            if layer.name:
                yield layer


def _read_class(
    node: ast.ClassDef, layers: Mapping[str, LayerSource], names: Mapping[str, Any]
) -> LayerSource:
    """Return a class; base classes of the same module must stand before it."""
    base_names = [ast.unparse(base) for base in node.bases]
    bases = [layers[name] for name in base_names if name in layers]
    attributes: dict[str, Any] = {}
    texts: dict[str, str] = {}
    options: dict[str, Option] = {}
    for base in bases:
        attributes |= base.attributes
        options |= base.options
        texts |= {name: option.description for name, option in base.options.items()}

    docstring = ast.get_docstring(node) or ""
    texts |= _argument_texts(docstring)
    for statement in node.body:
        attributes |= _literal_attribute(statement)
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            options = _read_options(statement.args, texts, names)
    name, defaults = _read_decorator(node)
    for option, default in defaults.items():
        options[option] = replace(options[option], default=default)
    return LayerSource(
        class_name=node.name,
        name=name,
        summary=docstring.partition("\n\n")[0],
        options=options,
        attributes=attributes,
    )


def _read_decorator(node: ast.ClassDef) -> tuple[str, dict[str, Any]]:
    """Return the name of a choice and its own defaults; an empty name for another class."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == _DECORATOR:
            defaults = {str(item.arg): ast.literal_eval(item.value) for item in decorator.keywords}
            return ast.literal_eval(decorator.args[0]), defaults
    return "", {}


def _literal_attribute(statement: ast.stmt) -> dict[str, Any]:
    """Return the name and the value of a class attribute, if the value is a literal."""
    if isinstance(statement, ast.AnnAssign):
        target: ast.expr = statement.target
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
    else:
        return {}
    if not isinstance(target, ast.Name) or statement.value is None:
        return {}
    try:
        return {target.id: ast.literal_eval(statement.value)}
    except ValueError:
        return {}


def _read_options(
    arguments: ast.arguments, texts: Mapping[str, str], names: Mapping[str, Any]
) -> dict[str, Option]:
    """Return the arguments of a constructor up to ``*``; all of them must have defaults."""
    options = {}
    parameters = arguments.args[1:]  # without self
    for parameter, default in zip(parameters, arguments.defaults, strict=True):
        annotation = ast.unparse(cast(ast.expr, parameter.annotation))
        options[parameter.arg] = Option(
            annotation=eval(annotation, {"__builtins__": {}}, {**_BUILTINS, **names}),
            default=ast.literal_eval(default),
            description=texts.get(parameter.arg, ""),
        )
    return options


_BUILTINS = {"bool": bool, "int": int, "float": float, "str": str}


def _imported_names(tree: ast.Module) -> dict[str, Any]:
    """Return what a module imports for its annotations."""
    names = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_OPTION_MODULES):
            module = importlib.import_module(str(node.module))
            for alias in node.names:
                names[alias.asname or alias.name] = getattr(module, alias.name)
    return names


def _argument_texts(docstring: str) -> dict[str, str]:
    """Return the texts under ``Args``."""
    listed = inspect.cleandoc(docstring).partition(_ARGS_HEADING)[2]
    return {name: " ".join(text.split()) for name, text in _ARGUMENT.findall(listed)}
