"""Characters that XML forbids, in blocks of any size."""

import pytest

from regard.components.data.xml_characters import find_forbidden, mark_forbidden

CONTENT = b"a&#x1F;b&#65;&#xe9;\x02c&amp;&#1234567;&#99999999999;&#xFFFE;&#9;d&"
MARKED = (
    b"a&#xFDD0;001F;b&#65;&#xe9;&#xFDD0;0002;c&amp;&#xFDD0;12D687;&#xFDD0;FFFFFFFF;"
    b"&#xFDD0;FFFE;&#9;d&"
)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_blocks(size):
    blocks = [CONTENT[start : start + size] for start in range(0, len(CONTENT), size)]

    assert b"".join(mark_forbidden(blocks)) == MARKED


@pytest.mark.parametrize(
    ("text", "code"),
    [("a\ufdd0001F;b", "U+001F"), ("a&#xFDD0;0002;", "U+0002"), ("a\ufdd0", "U+FDD0")],
)
def test_marks(text, code):
    assert code in find_forbidden(text)


def test_a_run_of_control_characters_has_one_mark():
    assert b"".join(mark_forbidden([b"a" + b"\x01\0" * 10**6 + b"b"])) == b"a&#xFDD0;0001;b"


def test_other_texts():
    assert find_forbidden("a & b 001F;") is None
