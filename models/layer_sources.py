"""Layers that YAML files choose by name, as their source describes them.

The options of a score, an alignment, a pooling or a schedule are arguments of its constructor:
their names, types, bounds, defaults and texts stand there and nowhere else. ``regard validate``
needs them without Keras, whose import takes seconds, so a layer's source is parsed here and not
imported.

A class takes part with the decorator ``@choice("name")`` of `regard.models.serialization`. Its
options are the arguments of its constructor up to a ``*``; further arguments are for Python only.
Annotations may use what the module imports from ``typing``, `regard.core.bounds` and
``regard.models.settings``. The text of an option stands under ``Args`` in the class's docstring,
whose first line describes the layer. Class attributes with literal values state facts about it.
Both are inherited from base classes in the same module, or imported from another one of Regard.
"""

import ast
import functools
import importlib
import inspect
import re
import threading
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

_DECORATOR = "choice"
_ARGS_HEADING = "Args:\n"
_ARGUMENT = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
_OPTION_MODULES = ("typing", "regard.core.bounds", "regard.models.settings")
_BUILT_IN_TYPES = {"bool": bool, "int": int, "float": float, "str": str}
_PACKAGE = Path(__file__).parents[1]  # of `regard`


@dataclass(frozen=True)
class Option:
    """An option of a layer: an argument of its constructor.

    Attributes:
        annotation: The source of its type.
        imports: The module of each imported name that the type may use.
        default: Its default.
        description: Its text in the docstring of the class.
    """

    annotation: str
    imports: Mapping[str, str]
    default: Any
    description: str

    @property
    def type(self) -> Any:
        """Its type; this imports the modules of the names in the annotation.

        Raises:
            NameError: A name is not that of a built-in type, and not imported for annotations.
        """
        names: dict[str, Any] = dict(_BUILT_IN_TYPES)
        for node in ast.walk(ast.parse(self.annotation)):
            if isinstance(node, ast.Name) and node.id in self.imports:
                module = importlib.import_module(self.imports[node.id])
                names[node.id] = getattr(module, node.id)
        return eval(self.annotation, {"__builtins__": {}}, names)


@dataclass(frozen=True)
class LayerSource:
    """A class as its source describes it.

    Attributes:
        file: Its file.
        class_name: The name of the class.
        name: The name in YAML files; empty for a base class.
        summary: The first paragraph of its docstring.
        options: Its options by name.
        attributes: Its class attributes with literal values.
        has_constructor: Whether it has or inherits a constructor that was read.
        problem: Why it cannot be a choice; empty if it can.
    """

    file: Path
    class_name: str
    name: str
    summary: str
    options: dict[str, Option]
    attributes: dict[str, Any]
    has_constructor: bool = False
    problem: str = ""


def read_choices(path: Path) -> dict[str, LayerSource]:
    """Return the choices in a module, or in the modules of a folder, sorted by name.

    Args:
        path: A file, or a folder.

    Raises:
        ValueError: Two classes have the same name.
    """
    choices: dict[str, LayerSource] = {}
    for file in sorted(path.glob("*.py")) if path.is_dir() else [path]:
        for layer in _read_classes(file).values():
            if layer.name in choices:
                raise ValueError(f"{file}: the name {layer.name!r} is already taken.")
            if layer.name:
                choices[layer.name] = layer
    return dict(sorted(choices.items()))


def implementations(path: Path, module: str) -> dict[str, str]:
    """Return the class of each choice as ``module:name``.

    Args:
        path: A file, or a folder.
        module: The dotted name of the module, or that of the folder with ``.*``. A literal with
            ``.*`` in a module's source also adds all modules of the folder to digests of its code.
    """
    choices = {}
    for name, layer in read_choices(path).items():
        source = f"{module.removesuffix('.*')}.{layer.file.stem}" if path.is_dir() else module
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


def _read_classes(file: Path) -> dict[str, LayerSource]:
    """Return the classes of a module, and the base classes that it imports from Regard.

    Imported classes have no ``name``: they are choices of their own module.

    Raises:
        ValueError: The options or facts of a choice cannot be read.
    """
    tree = _parse(file.read_bytes(), str(file))
    imports = _option_imports(tree)
    nodes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    bases = {ast.unparse(base) for node in nodes for base in node.bases}
    layers = _imported_classes(tree, bases)
    for node in nodes:
        if node.name in layers:
            raise ValueError(f"{file}:{node.lineno}: there are two classes {node.name}.")
        layer = layers[node.name] = _read_class(file, node, layers, imports)
        if layer.name and layer.problem:
            raise ValueError(f"{file}:{node.lineno}: {node.name}: {layer.problem}.")
    return layers


_PARSING = threading.Lock()  # Python 3.11 fails if several threads build trees (gh-106905)


@functools.lru_cache(maxsize=64)  # most modules of a folder import the same base class
def _parse(source: bytes, file: str) -> ast.Module:
    with _PARSING:
        return ast.parse(source, filename=file)


