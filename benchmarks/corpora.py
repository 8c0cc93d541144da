"""Generate a large corpus from Multi30k by repetition with reproducible noise."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from pathlib import Path

SIDES = {"source": "en", "target": "de"}
OTHER_SPLITS = {"eval": "val", "test": "test_2016_flickr"}
# The shares of words that are replaced by words of other sentences, and removed.
_REPLACED_SHARE, _REMOVED_SHARE = 0.15, 0.05


def pairs(multi30k: Path, count: int, seed: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the training pairs repeatedly, with noise after the first time.

    The words are those of Multi30k with the same frequencies, so that the vocabulary does not grow;
    hardly two rows are equal. A larger count yields the same first rows.

    Args:
        multi30k: the folder with ``train.en.gz`` and ``train.de.gz``.
        count: the number of pairs.
        seed: the seed of the noise.
    """
    sides = [_lines(multi30k / f"train.{language}.gz") for language in SIDES.values()]
    words = [[word for line in lines for word in line.split()] for lines in sides]
    draw = random.Random(seed)
    for number in range(count):
        row = [lines[number % len(sides[0])] for lines in sides]
        if number >= len(sides[0]):
            row = [_add_noise(*pair, draw) for pair in zip(row, words, strict=True)]
        yield row[0], row[1]


def write(multi30k: Path, folder: Path, count: int, files: int) -> None:
    """Write parallel text files: ``files`` per side for train; eval and test are Multi30k's."""
    folder.mkdir(parents=True)
    rows = pairs(multi30k, count)
    for number in range(files):
        share = count * (number + 1) // files - count * number // files
        paths = [folder / f"train-{number:02d}.{language}" for language in SIDES.values()]
        with (
            paths[0].open("w", encoding="utf-8") as source_file,
            paths[1].open("w", encoding="utf-8") as target_file,
        ):
            for _ in range(share):
                source, target = next(rows)
                source_file.write(source + "\n")
                target_file.write(target + "\n")
    for split, name in OTHER_SPLITS.items():
        for language in SIDES.values():
            text = "".join(f"{line}\n" for line in _lines(multi30k / f"{name}.{language}.gz"))
            (folder / f"{split}.{language}").write_text(text, encoding="utf-8")


def _add_noise(line: str, words: list[str], draw: random.Random) -> str:
    noisy = []
    for word in line.split():
        chance = draw.random()
        if chance < _REPLACED_SHARE:
            noisy.append(draw.choice(words))
        elif chance >= _REPLACED_SHARE + _REMOVED_SHARE:
            noisy.append(word)
    return " ".join(noisy) or line


def _lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.strip().replace("\t", " ") for line in file]
