"""A small package of another author, with a score, an alignment, a metric and a task."""

from pathlib import Path

ENTRIES = {
    "regard.scores": {"bilinear": "regard_bilinear.settings:BilinearScoreConfig"},
    "regard.alignments": {"sharp": "regard_bilinear.settings:SharpAlignmentConfig"},
    "regard.metrics": {"first_word": "regard_bilinear.metrics:FIRST_WORD"},
    "regard.tasks": {"dialogue": "regard_bilinear.settings:DESCRIPTION"},
}
FILES = {
    "__init__.py": "",
    "settings.py": '''
import dataclasses
from typing import ClassVar, Literal

from pydantic import Field

from regard.core.bounds import Size
from regard.models.settings.base import Section
from regard.models.tasks.translation.description import DESCRIPTION as TRANSLATION


class BilinearScoreConfig(Section):
    """Aq·Bk with few rows (invented).

    Attributes:
        type: Score type.
        rank: Number of rows of both matrices.
    """

    type: Literal["bilinear"] = "bilinear"
    implementation: ClassVar[str] = "regard_bilinear.layers:BilinearScore"
    rank: Size = 8


class SharpAlignmentConfig(Section):
    """Softmax of scaled scores."""

    type: Literal["sharp"] = Field("sharp", description="Alignment type.")
    implementation: ClassVar[str] = "regard_bilinear.layers:SharpAlignment"
    factor: float = Field(2.0, description="Factor of the scores.")


DESCRIPTION = dataclasses.replace(TRANSLATION, name="dialogue", summary="answer a speaker")
''',
    "layers.py": """
import keras
from keras import ops

from regard.models.attention import Alignment, Score
from regard.models.attention.alignments import masked_softmax

register = keras.saving.register_keras_serializable(package="regard_bilinear")


@register
class BilinearScore(Score):
    def __init__(self, rank=8, **kwargs):
        super().__init__(**kwargs)
        self.settings = {"rank": rank}

    def build(self, query_shape, keys_shape):
        shape = self.settings["rank"]
        self.query = self.create_dense("query", query_shape[-1], shape, use_bias=False)
        self.keys = self.create_dense("keys", keys_shape[-1], shape, use_bias=False)
        super().build(query_shape, keys_shape)

    def prepare(self, keys):
        return self.keys(keys)

    def match(self, query, prepared):
        return super().match(self.query(query), prepared)


@register
class SharpAlignment(Alignment):
    def __init__(self, factor=2.0, **kwargs):
        super().__init__(**kwargs)
        self.settings = {"factor": factor}

    def call(self, scores, mask=None, **context):
        return masked_softmax(ops.cast(scores, "float32") * self.settings["factor"], mask)
""",
    "metrics.py": """
from regard.models.metrics import MetricSpec
from regard.models.metrics.base import mean_statistics


def first_word(rows, options):
    pairs = zip(rows.hypotheses, rows.references)
    values = [float(a.split()[:1] == b[0].split()[:1]) for a, b in pairs]
    return mean_statistics(values, "version:1")


FIRST_WORD = MetricSpec("first word", first_word, high=1.0, scale=1.0)
""",
    "starter.yaml": "name: NAME\ntask: dialogue\ndata: {train: train.tsv}\n",
}


def install(folder: Path, name: str = "regard_bilinear", entries=ENTRIES, files=FILES) -> Path:
    """Write a distribution as an installer does, and return the folder for ``sys.path``."""
    for file, text in files.items():
        path = folder / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    sections = (
        "\n".join([f"[{group}]", *(f"{key} = {value}" for key, value in points.items())])
        for group, points in entries.items()
    )
    (info / "entry_points.txt").write_text("\n".join(sections) + "\n")
    return folder
