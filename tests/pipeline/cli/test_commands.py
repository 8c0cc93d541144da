"""The table of commands."""

import itertools
import re
import sys

import click
import pytest
import typer
from typer.testing import CliRunner

from regard.models.tasks import TASKS
from regard.pipeline.cli.app import app
from regard.pipeline.cli.commands import COMMANDS, load, summary


@pytest.mark.parametrize("name", COMMANDS)
def test_a_summary_begins_the_help_of_its_command(name):
    command = load(name)
    assert command.name == name
    assert command.rich_help_panel == COMMANDS[name].panel
    assert command.help.partition("\n\n")[0] == summary(name)


def test_the_help_and_the_completion_import_no_command(monkeypatch):
    for entry in COMMANDS.values():
        monkeypatch.setitem(sys.modules, f"regard.pipeline.cli.{entry.module}", None)
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert all(name in result.stdout for name in COMMANDS)
    group = typer.main.get_command(app)
    completed = group.shell_complete(click.Context(group), "re")
    assert [item.value for item in completed] == ["report", "registry"]
    assert completed[0].help


def test_an_unknown_command_is_a_user_error():
    result = CliRunner().invoke(app, ["rnu"])
    assert result.exit_code == 2
    assert "rnu" in result.output


def help_of(*names):
    """The lines of a help on a terminal of 80 columns."""
    environment = {"COLUMNS": "80", "TERM": "dumb"}
    return CliRunner().invoke(app, [*names, "--help"], env=environment).output.splitlines()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_fits_80_columns(name):
    children = getattr(load(name), "commands", {})
    for names in [(name,), *((name, child) for child in children)]:
        lines = help_of(*names)
        assert [line for line in lines if re.search(r"\[\[|<\w+[>|\[]", line)] == []
        for line, following in itertools.pairwise(lines):
            if not re.match(r" \S", following):  # no prose
                continue
            assert not re.match(r"   \S", line), "an example has one line"
            if re.match(r" \S", line):
                assert len(f"{line.rstrip()} {following.split()[0]}") > 79, "the word would fit"


def test_help_names_the_tasks():
    text = " ".join(" ".join(help_of("init")).split())
    assert all(task in text for task in TASKS.own)
