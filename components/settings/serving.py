"""The section ``serving``: where models are published, and what they must run on."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from regard.models.settings.base import Listed, Positive, Section


class ServingConfig(Section):
    """Where models are published, and what they must run on."""

    registry: str | None = Field(
        default=None,
        description="Folder of published models, <registry>/<name>/<version>; null: "
        "${REGARD_HOME}/registry.",
    )
    tf_serving_versions: Listed[Annotated[str, Field(pattern=r"^\d+\.\d+(\.\d+)?$")]] = Field(
        default=("2.19", "2.20"),
        description="TensorFlow Serving versions that must support all operations of the model.",
    )
    check_rows: Positive = Field(
        default=32,
        description="Rows of the test split that the serving check runs.",
    )
