import pytest

from regard.components.checks.markup import find_unpaired
from tests.components.corpora import affected


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("a <b>dog</b> <br> <x id='1'/> &amp;", None),
        ("<b><i>x</i></b> 1 < 2 > 0, <3", None),
        ("a <b>dog", "<b>"),
        ("a dog </b>", "</b>"),
        ("<b><i>x</b></i>", "</b>"),
        ("<B>x</b>", None),
        ("<b" * 10**5, None),
        ("<b>" * 10**5, "<b>"),
        ("<b" + " " * 10**5, None),
    ],
)
def test_markup(text, tag):
    assert find_unpaired(text) == tag
    names = affected([["a"]], [["b", text]], markup={})
    assert names == ["markup"] * bool(tag)
