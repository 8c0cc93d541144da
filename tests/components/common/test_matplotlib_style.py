from __future__ import annotations

from pathlib import Path

import pytest

from regard.components.common.matplotlib_style import save, style


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_equal_figures_give_equal_files(tmp_path: Path, kind: str) -> None:
    from matplotlib.figure import Figure

    for name in "ab":
        with style({"font.size": 9}):
            figure = Figure((2.0, 2.0))
            figure.add_subplot().plot([1, 2], [3, 4], label="x")
            save(figure, tmp_path / f"{name}.{kind}")
    assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()


def test_style_ends_with_its_block() -> None:
    import matplotlib

    before = matplotlib.rcParams["font.size"]
    with style({"font.size": before + 3}):
        assert matplotlib.rcParams["font.size"] == before + 3
        assert not matplotlib.rcParams["axes.spines.top"]
    assert matplotlib.rcParams["font.size"] == before
    assert matplotlib.rcParams["axes.spines.top"]


def test_characters_without_a_font_are_reported(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    from matplotlib.figure import Figure

    with style({"font.family": ["DejaVu Sans"]}):
        for title, has_font in (("a", True), ("\u30e6", False)):
            figure = Figure((2.0, 2.0))
            figure.suptitle(title)
            assert save(figure, tmp_path / "a.png") is has_font
    assert not recwarn.list
