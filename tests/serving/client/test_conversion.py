"""Rows without padding, for the signatures of all tasks."""

import numpy as np
import pytest

from regard.serving.client.conversion import ClientSignature, Input, split_rows

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
    """Return ones with zero padding, and the real shape of each row."""
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
        # Only the encoder, and only the decoder.
        (
            {"source_length": SOURCE},
            {name: TEXT[name] for name in ("source_pieces", "source_heads")},
        ),
        (BOTH, {name: size for name, size in TEXT.items() if name != "source_heads"}),
        ({"length": TARGET}, CAPTION),
        # `align` for texts, images and pairs.
        (BOTH, {"alignment": (TARGET, SOURCE)}),
        ({"length": TARGET}, {"pieces": (TARGET,), "alignment": (TARGET, *GRID)}),
        (
            {"first_length": SOURCE, "second_length": TARGET},
            {"first_weights": (SOURCE,), "alignment": (SOURCE, TARGET)},
        ),
        ({"length": TARGET, "points_length": SOURCE}, {"alignment": (TARGET, SOURCE)}),
    ],
)
def test_rows_have_no_padding(lengths, outputs):
    created = {name: padded(dimensions) for name, dimensions in outputs.items()}
    inputs = {name: np.array(length, np.int32) for name, length in lengths.items()}
    rows = split_rows({**inputs, **{name: output for name, (output, _) in created.items()}})
    for name, (_, real) in created.items():
        assert [np.shape(row[name]) for row in rows] == real, name
        assert all(np.all(row[name]) for row in rows), name


def test_heads_without_length_outputs_are_not_cut():
    heads = np.ones((1, 2, 3, 4, 5), np.float32)
    assert split_rows({"cross_heads": heads})[0]["cross_heads"].shape == (2, 3, 4, 5)


def test_an_output_without_a_batch_has_no_lengths():
    signature = ClientSignature({}, {"count": Input("float", rank=0)})
    assert signature.dimensions == {"count": []}


def test_an_output_with_a_similar_name_has_no_layers():
    outputs = {"target_length": np.array([2], np.int32), "our_heads": np.ones((1, 3, 4))}
    assert split_rows(outputs)[0]["our_heads"].shape == (2, 4)
