"""The file that a search writes: the user's configuration with the best values."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import os
import shlex
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from regard.components.common.references import restore_references
from regard.components.tuner import trial_table
from regard.components.tuner.space import lookup, replace_values
from regard.core.errors import EnvironmentFault, UserError
from regard.core.files import atomic_path, temporary_name
from regard.core.formatting import format_count
from regard.core.yaml_text import to_yaml
from regard.pipeline.config.changes import split_option
from regard.pipeline.config.load import load

if TYPE_CHECKING:
    from regard.pipeline.config import Config


@dataclasses.dataclass(frozen=True)
class OriginalConfig:
    """The user's file as it was when the search began; edits during the search have no effect."""

    path: Path
    text: str
    config: Config

    @classmethod
    def of(cls, config: Config) -> OriginalConfig:
        """Return a configuration with the text of its file; NAME.yaml if it has none."""
        if not config.origin.file:
            return cls(Path(f"{config.name}.yaml"), to_yaml(config.recorded()), config)
        path = Path(config.origin.file)
        return cls(path, path.read_text(encoding="utf-8-sig"), config)


def output_path(source: Path, path: Path | None, force: bool) -> Path:
    """Return where to write: ``path``, or NAME.tuned.yaml next to the original.

    Raises:
        UserError: the file exists, or is a folder or the original itself.
    """
    path = path or source.with_name(f"{source.stem}.tuned{source.suffix}")
    if path.is_dir():
        raise UserError("The output is a folder.", str(path), "Pass a file with -o FILE.")
    if path.exists() and source.exists() and os.path.samefile(path, source):
        raise UserError(
            "The output is the configuration itself.", f"-o {path}", "Choose another file."
        )
    if path.exists() and not force:
        raise UserError(
            "The file exists.", str(path), "Overwrite it with --force, or pass -o FILE."
        )
    return path


def check_output(original: OriginalConfig, path: Path, values: Mapping[str, JsonValue]) -> None:
    """Write the file with any values and delete it, to find problems before the search.

    Raises:
        UserError: it cannot be written, or would not contain the values.
    """
    temporary = path.with_name(temporary_name(path.name))
    try:
        _write(original, temporary, path, values, "")
    except OSError as error:
        message = f"The file cannot be written: {error.strerror}."
        raise EnvironmentFault(message, str(path), "Choose another file with -o FILE.") from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def write_tuned_config(
    original: OriginalConfig, path: Path, table: trial_table.TrialTable, table_path: str
) -> None:
    """Write the original with the best values, and with their origin as a comment.

    Args:
        original: the user's file.
        path: the file to write.
        table: the Tuner's ``trials.json``.
        table_path: the path of the table, for the error message.

    Raises:
        UserError: the file can no longer be written.
    """
    values = table["trials"][0]["values"]
    try:
        with atomic_path(path) as temporary:
            _write(original, temporary, path, values, _header(original, table))
    except (OSError, UserError) as error:
        reason = error.message if isinstance(error, UserError) else error.strerror
        raise EnvironmentFault(
            f"The search completed, but its file cannot be written: {reason}",
            where=str(path),
            remedy=f"Best values: {trial_table.format_values(values)}. All trials: {table_path}. "
            "Run the same command with another -o to write them without another search.",
        ) from None


def edit_yaml(text: str, values: Mapping[str, JsonValue], assignments: Iterable[str] = ()) -> str:
    """Return a YAML mapping with other values at some keys; comments and quotes are preserved.

    Args:
        text: the mapping.
        values: the values by key, such as ``training.learning_rate``. Missing sections are added.
        assignments: values of ``--set`` as ``KEY=VALUE``, which come first.

    Raises:
        YAMLError: an alias cannot be replaced without changing what it refers to.
    """
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096  # do not wrap long lines
    yaml.brace_single_entry_mapping_in_flow_sequence = True
    yaml.indent(mapping=2, sequence=4, offset=2)
    document: Any = yaml.load(text)
    edits = [(key, yaml.load(value)) for key, value in map(split_option, assignments)]
    edits += [(key, restore_references(value, {})) for key, value in values.items()]
    for key, value in edits:
        *sections, name = key.split(".")
        parent = document
        for section in sections:
            if not isinstance(parent, list) and not isinstance(parent.get(section), dict | list):
                parent[section] = {}
            parent = lookup(parent, section)
        parent[int(name) if isinstance(parent, list) else name] = value
    stream = io.StringIO()
    yaml.dump(document, stream)
    return stream.getvalue()


def _header(original: OriginalConfig, table: trial_table.TrialTable) -> str:
    """Return the comment that says where the values come from."""
    best = table["trials"][0]
    before = original.config.model_dump(mode="json")
    day = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    options = original.config.origin.arguments[1:]
    command = shlex.join(["regard", "tune", original.path.name, *options])
    lines = [f"Tuned by `{command}` on {day}:"]
    for key, value in best["values"].items():
        old = functools.reduce(lookup, key.split("."), before)
        note = "unchanged" if old == value else f"was {trial_table.format_value(old)}"
        lines.append(f"  {key}: {trial_table.format_value(value)}   ({note})")
    score = trial_table.format_score(table["objective"], best["score"])
    lines.append(
        f"Trial {best['trial']} of {format_count(len(table['trials']), 'trial')} "
        f"({table['algorithm']}): {score} on the eval split after "
        f"{format_count(best['epochs'], 'epoch')}."
    )
    return "".join(f"# {line}\n" for line in lines) + "\n"


def _write(
    original: OriginalConfig,
    temporary: Path,
    path: Path,
    values: Mapping[str, JsonValue],
    header: str,
) -> None:
    """Write the file under a temporary name, and check that it reads back as intended."""
    config = original.config
    expected = type(config).model_validate(replace_values(config.model_dump(mode="json"), values))
    try:
        text = edit_yaml(original.text, values, config.origin.assignments)
        temporary.write_text(header + text, encoding="utf-8")
        matches = load(temporary).model_dump() == expected.model_dump()
    except (UserError, YAMLError):
        matches = False
    if matches:
        return
    source = original.path
    if source.parent.resolve() != path.parent.resolve():
        message = f"Relative paths in {source} would be wrong in {path.parent.resolve()}."
        raise UserError(message, f"-o {path}", f"Choose a file in {source.parent.resolve()}.")
    message = f"The values of {', '.join(values)} cannot be inserted into this file."
    remedy = "If their sections use anchors (&) and aliases (*), write them out."
    raise UserError(message, str(source), remedy)
