"""Errors as JSON values: the same six keys for every command that fails with ``--json``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from regard.core.errors import (
    ConfigError,
    DataError,
    EnvironmentFault,
    Failure,
    NotFoundError,
    UserError,
)
from regard.pipeline.cli import terminal

if TYPE_CHECKING:
    from regard.pipeline.runs.outcome import Outcome

USAGE = "usage"
STEP_FAILED = "step_failed"
INTERRUPTED = "interrupted"
INTERNAL = "internal"
_OTHER = "invalid_input"
# Every code, with its meaning. The others are those of the classes of `UserError`.
CODES = {
    USAGE: "The command, an option or an argument is invalid.",
    ConfigError.code: "A key or the syntax of a YAML file is invalid; one error for each.",
    DataError.code: "A data file, a row or an input is invalid.",
    NotFoundError.code: "A file, model, version, run, pipeline or data set does not exist.",
    EnvironmentFault.code: "The machine, its disk, a package, a variable or a server.",
    _OTHER: "Another mistake that you can fix.",
    STEP_FAILED: "A node, or a model of a comparison, failed for a reason of its own.",
    INTERRUPTED: "Ctrl-C.",
    INTERNAL: "A bug. Standard error has the traceback.",
}
INTERRUPTED_STATUS = 130
_LINE = re.compile(r"(?P<file>.+?):(?P<line>\d+)(?:: (?P<key>.+))?")
_ADDRESS = re.compile(r"(grpcs?|https?)://\S+|(localhost|\[[\da-f:.]+\]|(\d+\.){3}\d+):\d+")
_ASSIGNMENT = re.compile(r"--set (?P<key>[^\s=:]+).*", re.DOTALL)
_ARGUMENT = re.compile(r"[A-Z][A-Z@|]+")
_VARIABLE = re.compile(r"[A-Z]+(_[A-Z]+)+")


def record(
    code: str,
    message: str,
    file: str | None = None,
    line: int | None = None,
    key: str | None = None,
    remedy: str | None = None,
) -> dict[str, Any]:
    """Return an error as JSON values.

    Args:
        code: One of `CODES`.
        message: What is wrong.
        file: The file.
        line: Its line, from 1.
        key: The key of the configuration, the option, the argument, the variable of the
            environment, the name or the address of a server.
        remedy: How to fix it.
    """
    return {
        "code": code,
        "file": file or None,
        "line": line,
        "key": key or None,
        "message": message,
        "remedy": remedy,
    }


def of_user_error(error: UserError) -> list[dict[str, Any]]:
    """Return a record for an error of the user; for a configuration, one for each mistake."""
    if isinstance(error, ConfigError) and not error.where:
        return list(_of_config_error(error))
    return [_located(error.code, error.message, error.where, error.remedy)]


def of_failure(failure: Failure | None) -> dict[str, Any]:
    """Return the record of a failed node or run."""
    failure = failure or Failure(error="the reason is unknown")
    message = f"{failure.node} failed: {failure.error}" if failure.node else failure.error
    code = failure.code if failure.user else STEP_FAILED
    return _located(code, message, failure.where, failure.remedy)


def of_outcome(outcome: Outcome) -> dict[str, Any]:
    """Return the key ``errors`` of the output of a run, unless it succeeded."""
    if outcome.exit_status == INTERRUPTED_STATUS:
        return {"errors": [record(INTERRUPTED, "Interrupted. Completed steps are saved.")]}
    is_failed = outcome.failure is not None or outcome.exit_status == 1
    return {"errors": [of_failure(outcome.failure)]} if is_failed else {}


def of_usage_error(error: Any) -> dict[str, Any]:
    """Return the record of an invalid command, which Typer has found."""
    parameter, context = getattr(error, "param", None), getattr(error, "ctx", None)
    key = getattr(error, "option_name", None)
    if parameter is not None:
        is_option = parameter.param_type_name == "option"
        key = max(parameter.opts, key=len) if is_option else parameter.metavar
    remedy = f"`{context.command_path} --help` explains the command." if context else None
    return record(USAGE, error.format_message(), key=key, remedy=remedy)


def _of_config_error(error: ConfigError) -> Iterator[dict[str, Any]]:
    for problem in error.problems:
        place = (problem.file, problem.line, problem.key)
        yield record(ConfigError.code, problem.text, *place, remedy=error.remedy)
    if not error.problems:  # its lines are FILE:LINE: KEY: MESSAGE
        for text in error.message.splitlines():
            match = _LINE.fullmatch(text)
            key, _, message = (match["key"] if match and match["key"] else text).rpartition(": ")
            file, line = (match["file"], int(match["line"])) if match else (None, None)
            yield record(ConfigError.code, message, file, line, key, error.remedy)


def _located(
    code: str | None, message: str, where: str | None, remedy: str | None
) -> dict[str, Any]:
    """Return a record with the file, the line and the key that a place names.

    The message begins with what the place says about a key, such as the address of a database.
    """
    if where == terminal.OUTPUT:  # which is no file or key of the user
        return record(code or _OTHER, f"{where}: {message}", remedy=remedy)
    file, line, key, implied = _parse(where) if where else (None, None, None, _OTHER)
    separator = " " if key and key.startswith("-") else ": "
    key, _, detail = (key or "").partition(separator)
    message = f"{detail}: {message}" if detail else message
    return record(code or implied, message, file, line, key.rstrip(","), remedy)


def _parse(where: str) -> tuple[str | None, int | None, str | None, str]:
    """Return the file, the line and the key of a place, and the code of a mistake there.

    After an option and a space, or another key and ``: ``, the key has more about the place.
    """
    if _ADDRESS.fullmatch(where):
        return None, None, where, _OTHER
    if match := _LINE.fullmatch(where):
        code = ConfigError.code if match["key"] else _OTHER
        return match["file"], int(match["line"]), match["key"], code
    if match := _ASSIGNMENT.fullmatch(where):
        return None, None, match["key"], ConfigError.code
    if where.startswith("-"):
        return None, None, where, USAGE
    from regard.pipeline.config.config import Config  # half a second that few errors need

    name, _, key = where.partition(": ")
    if _VARIABLE.fullmatch(name):
        return None, None, where, EnvironmentFault.code
    if _ARGUMENT.fullmatch(name):
        return None, None, where, USAGE
    if name.partition(".")[0] in Config.model_fields and not os.path.exists(name):
        return None, None, where, ConfigError.code
    if os.sep in name or "." in name or os.path.exists(name):
        return name, None, key or None, ConfigError.code if key else _OTHER
    return None, None, where, _OTHER
