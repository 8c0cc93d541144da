"""Digests of code, Regard's own and that of plug-ins, for the keys of every cache.

The files that a result depends on are read from the imports, never listed by hand.
"""

import ast
import contextlib
import functools
import hashlib
import importlib.util
import json
import re
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from importlib.machinery import PathFinder
from pathlib import Path

import regard
from regard.core.files import atomic_write, read_json_object

PACKAGE = Path(regard.__file__).parent
# A module that is named in a string, for example TFX's `run_fn` or the argument of `python -m`, or
# all modules of a package: `regard.models.attention.scores.*`.
_MODULE_NAME = re.compile(r"regard(\.\w+)+(:\w+|\.\*)?")

_INSTALLED = {"site-packages", "dist-packages"}  # folders of packages that do not change


# Where `remembered_digests` stores digests of code, and those that it has read; None outside of it.
_remembered: ContextVar[dict[str, str] | None] = ContextVar("remembered", default=None)


@contextlib.contextmanager
def remembered_digests(file: Path) -> Iterator[None]:
    """Read the digests of Regard's own code from a file, instead of following imports.

    The imports of 300 modules take half a second. The file has the digests of one state of the
    whole package; in another state they are computed, and the file is replaced.

    Args:
        file: the file. What it contains is ignored if it is not readable.
    """
    state = package_digest()
    stored = read_json_object(file)
    digests = stored.get("digests") if stored.get("state") == state else None
    known: dict[str, str] = digests if isinstance(digests, dict) else {}
    if not all(isinstance(value, str) for value in known.values()):
        known = {}
    token = _remembered.set(dict(known))
    try:
        yield
    finally:
        used = _remembered.get()
        _remembered.reset(token)
    if used != known and package_digest() == state:  # not edited meanwhile
        with contextlib.suppress(OSError):  # only the next run becomes slower
            atomic_write(file, json.dumps({"state": state, "digests": used}))


def code_digest(*modules: str, package: Path = PACKAGE) -> str:
    """Return a digest of modules, of everything they import, and of the package data they load.

    Imports are read from the source, inside functions too; imports under ``TYPE_CHECKING`` do
    not count. A package stands for all of its modules.

    Args:
        modules: dotted names, for example ``"regard.components.trainer"``; a module of another
            package stands for its whole top-level package. If that is not installed, it also stands
            for those that it imports and that are not installed, such as neighbours.
        package: the folder that holds the package ``regard``.

    Returns:
        16 hexadecimal digits.

    Raises:
        FileNotFoundError: a module does not exist.
    """
    known = _remembered.get()
    if known is None or package != PACKAGE or not all(map(_is_own, modules)):
        return _compute_digest(modules, package)
    key = " ".join(modules)
    if key not in known:
        known[key] = _compute_digest(modules, package)
    return known[key]


def _is_own(module: str) -> bool:
    return module.partition(".")[0] == PACKAGE.name


def _compute_digest(modules: Sequence[str], package: Path) -> str:
    inside = [module for module in modules if module.partition(".")[0] == package.name]
    others = list(_other_files(modules, package))
    plugins = tuple(path for path, _ in others if path.suffix == ".py")
    files = [(path, package) for path in source_files(*inside, package=package, importers=plugins)]
    return _digest([*files, *others])


def package_digest(*modules: str, package: Path = PACKAGE) -> str:
    """Return a digest of all files of the package; it needs no imports and takes 0.01 s.

    Args:
        modules: the modules, as in `code_digest`; those of other packages count too.
        package: the folder of the package.
    """
    # The folders may be links, which `rglob` does not follow.
    paths = [path for folder in package.iterdir() for path in (folder, *folder.rglob("*"))]
    files = sorted(path for path in paths if path.is_file() and path.suffix != ".pyc")
    return _digest([*((path, package) for path in files), *_other_files(modules, package)])


def _digest(files: Iterable[tuple[Path, Path]]) -> str:
    """Return a digest of files and of their paths in the folders next to them."""
    digest = hashlib.sha256()
    for path, root in files:
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def source_files(
    *modules: str, package: Path = PACKAGE, importers: Iterable[Path] = ()
) -> list[Path]:
    """Return the files behind ``code_digest``: the closure of the imports and its package data.

    Args:
        modules: the modules of the package.
        package: the folder of the package.
        importers: files of other packages, whose imports count too.
    """
    reached: set[tuple[Path, bool]] = set()
    strings: set[str] = set()
    resolved: set[str] = set()
    # Importing a module runs its parent packages, but none of their functions.
    pending = [(path, False) for module in modules for path in _root_files(module, package)]
    for path in importers:
        with contextlib.suppress(SyntaxError, ValueError):  # a template, for example
            names, _ = _references(path.read_bytes(), False)
            pending += [(file, False) for name in names for file in _module_files(name, package)]
    while pending:
        path, top_level_only = pending.pop()
        if (path, top_level_only) in reached:
            continue
        reached.add((path, top_level_only))
        names, constants = _references(path.read_bytes(), top_level_only)
        strings |= constants
        new = names - resolved
        resolved |= new
        # The functions of the package itself import whatever a user asks for.
        files = [file for name in new for file in _module_files(name, package)]
        pending += [(file, file == package / "__init__.py") for file in files]
        inside = path.relative_to(package).parents
        inits = (package / folder / "__init__.py" for folder in inside)
        pending += [(init, True) for init in inits if init.is_file()]
    sources = {path for path, _ in reached}
    folders = {path.parent for path in sources if path.parent != package}
    data_files = {path for folder in folders for path in _data_files(folder, strings)}
    return sorted(sources | data_files)