def _imported_classes(tree: ast.Module, names: Container[str]) -> dict[str, LayerSource]:
    """Return the classes with the given names that a module imports from modules of Regard."""
    classes: dict[str, LayerSource] = {}
    for node in tree.body:
        if not isinstance(node, ast.ImportFrom):
            continue
        package, *parts = str(node.module).split(".")
        file = _PACKAGE.joinpath(*parts).with_suffix(".py")
        imported = {alias.asname or alias.name: alias.name for alias in node.names}
        imported = {name: original for name, original in imported.items() if name in names}
        if imported and package == _PACKAGE.name and file.is_file():
            others = _read_classes(file)
            for name, original in imported.items():
                if original in others:
                    classes[name] = replace(others[original], name="")
    return classes


def _option_imports(tree: ast.Module) -> dict[str, str]:
    """Return the modules of the names that a module imports for its annotations."""
    imports: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_OPTION_MODULES):
            imports |= {alias.name: str(node.module) for alias in node.names}
    return imports


def _read_class(
    file: Path, node: ast.ClassDef, layers: Mapping[str, LayerSource], imports: Mapping[str, str]
) -> LayerSource:
    """Return a class; its base classes are among ``layers``."""
    base_names = [ast.unparse(base) for base in node.bases]
    bases = [layers[name] for name in base_names if name in layers]
    attributes: dict[str, Any] = {}
    for base in reversed(bases):
        attributes |= base.attributes
    # As in Python, the constructor is that of the first base class that has one.
    constructor = next((base for base in bases if base.has_constructor), None)
    options = dict(constructor.options) if constructor else {}
    problem = constructor.problem if constructor else ""

    docstring = ast.get_docstring(node) or ""
    texts = {name: option.description for name, option in options.items()}
    texts |= _argument_texts(docstring)
    has_constructor = constructor is not None
    for statement in node.body:
        attributes |= _literal_attribute(statement)
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            has_constructor = True
            try:
                options = _read_options(statement.args, texts, imports)
            except ValueError as error:
                problem = problem or str(error)
    for name in _computed_attributes(node) & attributes.keys():
        del attributes[name]  # an instance has its own value

    name, defaults = _read_decorator(node)
    unknown = [base for base in base_names if base not in layers]
    if name and unknown:
        problem = f"the base class {unknown[0]} is not defined here, nor imported from its module"
    for option, default in defaults.items():
        if option in options:
            options[option] = replace(options[option], default=default)
        else:
            problem = problem or f"{_DECORATOR} has a default of {option}, which is no option"
    return LayerSource(
        file=file,
        class_name=node.name,
        name=name,
        summary=docstring.partition("\n\n")[0],
        options=options,
        attributes=attributes,
        has_constructor=has_constructor,
        problem=problem,
    )


def _read_decorator(node: ast.ClassDef) -> tuple[str, dict[str, Any]]:
    """Return the name of a choice and its own defaults; an empty name for another class."""
    for decorator in node.decorator_list:
        if not isinstance(decorator, ast.Call):
            continue
        if ast.unparse(decorator.func).rpartition(".")[2] == _DECORATOR:
            defaults = {str(item.arg): ast.literal_eval(item.value) for item in decorator.keywords}
            return ast.literal_eval(decorator.args[0]), defaults
    return "", {}


def _computed_attributes(node: ast.ClassDef) -> set[str]:
    """Return the attributes that a class computes: properties, expressions, ``self.name = …``."""
    names = set()
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef):
            names.add(statement.name)
        elif isinstance(statement, ast.Assign) and not _literal_attribute(statement):
            names |= {ast.unparse(target) for target in statement.targets}
    for part in ast.walk(node):
        if not isinstance(part, ast.Attribute):
            continue
        if isinstance(part.ctx, ast.Store) and ast.unparse(part.value) == "self":
            names.add(part.attr)
    return names


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
    except (TypeError, ValueError):
        return {}


def _read_options(
    arguments: ast.arguments, texts: Mapping[str, str], imports: Mapping[str, str]
) -> dict[str, Option]:
    """Return the arguments of a constructor up to ``*``.

    Raises:
        ValueError: An argument has no type, or no literal as its default.
    """
    options = {}
    parameters = arguments.args[1:]  # without self
    if len(parameters) > len(arguments.defaults):
        raise ValueError(f"the option {parameters[0].arg} has no default")
    for parameter, default in zip(parameters, arguments.defaults, strict=True):
        annotation = parameter.annotation
        if annotation is None:
            raise ValueError(f"the option {parameter.arg} has no type")
        if isinstance(annotation, ast.Constant):  # a type that is imported for type checkers only
            source = str(annotation.value)
        else:
            source = ast.unparse(annotation)
        try:
            value = ast.literal_eval(default)
        except ValueError:
            text = ast.unparse(default)
            raise ValueError(f"the default of {parameter.arg}, {text}, is no literal") from None
        options[parameter.arg] = Option(source, imports, value, texts.get(parameter.arg, ""))
    return options


def _argument_texts(docstring: str) -> dict[str, str]:
    """Return the texts under ``Args``."""
    listed = inspect.cleandoc(docstring).partition(_ARGS_HEADING)[2]
    return {name: " ".join(text.split()) for name, text in _ARGUMENT.findall(listed)}
