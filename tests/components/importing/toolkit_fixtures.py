"""Models of random weights as JoeyNMT and OpenNMT-tf save them, with what these compute.

`benchmarks/peers/joeynmt_models.py` and `opennmt_tf_models.py` have written them.
"""

import functools
import gzip
import json
from pathlib import Path

import numpy as np

from regard.components.importing.joeynmt import read_joeynmt
from regard.components.importing.opennmt_tf import read_opennmt_tf
from regard.models.search import GreedySearch
from regard.models.vocabulary import EOS, PAD
from tests.components.importing.huggingface_fixtures import pad

JOEYNMT, OPENNMT_TF = (Path(__file__).with_name(name) for name in ("joeynmt", "opennmt_tf"))
LONGEST = 20  # tokens of an output


class ToolkitModel:
    """A model, and the values of its toolkit.

    Args:
        path: the folder.
        foreign: the model that was read from it.

    Attributes:
        arrays: the content of ``expected.npz``.
        outputs: the content of ``expected.json.gz``.
        model: the Keras model.
        tokenizers: the tokenizers.
        rows: the ids of the toolkit by those of Regard, for each side.
        never: the ids of the target that no output has.
    """

    def __init__(self, path, foreign):
        self.path, self.foreign = path, foreign
        self.arrays = np.load(path / "expected.npz")
        self.outputs = json.loads(gzip.decompress((path / "expected.json.gz").read_bytes()))
        _, self.model, self.tokenizers = foreign.build()
        tables = foreign.read_weight._tables
        self.rows = {side: table.rows for side, table in tables.items()}
        self.never = {*foreign.read_weight._never, *tables["target"].copies.tolist()}

    def own_ids(self, ids, side):
        """Return the ids of Regard for those of the toolkit."""
        rows = self.rows[side]
        table = {int(row): number for number, row in reversed(list(enumerate(rows)))}
        table |= {int(row): number for number, row in enumerate(rows[:2])}
        return np.vectorize(lambda number: table[int(number)])(ids).astype("int32")

    def source(self, end):
        """Return the sources of the arrays with Regard's ids, and which positions are theirs.

        Args:
            end: whether EOS follows each of them; otherwise they have it.
        """
        ids = self.own_ids(self.arrays["source"], "source")
        if not end:
            return ids, ids != PAD
        lengths = self.arrays["lengths"]
        mask = np.arange(ids.shape[1]) < lengths[:, None]
        source = np.pad(np.where(mask, ids, PAD), [(0, 0), (0, 1)])
        source[np.arange(len(source)), lengths] = EOS
        return source, mask

    def differences(self, end=False):
        """Return the largest differences of encoder states and logits, and the largest logit."""
        source, mask = self.source(end)
        memory = self.model.encoder(source)
        states = np.asarray(memory["values"])[:, : mask.shape[1]]
        target = self.own_ids(self.arrays["target"], "target")
        logits = np.asarray(self.model.decoder.unroll(target, memory)[0])
        columns = [number for number in range(logits.shape[-1]) if number not in self.never]
        expected = self.arrays["logits"][..., self.rows["target"][columns]]
        assert (logits[..., sorted(self.never)] < expected.min() - 50).all()
        return (
            np.abs(states - self.arrays["encoder"])[mask].max(),
            np.abs(logits[..., columns] - expected).max(),
            np.abs(expected).max(),
        )

    def greedy(self, count):
        """Return the ids of the outputs of the greedy search, without EOS."""
        texts = self.outputs["sentences"][:count]
        ids = [[*self.tokenizers["source"].tokenize(text).numpy(), EOS] for text in texts]
        result = self.model.search(pad(ids), GreedySearch(), [LONGEST + 1] * count)
        rows = np.asarray(result.ids)[:, 0]
        return [[int(number) for number in row if number not in (PAD, EOS)] for row in rows]


@functools.cache
def joeynmt(name):
    return ToolkitModel(JOEYNMT / name, read_joeynmt(JOEYNMT / name))


@functools.cache
def opennmt_tf(name):
    path = OPENNMT_TF / name
    return ToolkitModel(path, read_opennmt_tf(path, 2, read_end=name.endswith("-end")))
