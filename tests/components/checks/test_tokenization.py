import pytest

from regard.components.checks.tokenization import find_tokenization
from tests.components.corpora import affected


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
    assert affected([[text]], [["b"]], tokenization={}) == ["tokenization"] * bool(trace)
