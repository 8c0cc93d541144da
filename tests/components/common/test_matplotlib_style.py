from pathlib import Path

import pytest

from regard.components.common.matplotlib_style import save, style


def test_equal_figures_give_equal_files(tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    for name in "ab":
        with style({"font.size": 9}):
            figure = Figure((2.0, 2.0))
            figure.add_subplot().plot([1, 2], [3, 4], label="x")
            save(figure, tmp_path / f"{name}.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_style_ends_with_its_block() -> None:
    import matplotlib

    before = matplotlib.rcParams["font.size"]
    with style({"font.size": before + 3}):
        assert matplotlib.rcParams["font.size"] == before + 3
        assert not matplotlib.rcParams["axes.spines.top"]
    assert matplotlib.rcParams["font.size"] == before
    assert matplotlib.rcParams["axes.spines.top"]


def test_characters_without_a_font_cause_no_warning(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    from matplotlib.figure import Figure

    with style({"font.family": ["DejaVu Sans"]}):
        figure = Figure((2.0, 2.0))
        figure.suptitle("\u30e6")
        save(figure, tmp_path / "a.svg")
    assert not recwarn.list
