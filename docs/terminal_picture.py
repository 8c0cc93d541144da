"""Draw the output of commands in a terminal as an SVG picture, for README.md.

script --quiet --command "make run" run.log
python docs/terminal_picture.py "make run" run.log docs/run.svg
"""

import argparse
import io
import re
from pathlib import Path

from rich.console import Console
from rich.text import Text


def draw(title: str, recorded: str, width: int) -> str:
    """Return the picture of a terminal's final lines.

    Args:
        title: The title of the window.
        recorded: What programs wrote to a terminal, with its escape sequences.
        width: The width of the terminal in characters.
    """
    console = Console(record=True, width=width, file=io.StringIO())
    for line in last_lines(recorded):
        console.print(Text.from_ansi(line), no_wrap=True, overflow="ellipsis")
    # Fonts of the reader, as a picture must not load others from elsewhere.
    return re.sub(r"@font-face {.*?}", "", console.export_svg(title=title), flags=re.DOTALL)


def last_lines(recorded: str) -> list[str]:
    """Return the lines of a terminal at the end.

    Of the controls of the cursor, only those of Rich's displays are known: to clear a line, and to
    go to the line before.
    """
    lines = [""]
    for part in re.split(r"(\x1b\[1A|\x1b\[2K|\x1b\[\?25[hl]|\r|\n)", recorded):
        if part == "\x1b[1A":
            lines.pop()
        elif part == "\x1b[2K":
            lines[-1] = ""
        elif part == "\n":
            lines.append("")
        elif part != "\r" and not part.startswith("\x1b[?"):
            lines[-1] += part
    return lines


def main() -> None:
    """Draw a recorded file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("title", help="title of the window")
    parser.add_argument("recorded", type=Path, help="file that `script` wrote")
    parser.add_argument("picture", type=Path, help="SVG file to write")
    parser.add_argument("--width", type=int, default=100, help="characters of a line")
    arguments = parser.parse_args()
    recorded = arguments.recorded.read_bytes().decode("utf-8")
    recorded = re.sub(r"^Script started .*\n|\s*Script done .*$", "", recorded)
    picture = draw(arguments.title, recorded, arguments.width)
    arguments.picture.write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
