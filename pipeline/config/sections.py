"""The whole configuration of one pipeline."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Literal

from pydantic import Field

from pipeline.config.base import Section
from pipeline.config.data import Data
from pipeline.config.evaluation import Evaluation, Serving
from pipeline.config.model import Model
from pipeline.config.search import BeamSearch, Search
from pipeline.config.tokenizer import Tokenizer
from pipeline.config.training import Training

Task = Literal["translation"]

# The text features of each task, in the order of a table's columns.
FEATURES: dict[str, tuple[str, ...]] = {"translation": ("source", "target")}


class Config(Section):
    """One pipeline: what is read, what is trained, how it is judged and where it goes."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$", max_length=63)] = Field(
        description="Name of the pipeline, and of its model in the registry: a small letter, "
        "then small letters, digits and hyphens, 63 characters at most.",
        examples=["quickstart"],
    )
    task: Task = Field(default="translation", description="What the model does.")
    data: Data = Field(description="The files with the text.")
    tokenizer: Tokenizer = Field(
        default=Tokenizer(), description="How text becomes pieces: SentencePiece, trained on train."
    )
    model: Model = Field(default=Model(), description="The network.")
    training: Training = Field(
        default=Training(),
        description="How the model learns; the first of max_epochs, max_steps and max_minutes "
        "ends it.",
    )
    search: Search = Field(
        default=BeamSearch(), description="How the trained model looks for its answer."
    )
    evaluation: Evaluation = Field(
        default=Evaluation(),
        description="What the test split is measured by, and what is good enough.",
    )
    serving: Serving = Field(
        default=Serving(), description="Where a good model goes, and what it must run on."
    )

    @property
    def features(self) -> tuple[str, ...]:
        """The text features of the task, such as ``("source", "target")``."""
        return FEATURES[self.task]

    def section_json(self, name: str) -> str:
        """One section as canonical JSON: the same settings always give the same text."""
        content = self.model_dump(mode="json")[name]
        return json.dumps(content, sort_keys=True, ensure_ascii=False)

    def digest(self, *sections: str) -> str:
        """A short digest of the given sections, or of all of them."""
        names = sections or tuple(type(self).model_fields)
        text = json.dumps({name: self.section_json(name) for name in names}, sort_keys=True)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]
