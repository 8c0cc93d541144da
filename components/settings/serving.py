"""The section ``serving``: where models are published, and what they must run on."""

from typing import Annotated, Literal

from pydantic import Field

from regard.core.bounds import Positive
from regard.models.settings.base import Listed, ReadByTrainer, Section


class ServingConfig(Section):
    """Where models are published, and what they must run on.

    Attributes:
        registry: Folder of published models, <registry>/<name>/<version>; null:
            ${REGARD_HOME}/registry.
        tf_serving_versions: TensorFlow Serving versions that must support all operations of the
            model.
        split_sentences: Split sources with more than search.max_source_length tokens into
            sentences, and join their outputs, instead of truncating them.
        quantization: int8: store matrices as 8-bit integers, a quarter of the size, which every
            request converts to float32; null: float32.
        check_rows: Rows of the test split that the serving check runs.
    """

    registry: str | None = None
    tf_serving_versions: Listed[Annotated[str, Field(pattern=r"^\d+\.\d+(\.\d+)?$")]] = (
        "2.19",
        "2.20",
    )
    split_sentences: Annotated[bool, ReadByTrainer] = False
    quantization: Annotated[Literal["int8"] | None, ReadByTrainer] = None
    check_rows: Positive = 32
