"""The checks that compare rows with others: their options and texts.

The ExampleValidator finds their rows in ``example_validator/duplicates``, and the corpus filter in
``data/row_filter``, from the same hashes and the same index (``data/row_values`` and
``data/near_duplicates``).
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from regard.components.checks.base import DataCheck
from regard.core.bounds import Positive, Share


class DuplicatesCheck(DataCheck):
    """Rows of train that repeat an earlier row."""

    summary: ClassVar[str] = "of the training split are duplicates"

    limit: Share = 0.2

    @classmethod
    def examines(cls, split: str) -> bool:
        return split == "train"


class _LeakCheck(DataCheck):
    """A check that compares the rows of other splits with those of train."""

    @classmethod
    def examines(cls, split: str) -> bool:
        return split != "train"


class OverlapCheck(_LeakCheck):
    """Rows of eval and test whose source is also in train; drop removes those of train."""

    summary: ClassVar[str] = "of the other splits have inputs of the training split"
    remedy: ClassVar[str] = "`data.checks.overlap: {action: drop}` removes the training rows"


class NearOverlapCheck(_LeakCheck):
    """Rows of eval and test whose source is a near-duplicate of one in train, without those of
    overlap; drop removes those of train, exact copies too.

    Attributes:
        similarity: Minimum Jaccard similarity of character 4-grams, ignoring case and spaces, for
            two inputs to be near-duplicates.
        limit: Maximum share of affected rows.
        max_rows: Maximum rows of eval and test to compare with train; of more, a sample. Each takes
            about 2 kB of every worker's memory. The action drop compares all.
    """

    summary: ClassVar[str] = (
        "of the other splits have inputs that are nearly the same as one of the training split"
    )
    remedy: ClassVar[str] = "`data.checks.near_overlap: {action: drop}` removes the training rows"

    similarity: Annotated[float, Field(ge=0.5, le=1.0)] = 0.8
    limit: Share = 0.05
    max_rows: Positive = 100_000


class TargetOverlapCheck(_LeakCheck):
    """Rows of eval and test with a target text that is also a target in train;
    evaluation.slices.target_overlap scores those of test separately.

    Attributes:
        action: What happens above the limit.
    """

    summary: ClassVar[str] = "of the other splits have targets of the training split"

    limit: Share = 0.05
    action: Literal["warn", "fail"] = "warn"
