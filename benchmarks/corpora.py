"""A large corpus out of a small one: Multi30k again and again, with noise, the same every time."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from pathlib import Path

SIDES = {"source": "en", "target": "de"}
TESTED = {"eval": "val", "test": "test_2016_flickr"}
# How often a word is replaced by one of another sentence, and left out.
_REPLACED, _LEFT_OUT = 0.15, 0.05


def pairs(multi30k: Path, count: int, seed: int = 0) -> Iterator[tuple[str, str]]:
    """The training pairs over and over; from the second time on with other words here and there.

    The words are those of Multi30k and as frequent as there, so that the vocabulary does not grow;
    hardly two rows are alike. Another count gives the same rows as far as both go.

    Args:
        multi30k: the folder with ``train.en.gz`` and ``train.de.gz``.
        count: how many pairs.
        seed: of the noise.
    """
    sides = [_lines(multi30k / f"train.{language}.gz") for language in SIDES.values()]
    words = [[word for line in lines for word in line.split()] for lines in sides]
    draw = random.Random(seed)
    for number in range(count):
        place = number % len(sides[0])
        row = [lines[place] for lines in sides]
        if number >= len(sides[0]):
            row = [_noisy(line, drawn, draw) for line, drawn in zip(row, words, strict=True)]
        yield row[0], row[1]


def write(multi30k: Path, folder: Path, count: int, files: int) -> None:
    """Writes parallel files of plain text: so many for train, and Multi30k's own eval and test."""
    folder.mkdir(parents=True)
    rows = pairs(multi30k, count)
    for number in range(files):
        share = count * (number + 1) // files - count * number // files
        paths = [folder / f"train-{number:02d}.{language}" for language in SIDES.values()]
        with (
            paths[0].open("w", encoding="utf-8") as one,
            paths[1].open("w", encoding="utf-8") as two,
        ):
            for _ in range(share):
                source, target = next(rows)
                one.write(source + "\n")
                two.write(target + "\n")
    for split, name in TESTED.items():
        for language in SIDES.values():
            text = "".join(f"{line}\n" for line in _lines(multi30k / f"{name}.{language}.gz"))
            (folder / f"{split}.{language}").write_text(text, encoding="utf-8")


def _noisy(line: str, words: list[str], draw: random.Random) -> str:
    noisy = []
    for word in line.split():
        drawn = draw.random()
        if drawn < _REPLACED:
            noisy.append(draw.choice(words))
        elif drawn >= _REPLACED + _LEFT_OUT:
            noisy.append(word)
    return " ".join(noisy) or line


def _lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.strip().replace("\t", " ") for line in file]
