"""Traces of earlier processing in texts."""

import pytest

from regard.components.data.text_checks import check_texts
from regard.components.data.text_markup import find_entity, find_tokenization
from tests.components.corpora import checks_of


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
    checks = checks_of(html_entities={})
    assert check_texts([["a"]], [["b", text]], checks) == ["html_entities"] * bool(entity)


@pytest.mark.parametrize(
    ("text", "trace"),
    [
        ("This is late .", " ."),
        ("Well , yes", " ,"),
        ("a man 's life", " 's"),
        ("a man &apos;s life", " &apos;s"),
        ("I ca n't see", " n't"),
        ("a six @-@ year @-@ old", " @-@"),
        ("Où est Tom ? Là ! Bien ; oui : non", None),
        ("He said 'stop' at .5 and ,5; wait ... and .NET", None),
        ("Tom's dog isn't here, is it.", None),
        ("rock 'n' roll in the '60s", None),
    ],
)
def test_tokenization(text, trace):
    assert find_tokenization(text) == trace
    assert check_texts([[text]], [["b"]], checks_of(tokenization={})) == ["tokenization"] * bool(
        trace
    )
