import pytest

from regard.components.checks.html_entities import find_entity
from tests.components.corpora import affected


@pytest.mark.parametrize(
    ("text", "entity"),
    [
        ("It &apos;s late .", "&apos;"),
        ("&quot;Yes&quot;", "&quot;"),
        ("a &#124; b", "&#124;"),
        ("a &#x7C; b", "&#x7C;"),
        ("stone &amp; tile", "&amp;"),
        ("10&nbsp;km", "&nbsp;"),
        ("AT&T; R&D; black & white; x &y;", None),
        ("for (;;) a && b; c", None),
        ("&;&#;&#x;&", None),
    ],
)
def test_html_entities(text, entity):
    assert find_entity(text) == entity
    names = affected([["a"]], [["b", text]], html_entities={})
    assert names == ["html_entities"] * bool(entity)
