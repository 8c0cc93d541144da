"""The table of commands. A command is imported when it is called, not for the help of others."""

import ast
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from regard.core.suggestions import did_you_mean
from regard.pipeline.cli.options import App, Group


@dataclass(frozen=True)
class Entry:
    """A command or a group of commands.

    Attributes:
        panel: The panel of the help that lists it.
        module: The module in this folder that defines the function of its name, or ``app``.
    """

    panel: str
    module: str


_PIPELINES = "Pipelines"
_MODELS = "Models"
_KUBEFLOW = "Kubeflow Pipelines"
_DATA = "Data and configuration"
COMMANDS = {
    "run": Entry(_PIPELINES, "run"),
    "worker": Entry(_PIPELINES, "worker"),
    "validate": Entry(_PIPELINES, "validate"),
    "tune": Entry(_PIPELINES, "tune"),
    "schedule": Entry(_PIPELINES, "schedule"),
    "compare": Entry(_PIPELINES, "compare"),
    "report": Entry(_PIPELINES, "report"),
    "clean": Entry(_PIPELINES, "clean"),
    "runs": Entry(_PIPELINES, "runs"),
    "predict": Entry(_MODELS, "predict"),
    "evaluate": Entry(_MODELS, "evaluate"),
    "score": Entry(_MODELS, "score"),
    "serve": Entry(_MODELS, "serve"),
    "drift": Entry(_MODELS, "drift"),
    "lineage": Entry(_MODELS, "lineage"),
    "import": Entry(_MODELS, "import_model"),
    "export": Entry(_MODELS, "export"),
    "deploy": Entry(_MODELS, "deploy"),
    "registry": Entry(_MODELS, "registry"),
    "rollback": Entry(_MODELS, "registry"),
    "compile": Entry(_KUBEFLOW, "compile"),
    "submit": Entry(_KUBEFLOW, "submit"),
    "init": Entry(_DATA, "config"),
    "data": Entry(_DATA, "data"),
    "config": Entry(_DATA, "config"),
    "doctor": Entry(_DATA, "doctor"),
}


class Stopped(Exception):
    """Keeps Typer from turning the reason, an interruption or a closed output, into a status."""

    def __init__(self, reason: BaseException):
        super().__init__(reason)
        self.reason = reason


class CommandTable(Group):
    """The group of all commands of the table."""

    _shows_summaries = False

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; for the help of all commands one with a summary alone."""
        if cmd_name not in COMMANDS:
            return None
        if self._shows_summaries:
            panel, text = COMMANDS[cmd_name].panel, summary(cmd_name)
            return TyperCommand(cmd_name, help=text, rich_help_panel=panel)
        return load(cmd_name)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except (BrokenPipeError, KeyboardInterrupt) as error:
            raise Stopped(error) from error

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name, the command and the rest of the arguments."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            suggestion = did_you_mean(args[0], COMMANDS).rstrip()
            ctx.fail(f"No such command {args[0]!r}. {suggestion}".rstrip())
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        with self._summaries():
            super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Return the names that begin with a text, for the completion of the shell."""
        with self._summaries():
            return super().shell_complete(ctx, incomplete)

    @contextlib.contextmanager
    def _summaries(self) -> Iterator[None]:
        self._shows_summaries = True
        try:
            yield
        finally:
            self._shows_summaries = False


def load(name: str) -> Any:
    """Import a command or a group of commands."""
    entry = COMMANDS[name]
    module = import_module(f"regard.pipeline.cli.{entry.module}")
    table = App(add_completion=False)
    if hasattr(module, name):
        table.command(name, rich_help_panel=entry.panel)(getattr(module, name))
        command = typer.main.get_command(table)
    else:
        table.add_typer(module.app, name=name, rich_help_panel=entry.panel)
        command = typer.main.get_group(table).commands[name]
    return command


def summary(name: str) -> str:
    """Return the first sentence of the help of a command, read from the source of its module."""
    source = Path(__file__).with_name(f"{COMMANDS[name].module}.py").read_text(encoding="utf-8")
    module = ast.parse(source)
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return (ast.get_docstring(node) or "").partition("\n\n")[0]
    for call in ast.walk(module):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "command_group":
            return str(ast.literal_eval(call.args[0]))
    raise ValueError(f"The module of the command {name} does not define it.")
