"""Declarations of arguments and options, and those that several commands share."""

import copy
import inspect
import os
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand, TyperGroup

from regard.core.errors import UserError
from regard.core.storage import refuse_uri, registry_folder
from regard.pipeline.cli import completion


class _PlainHelp:
    """Shows no type for flags and arguments in the help, and fills its lines."""

    help: str | None

    def get_params(self, ctx: Any) -> Any:
        """Return arguments and options."""
        params = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
            elif param.param_type_name == "argument":  # it has a name, and a text
                param.display_type_rich = lambda ctx: None
        return params

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        filled = copy.copy(self)
        filled.help = fill(self.help or "")
        super(_PlainHelp, filled).format_help(ctx, formatter)  # type: ignore[misc]


def fill(text: str) -> str:
    """Return a help with each paragraph in one line, except examples, which are indented.

    Typer keeps line breaks, and removes an indentation that all lines have. Markup without a text
    keeps it.
    """
    return "\n\n".join(
        f"[bold][/bold]{paragraph}" if paragraph.startswith("  ") else " ".join(paragraph.split())
        for paragraph in inspect.cleandoc(text).split("\n\n")
    )


class Command(_PlainHelp, TyperCommand):
    """A command, which refuses URIs as paths."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        for parameter in self.params:
            value = ctx.params.get(str(parameter.name))
            for path in value if isinstance(value, list) else [value]:
                if isinstance(path, Path):
                    # As the user gave it: a path has no double slash.
                    uri = os.fspath(path).replace(":/", "://", 1)
                    is_option = parameter.param_type_name == "option"
                    option = max(parameter.opts, key=len)  # not its short form
                    refuse_uri(uri, option if is_option else option.upper())
        return super().invoke(ctx)


class Group(_PlainHelp, TyperGroup):
    """A group of commands."""


class App(typer.Typer):
    """A group of commands, to which functions are added as commands."""

    def __init__(self, cls: type[Group] = Group, **settings: Any):
        super().__init__(cls=cls, rich_markup_mode="rich", **settings)

    def command(self, name: str | None = None, **settings: Any) -> Any:
        """Add a command."""
        return super().command(name, cls=Command, **settings)


def argument(metavar: str, help: str, default: str = "", **settings: Any) -> Any:
    """Declare an argument.

    Args:
        metavar: its name in the help.
        help: a noun phrase or a sentence.
        default: the text that the help shows as its default value.
        settings: other settings of ``typer.Argument``.
    """
    return typer.Argument(metavar=metavar, help=help, show_default=default or False, **settings)


def option(names: str, metavar: str, help: str, default: str = "", **settings: Any) -> Any:
    """Declare an option with a value.

    Args:
        names: one or more names, separated by spaces, such as ``--out -o``.
        metavar: the name of its value in the help.
        help: a noun phrase or a sentence.
        default: the text that the help shows as its default value, if that is not the value itself.
        settings: other settings of ``typer.Option``.
    """
    return typer.Option(
        *names.split(), metavar=metavar, help=help, show_default=default or True, **settings
    )


def flag(names: str, help: str, **settings: Any) -> Any:
    """Declare an option without a value, with one or more names that spaces separate."""
    return typer.Option(*names.split(), help=help, **settings)


def command_group(help: str) -> App:
    """Return a group of commands, which shows its help if it is called without one."""
    return App(help=help, no_args_is_help=True)


ConfigArgument = Annotated[Path, argument("CONFIG", "The pipeline's YAML file.")]
ModelArgument = Annotated[
    str,
    argument(
        "MODEL",
        "NAME or NAME@VERSION in the registry, or a folder with a SavedModel.",
        autocompletion=completion.complete_version,
    ),
]
AnyModelArgument = Annotated[
    str,
    argument(
        "MODEL",
        "NAME or NAME@VERSION in the registry, a folder with a SavedModel, or the address of a "
        "served model, grpc://HOST:PORT/NAME.",
        autocompletion=completion.complete_version,
    ),
]
ServerOption = Annotated[
    str | None,
    option(
        "--server",
        "ADDRESS",
        "Server that runs the model NAME or NAME@VERSION: grpc://HOST:PORT or http://HOST:PORT "
        "(grpcs, https). REGARD_TOKEN is its token.",
        "none",
    ),
]
TagOption = Annotated[
    str | None,
    option("--tag", "TAG", "Tag of all texts, for a model with data.tags, for example de.", "none"),
]
MbrOption = Annotated[
    str | None,
    option(
        "--mbr",
        "UTILITY",
        "Draw samples, and choose the one that is most like all others by this metric: chrf "
        "(minimum Bayes risk decoding).",
        "none",
    ),
]
RegistryOption = Annotated[
    Path | None,
    option(
        "--registry",
        "DIR",
        "Model registry: a folder, or a URI such as s3://bucket/registry.",
        "$REGARD_HOME/registry",
        parser=registry_folder,
    ),
]
# CTranslate2 also has bfloat16, which would need PyTorch.
Quantization = Literal["float32", "int8", "int16", "float16"]
Engine = Literal["tensorflow", "ctranslate2"]
EngineOption = Annotated[
    Engine,
    option("--engine", "ENGINE", "tensorflow, or ctranslate2 for Transformers that write texts."),
]
QuantizationOption = Annotated[
    Quantization | None,
    option(
        "--quantization",
        "TYPE",
        "Type of the weights in CTranslate2: float32, float16, int16 or int8.",
        "float32",
    ),
]
SetOption = Annotated[
    list[str] | None,
    option(
        "--set",
        "KEY=VALUE",
        "Replace a value of the file, for example --set training.max_epochs=3; repeatable.",
        "none",
        autocompletion=completion.complete_key,
    ),
]
WaitOption = Annotated[bool, flag("--wait", "Wait for another run of this pipeline to end.")]
QuietOption = Annotated[bool, flag("--quiet -q", "Print errors only.")]
VerboseOption = Annotated[
    bool, flag("--verbose -v", "Print also the logs of the nodes, while they run.")
]
JsonOption = Annotated[bool, flag("--json", "Print JSON only.")]
# For a command whose output has a form of its own; `regard.pipeline.cli.app` reads it.
JsonErrorsOption = Annotated[bool, flag("--json", "Print errors as JSON.")]


def converted_type(engine: str, quantization: Quantization | None) -> Quantization | None:
    """Return the type of the weights in CTranslate2; None if it does not compute.

    Raises:
        UserError: a type is given for another engine.
    """
    if engine == "ctranslate2":
        return quantization or "float32"
    if quantization:
        remedy = "Use it with --engine ctranslate2."
        message = f"The engine {engine} does not convert weights."
        raise UserError(message, "--quantization", remedy)
    return None
