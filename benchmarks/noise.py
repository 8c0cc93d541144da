"""Adds noise of five kinds to parallel text, each to an equal part of a share of the pairs.

python -m benchmarks.noise SOURCE TARGET OUT    writes OUT.source, OUT.target and OUT.kind, and the
                                                pairs without noise to OUT-clean.source and .target
"""

import argparse
import random
from pathlib import Path

from regard.components.data.text_files import read_lines

KINDS = ("misaligned", "wrong_language", "copied", "truncated", "shuffled")


def add_noise(pairs, share, seed=17):
    """Yield each pair with its kind of noise; order and number of the pairs stay the same."""
    generator = random.Random(seed)
    noisy = sorted(generator.sample(range(len(pairs)), round(share * len(pairs))))
    kinds = {row: KINDS[number % len(KINDS)] for number, row in enumerate(noisy)}
    for row, (source, target) in enumerate(pairs):
        kind, words = kinds.get(row, "clean"), target.split()
        other = pairs[(row + generator.randrange(1, len(pairs))) % len(pairs)]
        generator.shuffle(mixed := list(words))
        half = " ".join(words[: max(1, len(words) // 2)])
        targets = {"misaligned": other[1], "wrong_language": other[0], "copied": source}
        targets |= {"truncated": half, "shuffled": " ".join(mixed), "clean": target}
        yield source, targets[kind], kind


def write(out, sources, targets, kinds):
    """Write all pairs and their kinds to `out`.*, and those without noise to `out`-clean.*."""
    clean = [row for row, kind in enumerate(kinds) if kind == "clean"]
    files = {".source": sources, ".target": targets, ".kind": kinds}
    files |= {"-clean.source": [sources[row] for row in clean]}
    files |= {"-clean.target": [targets[row] for row in clean]}
    for suffix, lines in files.items():
        text = "".join(f"{line}\n" for line in lines)
        Path(f"{out}{suffix}").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("source", "target", "out"):
        parser.add_argument(name)
    parser.add_argument("--share", type=float, default=0.2)
    options = parser.parse_args()
    texts = list(zip(read_lines(options.source), read_lines(options.target), strict=True))
    write(options.out, *zip(*add_noise(texts, options.share), strict=True))
