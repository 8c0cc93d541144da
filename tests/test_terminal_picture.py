"""The picture of a terminal in README.md."""

import importlib.util
from pathlib import Path

FILE = Path(__file__).parents[1] / "docs" / "terminal_picture.py"
spec = importlib.util.spec_from_file_location("terminal_picture", FILE)
terminal_picture = importlib.util.module_from_spec(spec)
spec.loader.exec_module(terminal_picture)


def test_a_display_that_is_redrawn_is_shown_once():
    clear = "\r\x1b[2K\x1b[1A\x1b[2K"
    recorded = f"start\r\n\x1b[?25la 1\r\nb 1{clear}a 2\r\nb 2\r\n\x1b[?25hend\r\n"
    assert terminal_picture.last_lines(recorded) == ["start", "a 2", "b 2", "end", ""]


def test_the_picture_has_the_text_and_no_font_from_elsewhere():
    picture = terminal_picture.draw("make run", "\x1b[32m✓\x1b[0m Trainer\r\n", 40)
    assert "Trainer" in picture
    assert "make&#160;run" in picture
    assert "url(http" not in picture
