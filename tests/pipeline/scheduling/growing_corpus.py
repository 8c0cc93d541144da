"""A corpus of spans that grows, and the configuration of its pipeline."""

import gzip
import random
from pathlib import Path

from regard.pipeline.config import Config, load

CONFIG = """
name: tiny
data:
  root: data
  train: "train-{SPAN:3}.tsv"
  eval: eval.tsv
  test: test.tsv
schedule:
"""


def make_rows(count: int, seed: int, letters: str = "abcdef") -> list[str]:
    """Words and their upper-case forms."""
    draw = random.Random(seed)
    words = ("".join(draw.choices(letters, k=draw.randint(1, 3))) for _ in range(count))
    return [f"{word}\t{word.upper()}\n" for word in words]


class GrowingCorpus:
    """Data files and a configuration below a folder."""

    def __init__(self, folder: Path):
        self.folder = folder
        (folder / "data").mkdir(exist_ok=True)
        for name, seed in (("eval", 1001), ("test", 1002)):
            self.write(f"{name}.tsv", make_rows(20, seed))

    def write(self, name: str, lines: list[str], append: bool = False) -> Path:
        """Writes or appends to a file; .gz is compressed."""
        path = self.folder / "data" / name
        data = "".join(lines).encode()
        with open(path, "ab" if append else "wb") as file:
            file.write(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)
        return path

    def write_span(self, number: int, count: int = 100, letters: str = "abcdef") -> Path:
        """Writes a span."""
        return self.write(f"train-{number:03d}.tsv", make_rows(count, number, letters))

    def configure(self, schedule: str = "  new_span: true\n", text: str = CONFIG) -> Path:
        """Writes the YAML file."""
        path = self.folder / "tiny.yaml"
        path.write_text(text + schedule)
        return path

    def config(self, schedule: str = "  new_span: true\n", text: str = CONFIG) -> Config:
        """Writes and loads the YAML file."""
        return load(self.configure(schedule, text), home=self.folder / "home")
