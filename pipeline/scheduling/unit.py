"""A systemd unit that keeps a schedule: of the user, with this interpreter and this workspace."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

from components.errors import UserError
from components.files import atomic_write
from pipeline.workspace import DATA_VARIABLE, VARIABLE, Workspace

_UNIT = """\
# Made by `regard schedule --systemd`; edit it, or make it again with --force.
[Unit]
Description=Regard: the schedule of {name}
# A disk may come later than we do, and the file be mended: ten starts, then it stays down.
StartLimitIntervalSec=900
StartLimitBurst=10

[Service]
ExecStart={command}
WorkingDirectory={folder}
{environment}
Restart=on-failure
RestartSec=30
# The scheduler alone is asked to stop, and asks the run, which goes on at the next start. If it is
# killed or crashes, systemd ends its run, too.
KillMode=mixed
KillSignal=SIGINT
TimeoutStopSec=60

[Install]
WantedBy=default.target
"""
_REFERENCE = re.compile(r"(?<!\$)\$\{([A-Za-z_]\w*)")
_OURS = (VARIABLE, DATA_VARIABLE)


def unit(
    name: str,
    config: Path,
    options: Sequence[str],
    workspace: Workspace,
    environment: Mapping[str, str] | None = None,
) -> str:
    """The text of the unit.

    Args:
        name: the pipeline's.
        config: its file.
        options: of ``regard schedule``, beside the file.
        workspace: where everything lies.
        environment: of which the variables are taken that the file names; None: this process's.
    """
    environment = os.environ if environment is None else environment
    command = [sys.executable, "-m", "pipeline.cli", "schedule", str(config.absolute()), *options]
    variables = {
        VARIABLE: str(workspace.home),
        DATA_VARIABLE: str(workspace.data_root(environment)),
        "PYTHONUNBUFFERED": "1",
    }
    root = str(Path(__file__).resolve().parents[2])
    if root != sysconfig.get_paths()["purelib"]:  # a checkout that is not installed
        variables["PYTHONPATH"] = root
    text = config.read_text(encoding="utf-8-sig")
    for variable in _REFERENCE.findall(text):
        if variable not in _OURS and variable in environment:
            variables[variable] = environment[variable]
    return _UNIT.format(
        name=name,
        command=" ".join(_quoted(word.replace("$", "$$")) for word in command),
        folder=str(Path.cwd()).replace("%", "%%"),
        environment="\n".join(
            f"Environment={_quoted(f'{key}={value}')}" for key, value in variables.items()
        ),
    )


def place(name: str, environment: Mapping[str, str] | None = None) -> Path:
    """Where the units of the user are."""
    environment = os.environ if environment is None else environment
    home = environment.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(home) / "systemd" / "user" / f"regard-{name}.service"


def write(path: Path, text: str, force: bool) -> None:
    """Writes the unit; one that is the same already stays.

    Raises:
        UserError: there is another one, or it cannot be written.
    """
    try:
        there = path.read_text(encoding="utf-8") if path.exists() else None
        if there is not None and there != text and not force:
            raise UserError(
                "there is another unit already", where=str(path), remedy="--force replaces it."
            )
        atomic_write(path, text)
    except OSError as error:
        raise UserError(
            f"the unit cannot be written: {error.strerror}",
            where=str(path),
            remedy="Give a file with --output, or - to print it.",
        ) from error


def commands(path: Path) -> list[str]:
    """What the user has to type then."""
    return [
        "systemctl --user daemon-reload",
        f"systemctl --user enable --now {path.name}",
        f"journalctl --user --follow --unit {path.name}",
        "loginctl enable-linger   (so that it goes on when you log out)",
    ]


def _quoted(text: str) -> str:
    """A word of a unit: percent signs are systemd's own, and so are quotes and backslashes."""
    text = text.replace("%", "%%")
    if re.fullmatch(r"[\w@%+=:,./$-]+", text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
