"""Pictures of where a model looked: dark, bright or drawn where it should be, and nowhere else."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib import image

from components.pictures import FORMATS
from pipeline import look_picture
from pipeline.typed_rows import Reader, TypedRow
from serving.saved_model import Answer
from tests import fake_models, fake_tasks


def pixels_of(figure) -> np.ndarray:
    buffer = io.BytesIO()
    with matplotlib.rc_context({"figure.dpi": 100}):
        figure.savefig(buffer, format="png")
    buffer.seek(0)
    return image.imread(buffer, format="png")[..., :3]


def inside(figure, axes, x: float, y: float) -> tuple[int, int]:
    """Row and column of the pixel where a place of some axes was drawn."""
    column, row = axes.transData.transform((x, y))
    return round(figure.bbox.height - row), round(column)


def test_words_are_dark_where_the_weight_is() -> None:
    weights = np.array([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]])
    figure = look_picture.beside_words(["a", "$b$", "</s>"], ["x", "y_{"], weights)
    pixels = pixels_of(figure)
    (axes,) = figure.axes
    shades = [[pixels[inside(figure, axes, c, r)].mean() for c in range(3)] for r in range(2)]
    assert np.argmin(shades[0]) == 1
    assert shades[1][0] == shades[1][2] < shades[1][1]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", r"\$b\$", "</s>"]


def test_an_image_is_bright_where_the_model_looked() -> None:
    buffer = io.BytesIO()
    image.imsave(buffer, np.full((40, 60, 3), 255, np.uint8), format="png")
    weights = np.zeros((2, 4, 4), np.float32)
    weights[0, 0, 0] = weights[1, 3, 3] = 0.9
    figure = look_picture.over_image(buffer.getvalue(), ["left", "right"], weights)
    pixels = pixels_of(figure)
    whole, first, second, *_ = figure.axes
    corners = [(4, 4), (55, 35)]

    def light(axes):
        return [pixels[inside(figure, axes, *corner)].mean() for corner in corners]

    assert light(whole) == [1.0, 1.0]
    assert light(first)[0] > 0.9 > 0.3 > light(first)[1]
    assert light(second)[1] > 0.9 > 0.3 > light(second)[0]
    assert [axes.get_title() for axes in (whole, first, second)] == ["", "left", "right"]


def test_many_words_make_several_rows_of_panels() -> None:
    figure = look_picture.over_image(
        fake_tasks.png(3, 4), [str(i) for i in range(11)], np.ones((11, 2, 2), np.float32)
    )
    assert len(figure.axes) == 15
    assert len([axes for axes in figure.axes if axes.images]) == 12


def test_points_are_joined_in_the_order_of_the_answer() -> None:
    points = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    weights = np.eye(4)[[0, 1, 3]]
    figure = look_picture.among_points(points, [0, 1, 3], weights)
    pixels = pixels_of(figure)
    (axes,) = figure.axes

    def drawn(x, y):
        row, column = inside(figure, axes, x, y)
        return pixels[row - 2 : row + 3, column - 2 : column + 3].min() < 0.6

    assert drawn(0.45, 0.0)  # from the first to the second
    assert drawn(1.0, 0.45)
    assert not drawn(0.0, 0.45)  # the third point is not in the answer
    assert not drawn(0.45, 1.0)
    (back,) = axes.lines
    assert back.get_xydata().tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert [text.get_text() for text in axes.texts if text.get_text()] == ["1", "2", "3"]


def test_an_empty_answer_is_a_picture_too() -> None:
    figure = look_picture.among_points([[0.0, 0.0], [1.0, 2.0]], [], np.zeros((0, 2)))
    assert pixels_of(figure).min() < 0.9


TEXT = Answer(
    {
        "translation": "x",
        "score": -1.0,
        "source_pieces": ["a", "</s>"],
        "target_pieces": ["x", "</s>"],
        "alignment": np.eye(2, dtype=np.float32),
    },
    fake_models.Reverser().contract(),
)


@pytest.mark.parametrize("kind", FORMATS)
def test_the_ending_tells_what_is_written(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    look_picture.write(TypedRow({"source": "a"}, {"source": "a"}), TEXT, path)
    begins = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    content = path.read_bytes()
    assert content.startswith(begins[kind])
    look_picture.write(TypedRow({"source": "a"}, {"source": "a"}), TEXT, path)
    assert path.read_bytes() == content  # the same picture gives the same file


@pytest.mark.parametrize("made", ["Sorter", "Namer"])
def test_every_kind_of_input_is_drawn(tmp_path: Path, made: str) -> None:
    from pipeline import predicting

    task = getattr(fake_tasks, made)()
    (tmp_path / "x.png").write_bytes(fake_tasks.png(3, 4))
    typed = {"Sorter": "[[1, 2], [0, 1], [4, 4]]", "Namer": str(tmp_path / "x.png")}[made]
    model = predicting.Model(fake_models.save(task, tmp_path / "m"))
    rows = list(Reader(model.contract).arguments([typed]))
    ((row, answer),) = model.answers([rows], align=True)
    look_picture.write(row, answer, tmp_path / "looks.png")
    assert image.imread(tmp_path / "looks.png").shape[0] > 100


def test_each_row_has_its_own_file() -> None:
    names = [look_picture.numbered(Path("x/looks.png"), number).name for number in (1, 2, 3)]
    assert names == ["looks.png", "looks-2.png", "looks-3.png"]
