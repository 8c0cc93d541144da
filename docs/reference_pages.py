"""Generate the reference of commands, configuration keys and metrics as Markdown."""

import inspect
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel

from regard.components.settings.task_keys import inapplicable_keys
from regard.models import tasks
from regard.models.metrics import METRICS, Rows, compute
from regard.models.settings.annotations import models_in, type_of
from regard.pipeline.cli import error_records
from regard.pipeline.cli.commands import COMMANDS, load
from regard.pipeline.config import reference
from regard.pipeline.config.config import config_class

_STYLE = re.compile(r"\[/?bold\]")
_HEAD = ("Key", "Meaning", "Default")
_VERB = re.compile("^(?:Compute|Return) (?:the )?")
_POINTS = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
_ROWS = {
    "text": Rows(["a b c d"], [["a b c d"]]),
    "number": Rows([1.0, 2.0, 3.0], [[1.0], [2.5], [2.0]]),
    "positions": Rows([[0, 1, 2]], [[[0, 1, 2]]], {"points": [_POINTS]}),
}
# Of metrics that read attention or the scores of references.
_SIGNATURES = {
    "aer": "unit:word|targets:all|rows:100 of 1000",
    "perplexity": "unit:token|tokens:12345",
    "pointing": "phrases:2400|named:1200",
    "supporting_attention": "rows:500 of 500",
}
_SHORT = 5  # keys of a type that has no table of its own


def commands() -> str:
    """Return every command with its arguments, options and examples."""
    panels: dict[str, list[str]] = {}
    for name, entry in COMMANDS.items():
        panels.setdefault(entry.panel, []).extend(_command(load(name), f"regard {name}"))
    return "\n".join(
        line for panel, lines in panels.items() for line in ("", f"## {panel}", "", *lines)
    )


def _command(command: Any, name: str) -> Iterator[str]:
    """Yield the lines of a command, or of a group and its commands."""
    yield from (f"### `{name}`", "", *_help_text(command.help or ""), "")
    if hasattr(command, "commands"):
        for child, subcommand in command.commands.items():
            yield from (
                line.replace("###", "####") for line in _command(subcommand, f"{name} {child}")
            )
        return
    rows = []
    for parameter in command.params:
        value = parameter.metavar
        if parameter.opts[0].startswith("-"):
            names = _code(", ".join([*parameter.opts, *parameter.secondary_opts]))
            label = names if getattr(parameter, "is_flag", False) else f"{names} {_code(value)}"
        else:
            label = _code(value)
        rows.append((label, _cell(parameter.help), _default_of(parameter)))
    if rows:
        yield from _table(("Argument or option", "Meaning", "Default"), rows)


def exit_statuses() -> str:
    """Return the exit statuses that the help of the commands states."""
    rows = []
    for name in COMMANDS:
        text = " ".join(inspect.cleandoc(load(name).help or "").split())
        _, heading, statuses = text.partition("[bold]Exit status[/bold]: ")
        if heading:
            rows.append((_code(f"regard {name}"), _cell(statuses)))
    return "\n".join(_table(("Command", "Exit status"), rows))


def error_codes() -> str:
    """Return the codes of errors with their meanings."""
    rows = [(_code(code), _cell(meaning)) for code, meaning in error_records.CODES.items()]
    return "\n".join(_table(("Code", "Meaning"), rows))


def _default_of(parameter: Any) -> str:
    """The default as the help of the command shows it."""
    if parameter.required:
        return "required"
    if isinstance(parameter.show_default, str):
        return _cell(parameter.show_default)
    if not parameter.show_default or parameter.default in (None, False, (), []):
        return ""
    return _code(str(parameter.default))