def _other_files(modules: Iterable[str], package: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the files of the other top-level packages, and the folders that hold these.

    They include what uninstalled ones import from others that are not installed either. Of a folder
    without ``__init__.py``, which may hold data, only the code counts.
    """
    names = {module.partition(".")[0] for module in modules} - {package.name}
    pending = [root for name in sorted(names) for root in _locations(name)]
    while pending:
        root = pending.pop(0)
        is_package = root.is_file() or (root / "__init__.py").is_file()
        paths = (root, *root.rglob("*" if is_package else "*.py"))
        files = sorted(path for path in paths if path.is_file() and path.suffix != ".pyc")
        yield from ((path, root.parent) for path in files)
        if not _is_installed(root):
            new = _imported_names(files) - names - {package.name}
            names |= new
            roots = (path for name in sorted(new) for path in _locations(name))
            pending += [path for path in roots if not _is_installed(path)]


def _locations(name: str) -> list[Path]:
    """Return the folders of a top-level package, or the file of a module, if there are any."""
    # Not the spec of a module that was imported, which may be another of the same name.
    spec = PathFinder.find_spec(name)
    if spec is None:
        with contextlib.suppress(ValueError):  # the running script has no spec
            spec = importlib.util.find_spec(name)
    if spec is None:
        return []
    paths = spec.submodule_search_locations or filter(None, [spec.origin])
    return [path for path in map(Path, paths) if path.exists()]


def _is_installed(root: Path) -> bool:
    """Whether a package or a module belongs to Python or was installed by pip."""
    if _INSTALLED & set(root.parts) or any(map(root.is_relative_to, _standard_library())):
        return True
    return next(root.parent.glob("*.dist-info"), None) is not None  # `pip install --target`


@functools.cache
def _standard_library() -> tuple[str, str]:
    paths = sysconfig.get_paths()
    return paths["stdlib"], paths["platstdlib"]


def _imported_names(files: Iterable[Path]) -> set[str]:
    """Return the top-level packages and modules that files import."""
    imported = set[str]()
    for path in files:
        if path.suffix == ".py":
            with contextlib.suppress(SyntaxError, ValueError):
                for node in ast.walk(ast.parse(path.read_bytes())):
                    if isinstance(node, ast.Import):
                        imported |= {alias.name.partition(".")[0] for alias in node.names}
                    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                        imported.add(node.module.partition(".")[0])
    return imported


def _root_files(module: str, package: Path) -> list[Path]:
    base = package.joinpath(*module.split(".")[1:])
    if base.is_dir():
        return sorted(base.rglob("*.py"))
    if not base.with_name(f"{base.name}.py").is_file():
        raise FileNotFoundError(f"There is no module {module}.")
    return [base.with_name(f"{base.name}.py")]


def _module_files(name: str, package: Path) -> list[Path]:
    """Return the files of ``regard.a.*``, or the file of ``regard.a.b``.

    If ``b`` is no module, the latter is the file of ``regard.a``.
    """
    base = package.joinpath(*name.split(".")[1:])
    if base.name == "*":
        return sorted(base.parent.glob("*.py"))
    if base.is_dir():
        return [path for path in (base / "__init__.py",) if path.is_file()]
    candidates = [base.with_name(f"{base.name}.py")]
    candidates += [base.parent / "__init__.py", base.parent.with_name(f"{base.parent.name}.py")]
    return [path for path in candidates if path.is_file()][:1]


@functools.lru_cache(maxsize=1024)
def _references(source: bytes, top_level_only: bool) -> tuple[frozenset[str], frozenset[str]]:
    """Return the dotted names that a module imports and its string constants."""
    names, strings = set(), set()
    for node in _executed_nodes(ast.parse(source), top_level_only):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            strings.add(node.value)
            # A parent package that names modules, such as a table of lazy imports, imports none.
            if not top_level_only and _MODULE_NAME.fullmatch(node.value):
                names.add(node.value.partition(":")[0])
    return frozenset(name for name in names if name.startswith("regard.")), frozenset(strings)


def _executed_nodes(tree: ast.AST, top_level_only: bool) -> Iterator[ast.AST]:
    pending = [tree]
    while pending:
        node = pending.pop()
        if top_level_only and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            node = ast.Module(node.orelse, [])
        yield node
        pending += ast.iter_child_nodes(node)


def _is_type_checking(test: ast.expr) -> bool:
    """Whether a condition is ``TYPE_CHECKING`` or ``typing.TYPE_CHECKING``."""
    return "TYPE_CHECKING" in (getattr(test, "id", None), getattr(test, "attr", None))


def _data_files(folder: Path, strings: set[str]) -> Iterator[Path]:
    """Yield the data files of a package that its code names, or whose folder it names."""
    for path in folder.rglob("*"):
        if path.suffix in (".py", ".pyc") or not path.is_file():
            continue
        owner = next(parent for parent in path.parents if any(parent.glob("*.py")))
        if owner == folder and strings & set(path.relative_to(folder).parts):
            yield path
