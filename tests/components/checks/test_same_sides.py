import pytest

from tests.components.corpora import affected


@pytest.mark.parametrize(
    ("inputs", "references", "same"),
    [
        ([["Tom!"]], [["Tom! "]], True),
        ([["Tom!"]], [["tom!"]], False),
        ([["a", "b"]], [["c", "b"]], True),
        ([["a"], ["a"]], [], False),  # both are inputs
        ([["15:10 €"]], [["15:10 €"]], False),  # no letters
        ([[" "]], [[""]], False),
    ],
)
def test_same_sides(inputs, references, same):
    assert affected(inputs, references, same_sides={}) == (["same_sides"] if same else [])
