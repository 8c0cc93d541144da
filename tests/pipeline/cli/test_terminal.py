"""Control characters of file names, data and messages do not reach the terminal."""

import io
import json
import re

import pytest
from rich.table import Table
from rich.text import Text

from regard.core.errors import UserError
from regard.pipeline.cli import terminal

# Sets the title of the window, writes the clipboard, and begins a sequence without an escape.
HOSTILE = "a\x1b]0;title\x07b\x1b]52;c;aGk=\x1b\\c\x9b31md\re\x7ff\x85"
# Rich drops the bell and the carriage return.
VISIBLE = r"a\x1b]0;titleb\x1b]52;c;aGk=\x1b\c\x9b31mde\x7ff\x85"


def written_controls(text: str) -> list[str]:
    return [c for c in text if c not in "\n\t" and (ord(c) < 32 or 127 <= ord(c) < 160)]


def test_lines_and_errors(capsys):
    terminal.print_lines(HOSTILE)
    terminal.print_error(UserError(HOSTILE, HOSTILE, HOSTILE))
    terminal.print_notes([HOSTILE])
    output = capsys.readouterr()
    assert output.out == f"{VISIBLE}\n"
    assert output.err.count(VISIBLE) == 4
    assert not written_controls(output.out + output.err)


def test_tables_and_fields(capsys):
    terminal.print_table(["name"], [[HOSTILE]], terminal.out())
    terminal.print_fields([("name", HOSTILE)], terminal.out())
    table = Table(HOSTILE, title=HOSTILE)
    table.add_row(Text(HOSTILE, "bold"))
    terminal.out().print(table, width=200)
    output = capsys.readouterr().out
    assert output.count("title") == 5
    assert not written_controls(output)


def test_a_terminal_wraps_texts_but_no_paths():
    console = terminal._console(file=io.StringIO(), force_terminal=True, width=40)
    path = f"/{'a folder/' * 20}report.html"
    terminal.print_fields([("report", path), ("decision", "a long sentence " * 9)], console)
    first, *others = re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue()).splitlines()
    assert first == f"report    {path}"
    assert len(others) > 1
    assert max(map(len, others)) <= 40
    assert others[1].startswith(" " * 10)


def test_styles_remain(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    console = terminal._console(file=io.StringIO(), force_terminal=True, color_system="standard")
    console.print(Text(HOSTILE, "bold"), soft_wrap=True)
    assert console.file.getvalue() == f"\x1b[1m{VISIBLE}\x1b[0m\n"


def test_json(capsys):
    terminal.print_json({HOSTILE: [HOSTILE, "é \u2028"]})
    output = capsys.readouterr().out
    assert json.loads(output) == {HOSTILE: [HOSTILE, "é \u2028"]}
    assert "é" in output
    assert not written_controls(output)


def test_names_that_are_not_utf_8(monkeypatch):
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="strict")
    monkeypatch.setattr("sys.stdout", output)
    terminal.print_lines("bad\udcff.yaml")
    terminal.print_json("bad\udcff.yaml")
    terminal.print_errors([{"file": "bad\udcff.yaml"}])
    output.flush()
    text, *values = output.buffer.getvalue().decode().split("\n", 1)
    assert text == r"bad\udcff.yaml"
    assert values == ['"bad\\udcff.yaml"\n{"errors": [{"file": "bad\\udcff.yaml"}]}\n']


@pytest.mark.parametrize("text", ["tab\tand\nlines", "日本語 العربية", "é\u200f"])
def test_texts_remain(capsys, text):
    terminal.out().print(text, soft_wrap=True)
    assert capsys.readouterr().out.expandtabs() == f"{text}\n".expandtabs()
