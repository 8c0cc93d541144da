"""Rows of an answer: of every dimension what is real, as the tasks' signatures have them."""

from __future__ import annotations

import numpy as np
import pytest

from serving.client.replies import Reply

LAYERS, HEADS, GRID = 6, 8, (3, 4)
# The lengths of two rows, the second with padding on every side.
SOURCE, TARGET = (9, 4), (7, 2)
TEXT = {
    "source_pieces": (SOURCE,),
    "target_pieces": (TARGET,),
    "read_pieces": (TARGET,),
    "cross_heads": (LAYERS, HEADS, TARGET, SOURCE),
    "source_heads": (LAYERS, HEADS, SOURCE, SOURCE),
    "target_heads": (LAYERS, HEADS, TARGET, TARGET),
}
CAPTION = {
    "pieces": (TARGET,),
    "read_pieces": (TARGET,),
    "cross_heads": (LAYERS, HEADS, TARGET, *GRID),
    "target_heads": (LAYERS, HEADS, TARGET, TARGET),
}
BOTH = {"source_length": SOURCE, "target_length": TARGET}


def padded(dimensions) -> tuple[np.ndarray, list[tuple[int, ...]]]:
    """Ones where an output is real and zeros behind; and what is real of each row."""
    wide = tuple(size if isinstance(size, int) else max(size) for size in dimensions)
    output = np.zeros((2, *wide), np.float32)
    real = []
    for row in range(2):
        real.append(tuple(size if isinstance(size, int) else size[row] for size in dimensions))
        output[(row, *map(slice, real[-1]))] = 1.0
    return output, real


@pytest.mark.parametrize(
    ("lengths", "outputs"),
    [
        (BOTH, TEXT),
        # Of the encoder alone, and of the decoder alone.
        (
            {"source_length": SOURCE},
            {name: TEXT[name] for name in ("source_pieces", "source_heads")},
        ),
        (BOTH, {name: size for name, size in TEXT.items() if name != "source_heads"}),
        ({"length": TARGET}, CAPTION),
        # `align`, of texts, of images and of pairs.
        (BOTH, {"alignment": (TARGET, SOURCE)}),
        ({"length": TARGET}, {"pieces": (TARGET,), "alignment": (TARGET, *GRID)}),
        (
            {"first_length": SOURCE, "second_length": TARGET},
            {"first_weights": (SOURCE,), "alignment": (SOURCE, TARGET)},
        ),
        ({"length": TARGET, "points_length": SOURCE}, {"alignment": (TARGET, SOURCE)}),
    ],
)
def test_rows_have_all_that_is_real_and_no_padding(lengths, outputs):
    made = {name: padded(dimensions) for name, dimensions in outputs.items()}
    given = {name: np.array(length, np.int32) for name, length in lengths.items()}
    rows = Reply({**given, **{name: output for name, (output, _) in made.items()}}).rows()
    for name, (_, real) in made.items():
        assert [np.shape(row[name]) for row in rows] == real, name
        assert all(np.all(row[name]) for row in rows), name


def test_heads_that_nothing_says_the_length_of_stay_whole():
    heads = np.ones((1, 2, 3, 4, 5), np.float32)
    assert Reply({"cross_heads": heads}).rows()[0]["cross_heads"].shape == (2, 3, 4, 5)


def test_what_is_only_called_so_has_no_layers():
    outputs = {"target_length": np.array([2], np.int32), "our_heads": np.ones((1, 3, 4))}
    assert Reply(outputs).rows()[0]["our_heads"].shape == (2, 4)
