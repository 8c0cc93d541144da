import pytest

from regard.components.checks.control_characters import control_characters
from tests.components.corpora import affected


@pytest.mark.parametrize(
    ("text", "controls"),
    [
        ("two\tcolumns\r\nand lines", []),
        ("Stra\u00dfe, caf\u00e9, 漢字, e\u0301", []),
        ("sink\xad.", ["\xad"]),
        ("\ufeffstart", ["\ufeff"]),
        ("a\x07b\x9fc\x7f", ["\x07", "\x9f", "\x7f"]),
        ("\u202eabc\u202c \u200f", ["\u202e", "\u202c", "\u200f"]),
        ("one\rtwo\r\nthree\u2028four\u2029", ["\r", "\u2028", "\u2029"]),
        ("lost \ufffd and private \ue000\U00100000", ["\ufffd", "\ue000", "\U00100000"]),
        ("می\u200cخواهم, क्\u200dष, 👩\u200d🚀", []),
        ("ന്\u200d ന്\u200d, ه\u200d.", []),
        ("a\u200cb, end\u200d, می\u200c", ["\u200c", "\u200d", "\u200c"]),
        ("\U0001f3f4\U000e0067\U000e0062\U000e007f", []),  # a flag
        ("hidden \U000e0067", ["\U000e0067"]),
    ],
)
def test_control_characters(text, controls):
    assert control_characters(text) == controls
    assert affected([[text]], [], control_characters={}) == ["control_characters"] * bool(controls)
