"""Rows of generated data sets."""

import gzip
import json
from pathlib import Path
from typing import Any

SPLITS = ("train", "eval", "test")


def rows_of(folder: Path, split: str) -> list[dict[str, Any]]:
    with gzip.open(folder / f"{split}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]
