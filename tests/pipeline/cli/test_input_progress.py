"""The prompt for typed inputs, and the number of lines that were read, in a real terminal."""

import os
import pty
import subprocess
import sys

import pytest

CODE = """
from regard.pipeline.cli import terminal
with terminal.input_progress({has_inputs}) as on_read:
    for lines in (0, 1, 2000):
        on_read(lines)
"""
PROMPT = "Type an input on each line. Ctrl-D ends.\r\n> > > \r\n"


def terminal_output(typed, printed, has_inputs=False):
    """Run in a terminal, with standard input and output in it or not; return what it shows."""
    controller, slave = pty.openpty()
    try:
        subprocess.run(
            [sys.executable, "-c", CODE.format(has_inputs=has_inputs)],
            stdin=slave if typed else subprocess.DEVNULL,
            stdout=slave if printed else subprocess.DEVNULL,
            stderr=slave,
            env={**os.environ, "TERM": "xterm"},
            check=True,
        )
        os.write(slave, b"END")
        text = b""
        while not text.endswith(b"END"):
            text += os.read(controller, 4096)
    finally:
        os.close(controller)
        os.close(slave)
    return text.removesuffix(b"END").decode()


@pytest.mark.parametrize("printed", [True, False])
def test_typed_inputs_have_a_prompt(printed):
    assert terminal_output(typed=True, printed=printed) == PROMPT


def test_lines_of_a_file_are_counted():
    assert "2,000 lines" in terminal_output(typed=False, printed=False)


@pytest.mark.parametrize(("typed", "has_inputs"), [(False, False), (True, True)])
def test_outputs_are_not_mixed_with_anything(typed, has_inputs):
    assert terminal_output(typed, printed=True, has_inputs=has_inputs) == ""


def test_without_a_terminal_nothing_is_shown():
    code = [sys.executable, "-c", CODE.format(has_inputs=False)]
    result = subprocess.run(code, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    assert result.stderr == b""
