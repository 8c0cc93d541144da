"""What a metric is, and what it looks at."""

from __future__ import annotations

import dataclasses
import functools
import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np

Answers = Literal["text", "number", "positions"]


@dataclasses.dataclass(frozen=True)
class Metric:
    """One metric of one corpus.

    Attributes:
        name: its key in `METRICS`.
        label: how people write it, such as ``BLEU``.
        value: between 0 and ``scale`` for the metrics that are shares; not a number where the
            metric is undefined, and then the signature says why.
        signature: everything that changes the value, as sacreBLEU writes it.
        higher_is_better: whether a larger value means a better model.
        scale: 100 where the values are written as percentages, else 1.
    """

    name: str
    label: str
    value: float
    signature: str
    higher_is_better: bool = True
    scale: float = 100.0

    @property
    def defined(self) -> bool:
        """Whether there is a value at all."""
        return not math.isnan(self.value)

    def to_dict(self) -> dict[str, str | float | bool]:
        """The metric as plain JSON values."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class Rows:
    """The answers to a corpus and what they should have been.

    Attributes:
        hypotheses: what the model answered: texts, numbers, or lists of positions.
        references: the right answers of each row, one or more of the same kind.
        columns: what else is known of the rows, by name: the model's inputs, the features that
            only the evaluation reads, the model's other outputs.
    """

    hypotheses: Sequence[Any]
    references: Sequence[Sequence[Any]]
    columns: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)

    @property
    def answers(self) -> Answers:
        """The kind of the hypotheses; of no rows it is not asked."""
        first = self.hypotheses[0]
        if isinstance(first, str):
            return "text"
        return "number" if isinstance(first, numbers.Real) else "positions"

    def take(self, chosen: Sequence[int]) -> Rows:
        """Some of the rows, in the order of ``chosen``."""
        return Rows(
            [self.hypotheses[row] for row in chosen],
            [self.references[row] for row in chosen],
            {name: [values[row] for row in chosen] for name, values in self.columns.items()},
        )

    def reference_count(self) -> str:
        """How many references a row has, as sacreBLEU's signatures say it: ``var`` if it varies."""
        counts = {len(references) for references in self.references}
        return str(counts.pop()) if len(counts) == 1 else "var"


# Rows and options (``tokenize``, ``lowercase``) → the value and its signature.
Function = Callable[[Rows, Mapping[str, Any]], tuple[float, str]]


@dataclasses.dataclass(frozen=True)
class Statistics:
    """What a metric needs of each row, so that it can be told of any sample of the rows.

    Attributes:
        rows: ``[rows, n]``, float64.
        value: the metric of the sum of some rows, ``[n]``; not a number where it is undefined.
        signature: that of the metric; empty where its function has it.
    """

    rows: np.ndarray
    value: Callable[[np.ndarray], float]
    signature: str = ""

    def whole(self) -> float:
        """The metric of all rows."""
        return self.value(self.rows.sum(axis=0))

    def total(self, chosen: np.ndarray) -> np.ndarray:
        """The sum of some rows: by their places, of which some may be there twice, or by a mask."""
        import numpy as np

        if not self._exact:
            return self.rows[chosen].sum(axis=0)
        times = chosen if chosen.dtype == bool else np.bincount(chosen, minlength=len(self.rows))
        return times @ self.rows

    @functools.cached_property
    def _exact(self) -> bool:
        """Whether all are whole numbers: their sum is the same in any order, as a product too."""
        return bool((self.rows == self.rows.round()).all())


# Rows and options → the statistics; their sum over all rows gives the value of the function.
Summed = Callable[[Rows, Mapping[str, Any]], Statistics]


def mean_of(values: Sequence[float], signature: str = "") -> Statistics:
    """The statistics of a metric that is a mean of one number a row."""
    import numpy as np

    pairs = np.stack([np.asarray(values, "float64"), np.ones(len(values))], axis=1)
    return Statistics(pairs, lambda total: float(total[0] / total[1]), signature)


@dataclasses.dataclass(frozen=True)
class Kind:
    """What a metric is, apart from any corpus.

    Attributes:
        label: how people write it.
        function: gives its value and signature.
        statistics: what its value is made of, row by row; None where it is no function of a sum.
        answers: the kind of answers that it can judge.
        higher_is_better: whether a larger value means a better model.
        low: the least value it can have; None where there is none.
        high: the greatest; None where there is none.
        scale: 100 where its values are written as percentages, else 1.
        looks: whether it reads where a model looked, which is the bulk of a table.
        beside: whether it reads more of a row than its answer and references, such as its points.
        by_sums: whether the sum of any rows gives their value to the last bit. The functions of
            the others know what is undefined, or add more exactly.
    """

    label: str
    function: Function
    statistics: Summed | None = None
    answers: Answers | Literal["any"] = "text"
    higher_is_better: bool = True
    low: float | None = 0.0
    high: float | None = 100.0
    scale: float = 100.0
    looks: bool = False
    beside: bool = False
    by_sums: bool = False

    @classmethod
    def of_sums(cls, label: str, statistics: Summed, **more: Any) -> Kind:
        """A metric of which the statistics say all, its signature included."""

        def function(rows: Rows, options: Mapping[str, Any]) -> tuple[float, str]:
            found = statistics(rows, options)
            return found.whole(), found.signature

        return cls(label, function, statistics, by_sums=True, **more)

    def judges(self, answers: str) -> bool:
        """Whether it can judge answers of a kind."""
        return self.answers in ("any", answers)