def _help_text(text: str) -> Iterator[str]:
    """Yield a help text, with its indented examples as one block of code."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    for is_code, part in itertools.groupby(paragraphs, lambda one: one.startswith("  ")):
        if is_code:
            yield from (
                "```sh",
                *(" ".join(one.split()) for one in part),
                "```",
                "",
            )
        else:
            for one in part:
                yield from (_STYLE.sub("**", " ".join(one.split())), "")


class _Key(NamedTuple):
    """A key of the configuration, with its defaults by task."""

    section: tuple[str, ...]
    kind: str
    summary: str
    name: str
    meaning: str


def configuration() -> str:
    """Return every key of the configuration, section by section, with its default in each task."""
    names = list(tasks.TASKS.own)
    defaults: dict[_Key, dict[str, str]] = {}
    for task in names:
        for key, default in _keys(config_class(task), None, (), task):
            defaults.setdefault(key, {})[task] = default
    order = {name: number for number, name in enumerate(config_class(names[0]).model_fields)}
    keys = sorted(defaults, key=lambda key: order[key.section[0]] if key.section else -1)
    lines: list[str] = []
    for path, users, variants in _sections(keys, defaults):
        label = f"`{'.'.join(path)}`" if path else "Top level"
        level = "#" * min(max(len(path), 1) + 1, 4)
        label += _tasks(users, names)
        if len(variants) > 1 and max(map(len, variants.values())) > _SHORT:
            for (kind, summary), rows in variants.items():
                lines += [f"{level} {label}: `{kind}`", "", summary, ""]
                lines += _table(_HEAD, [_row(key, defaults[key], users, names) for key in rows])
            continue
        lines += [f"{level} {label}", ""]
        if len(variants) == 1:
            ((_, summary),) = variants
            lines += [summary, ""]
        rows = []
        for (kind, summary), own in variants.items():
            rows += [(_code(f"type: {kind}"), _cell(summary), "")] if len(variants) > 1 else []
            rows += [
                _row(key, defaults[key], users, names)
                for key in own
                if len(variants) == 1 or key.name != "type"
            ]
        lines += _table(_HEAD, rows)
    return "\n".join(lines)


def _sections(
    keys: Sequence[_Key], defaults: dict[_Key, dict[str, str]]
) -> Iterator[tuple[tuple[str, ...], set[str], dict[tuple[str, str], list[_Key]]]]:
    """Yield each section with its tasks and its keys by type; tasks may share a path only."""
    groups: dict[tuple[tuple[str, ...], frozenset[str]], dict[tuple[str, str], list[_Key]]] = {}
    tasks_of: dict[tuple[tuple[str, ...], str, str], set[str]] = {}
    for key in keys:
        tasks_of.setdefault((key.section, key.kind, key.summary), set()).update(defaults[key])
    for key in keys:
        users = frozenset(tasks_of[key.section, key.kind, key.summary])
        variants = groups.setdefault((key.section, users), {})
        variants.setdefault((key.kind, key.summary), []).append(key)
    for (path, users), variants in groups.items():
        yield path, set(users), variants


def _tasks(users: set[str], names: Sequence[str]) -> str:
    """Return which tasks have a section, for its heading."""
    if users == set(names):
        return ""
    if len(users) > len(names) // 2:
        return f" (not {', '.join(name for name in names if name not in users)})"
    return f" ({', '.join(name for name in names if name in users)})"


def _row(
    key: _Key, defaults: dict[str, str], users: set[str], names: Sequence[str]
) -> tuple[str, str, str]:
    return _code(key.name), _cell(key.meaning), _by_task(defaults, users, names)


def _keys(
    model: type[BaseModel], values: BaseModel | None, path: tuple[str, ...], task: str
) -> Iterator[tuple[_Key, str]]:
    """Yield the keys of a section and of all sections in it, with their defaults.

    Without those that have no effect on the task.
    """
    kind = str(type_of(model) or "") if path else ""
    summary = inspect.cleandoc(model.__doc__ or "").partition("\n\n")[0] if path else ""
    nested: list[tuple[str, list[type[BaseModel]], Any]] = []
    for name, field in sorted(model.model_fields.items(), key=lambda item: item[0] != "type"):
        if field.annotation is type(None) or (*path, name) in inapplicable_keys(task):
            continue
        value = getattr(values, name) if values is not None else reference._default(field)
        models = models_in(field.annotation)
        if models:
            nested.append((name, models, value))
            types = [str(kind) for kind in map(type_of, models) if kind]
            is_union = len(types) > 1 and isinstance(value, BaseModel)
            chosen = type_of(type(value)) if is_union else None
            default = _code(str(chosen)) if chosen else "" if value is not None else _code("null")
            default = "required" if field.is_required() else default
            choices = f" [{' | '.join(types)}]" if len(types) > 1 else ""
            text = f"{field.description or ''}{choices}"
        else:
            text = reference._describe(field)
            default = "required" if field.is_required() else _code(reference._yaml(value))
        if name == "task":
            text, default = str(field.description), _code("translation")
        yield _Key(path, kind, " ".join(summary.split()), name, text), default
    for name, models, value in nested:
        for one in models:
            default_section = value if isinstance(value, one) else None
            yield from _keys(one, default_section, (*path, name), task)


def _by_task(defaults: dict[str, str], users: set[str], names: Sequence[str]) -> str:
    """Return the default of a key, with the tasks where defaults differ."""
    groups: dict[str, list[str]] = {}
    for name in names:
        if name in users:
            default = defaults.get(name)
            groups.setdefault("not available" if default is None else default, []).append(name)
    if len(groups) == 1:
        return next(iter(groups))
    texts = (f"{value} ({', '.join(group)})" for value, group in groups.items() if value)
    return "; ".join(texts)


def metrics() -> str:
    """Return the metrics with an example of their signature."""
    rows = []
    for name, spec in ((name, METRICS[name]) for name in METRICS.own):
        bounds = f"{_number(spec.low)} to {_number(spec.high)}"
        better = "" if spec.higher_is_better else "; lower is better"
        meaning = _VERB.sub("", _summary(spec.compute))
        word = meaning.partition(" ")[0]
        meaning = meaning.replace(word, word.capitalize(), 1) if word.islower() else meaning
        signature = _SIGNATURES.get(name) or _signature(name, spec.output_kind)
        rows.append((_code(name), _cell(meaning), f"{bounds}{better}", _code(signature)))
    lines = [*_table(("Metric", "Meaning", "Range", "Signature"), rows)]
    for name in METRICS.own:
        if more := _details(METRICS[name].compute):
            lines += [f"**`{name}`**: {more}", ""]
    return "\n".join(lines)


def _details(function: Callable[..., Any]) -> str:
    """Return the second paragraph of a docstring, unless it is a list of arguments."""
    paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")[1:2]
    text = " ".join(" ".join(paragraphs).split())
    return "" if text.startswith(("Args:", "Raises:", "Returns:")) else _cell(text)


def _summary(function: Callable[..., Any]) -> str:
    """Return the first sentence of a function's docstring, or that of the function around it."""
    text = function.__doc__
    if not text:
        around = function.__qualname__.partition(".")[0]
        text = getattr(inspect.getmodule(function), around).__doc__
    return " ".join(inspect.cleandoc(text or "").partition("\n\n")[0].split())


def _signature(name: str, kind: str) -> str:
    """Return the signature of a metric of a tiny corpus."""
    rows = _ROWS["text" if kind == "any" else kind]
    return compute([name], rows)[0].signature


def _number(limit: float | None) -> str:
    return "∞" if limit is None else f"{limit:g}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table in Markdown."""
    yield from (f"| {' | '.join(head)} |", f"| {' | '.join('---' for _ in head)} |")
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def _code(text: str) -> str:
    """Return a text as code in a cell of a table."""
    return f"`{text.replace('|', chr(92) + '|')}`" if text else ""


def _cell(text: str) -> str:
    """Return a text for a cell: code stays, other special characters do not format anything."""
    parts = re.split("(`+[^`]+`+)", " ".join(text.split()))
    plain = (
        re.sub(r"([*_<>\[\]{}$~])", r"\\\1", part) if i % 2 == 0 else part.replace("``", "`")
        for i, part in enumerate(parts)
    )
    return "".join(plain).replace("|", "\\|")


GENERATORS: dict[str, Callable[[], str]] = {
    "commands": commands,
    "configuration": configuration,
    "error_codes": error_codes,
    "exit_statuses": exit_statuses,
    "metrics": metrics,
}
