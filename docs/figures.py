"""Draw the figures of the documentation: `python docs/figures.py` writes docs/figures/*.svg.

`figure_numbers.py` computes the numbers with the NumPy functions that the pages show,
`figure_plots.py` and `figure_diagrams.py` draw. A test compares the files with what this writes.
"""

import argparse
import sys
from pathlib import Path

_DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(_DOCS.parent), str(_DOCS)]

import figure_diagrams  # noqa: E402
import figure_plots  # noqa: E402

FIGURES = {
    "poolings": figure_plots.draw_poolings,
    "teacher-forcing": figure_diagrams.draw_teacher_forcing,
    "search": figure_diagrams.draw_search,
    "annotations": figure_diagrams.draw_annotations,
    "lookup": figure_diagrams.draw_lookup,
    "masks": figure_plots.draw_masks,
    "costs": figure_plots.draw_costs,
    "blocks": figure_diagrams.draw_blocks,
    "sinusoids": figure_plots.draw_sinusoids,
    "rotations": figure_plots.draw_rotations,
}


def write(folder: Path) -> None:
    """Write all figures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in FIGURES.items():
        (folder / f"{name}.svg").write_text(draw().svg(), encoding="utf-8")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", default=_DOCS / "figures")
    write(parser.parse_args().folder)


if __name__ == "__main__":
    main()
