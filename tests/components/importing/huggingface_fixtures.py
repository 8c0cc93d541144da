"""Models of random weights as Hugging Face saves them, with what it computes with them.

`benchmarks/peers/huggingface_models.py` has written them.
"""

import functools
import gzip
import json
import re
from pathlib import Path

import numpy as np

from regard.components.importing.m2m import read_m2m
from regard.components.importing.marian import read_marian
from regard.models.vocabulary import BOS, PAD

FOLDER = Path(__file__).with_name("huggingface")
MARIAN = sorted(path.name for path in FOLDER.iterdir() if path.name.startswith("marian"))
M2M = sorted(path.name for path in FOLDER.iterdir() if not path.name.startswith("marian"))


class Fixture:
    """A model, and the values of Hugging Face with its ids.

    Attributes:
        arrays: the content of ``expected.npz``.
        outputs: the content of ``expected.json.gz``.
        foreign: the model that was read.
        model: the Keras model.
        tokenizers: the tokenizers.
    """

    def __init__(self, name):
        path = FOLDER / name
        self.path, self.is_multilingual = path, name in M2M
        self.arrays = np.load(path / "expected.npz")
        with gzip.open(path / "expected.json.gz") as file:
            self.outputs = json.load(file)
        if self.is_multilingual:
            self.foreign = read_m2m(path, sorted({pair(row) for row in self.outputs["sentences"]}))
        else:
            self.foreign = read_marian(path)
        _, self.model, self.tokenizers = self.foreign.build()
        self.sides = self.foreign.read_weight.sides
        self.search = self.foreign.config.search

    def text(self, row):
        """Return the source of a row, with a tag for its languages or its language code."""
        if not self.is_multilingual:
            return re.sub(r"^>>(\w+)<< ?", r"<\1> ", row["source"])
        return f"<{'-'.join(pair(row))}> {row['source']}"

    @property
    def foreign_texts(self):
        """The texts of the ids of Hugging Face."""
        tokenizer = json.loads((self.path / "tokenizer_config.json").read_text())
        added = tokenizer.get("added_tokens_decoder", {})
        texts = {int(number): entry["content"] for number, entry in added.items()}
        if (self.path / "tokenizer.json").is_file():
            content = json.loads((self.path / "tokenizer.json").read_text())
            texts |= {token["id"]: token["content"] for token in content["added_tokens"]}
        return texts

    def foreign_ids(self, ids, side="decoder"):
        """Return the ids of Hugging Face for ids of Regard."""
        return [int(self.sides[side].rows[number]) for number in ids]

    def own_ids(self, ids, side):
        """Return the ids of Regard for ids of Hugging Face."""
        rows = self.sides[side].rows
        table = {int(row): number for number, row in reversed(list(enumerate(rows)))}
        table |= {int(row): number for number, row in enumerate(rows[:BOS])}
        return np.vectorize(lambda number: table[int(number)])(ids)


def pair(row):
    return row["source_language"], row["target_language"]


@functools.cache
def load(name):
    return Fixture(name)


def pad(rows):
    """Return lists of ids as one array, int32."""
    longest = max(map(len, rows))
    return np.array([[*row, *[PAD] * (longest - len(row))] for row in rows], "int32")
