"""The section ``serving``: where models are published, and what they must run on."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from regard.core.bounds import Positive, Share
from regard.models.settings.base import Listed, Problem, ReadByTrainer, Section


class ConfidenceConfig(Section):
    """A calibrated probability that an output is good, as the output `confidence` of the model.

    Attributes:
        metric: Metric of a single output and its references that says how good it is.
        good: Minimum of the metric for a good output. chrF and ROUGE range from 0 to 100,
            exact_match from 0 to 1.
        rows: Maximum number of rows of the eval split that the Trainer decodes for the calibration.
        max_drift: Limit of `regard drift` on the Jensen-Shannon divergence of logged confidences
            from those of the eval split.
    """

    metric: Literal["chrf", "rouge_1", "rouge_2", "rouge_l", "exact_match"] = "chrf"
    good: Annotated[float, Field(gt=0.0, le=100.0)] = 50.0
    rows: Positive = 2000
    max_drift: Share = 0.05

    def own_problems(self) -> Iterator[Problem]:
        """Yield a minimum that no output can reach."""
        if self.metric == "exact_match" and self.good > 1:
            yield Problem(("good",), "exact_match is at most 1; use good: 1")


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
        confidence: Calibrated probability that an output is good, for models that write texts;
            null: none.
        check_rows: Rows of the test split that the serving check runs.
    """

    registry: str | None = None
    tf_serving_versions: Listed[Annotated[str, Field(pattern=r"^\d+\.\d+(\.\d+)?$")]] = (
        "2.19",
        "2.20",
    )
    split_sentences: Annotated[bool, ReadByTrainer] = False
    quantization: Annotated[Literal["int8"] | None, ReadByTrainer] = None
    confidence: Annotated[ConfidenceConfig | None, ReadByTrainer] = None
    check_rows: Positive = 32

    def own_problems(self) -> Iterator[Problem]:
        """Yield a calibration of outputs that consist of several ones."""
        if self.confidence and self.split_sentences:
            message = "is calibrated for whole outputs; remove it, or split_sentences"
            yield Problem(("confidence",), message)
