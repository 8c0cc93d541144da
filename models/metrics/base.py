"""The types that metrics share: rows to score, a metric's definition, and its row statistics."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from regard.core.features import Kind
from regard.core.kinds import KINDS, TEXT, output_kind

if TYPE_CHECKING:
    import numpy as np

# For a metric of outputs of every kind.
ANY_KIND = "any"
UNITS = ("word", "character")


@dataclasses.dataclass(frozen=True)
class Metric:
    """The value of one metric on one corpus.

    Attributes:
        name: the key in `METRICS`.
        label: the display name, such as ``BLEU``.
        value: the value, from 0 to ``scale`` for metrics that are shares. NaN if the metric is
            undefined; the signature then gives the reason.
        signature: all settings that change the value, in sacreBLEU's notation.
        higher_is_better: whether a larger value means a better model.
        scale: 100 for values written as percentages, otherwise 1.
    """

    name: str
    label: str
    value: float
    signature: str
    higher_is_better: bool = True
    scale: float = 100.0

    @property
    def is_defined(self) -> bool:
        """Whether the metric has a value."""
        return not math.isnan(self.value)

    def to_dict(self) -> dict[str, str | float | bool]:
        """Return the metric as JSON values."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class Rows:
    """The outputs of a model on a corpus, with the references.

    Attributes:
        hypotheses: the model's outputs: texts, numbers, or lists of positions.
        references: one or more references for each row, of the same kind.
        columns: further values for each row, by name: model inputs, features that only the
            evaluation reads, and other model outputs.
    """

    hypotheses: Sequence[Any]
    references: Sequence[Sequence[Any]]
    columns: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)

    @property
    def output_kind(self) -> Kind:
        """The kind of the hypotheses. There must be at least one row."""
        return output_kind(self.hypotheses[0])

    def take(self, indices: Sequence[int]) -> Rows:
        """Return the rows at ``indices``, in that order."""

        def take(values: Sequence[Any]) -> list[Any]:
            return [values[row] for row in indices]

        columns = {name: take(values) for name, values in self.columns.items()}
        return Rows(take(self.hypotheses), take(self.references), columns)

    def reference_count(self) -> str:
        """Return the references per row as in sacreBLEU's signatures; ``var`` if they vary."""
        counts = {len(references) for references in self.references}
        return str(counts.pop()) if len(counts) == 1 else "var"


@dataclasses.dataclass(frozen=True)
class GoldAlignment:
    """Gold word alignments, and the attention that is compared with them.

    Attributes:
        gold: the column with the links in Pharaoh's format.
        unit: the unit of the links: words or characters.
        targets: the target words whose links count: all of them, or those with a gold link.
        layer: the decoder layer of a Transformer, from 1; None: the model's default.
        head: the head in that layer, from 1; None: the mean of all heads.
    """

    gold: str
    unit: Literal["word", "character"] = "word"
    targets: Literal["all", "gold"] = "all"
    layer: int | None = None
    head: int | None = None


@dataclasses.dataclass(frozen=True)
class MetricOptions:
    """Settings of metrics.

    Attributes:
        tokenize: sacreBLEU's tokenizer for BLEU, such as ``13a``, ``zh`` or ``char``.
        lowercase: whether text metrics ignore case.
        alignment: the gold alignments for ``aer``.
    """

    tokenize: str = "13a"
    lowercase: bool = False
    alignment: GoldAlignment | None = None


DEFAULT_OPTIONS = MetricOptions()


@dataclasses.dataclass(frozen=True)
class Statistics:
    """A metric of some rows, with the sufficient statistics of each row.

    Attributes:
        signature: the metric's signature.
        rows: a NumPy array ``[rows, n]``, float64, whose sums give the value of any sample of rows;
            None if the value does not follow from sums.
        value: the metric for a sum of rows, ``[n]``; NaN if it is undefined.
        precise_value: the metric of all rows, if it differs from that of their sum or is undefined.
            None: the sum gives the value bit for bit.
    """

    signature: str
    rows: Any = None
    value: Callable[[np.ndarray], float] = lambda total: math.nan
    precise_value: float | None = None

    @property
    def is_exact(self) -> bool:
        """Whether the sums of any rows give their value bit for bit."""
        return self.precise_value is None

    def corpus_value(self) -> float:
        """Return the metric of all rows."""
        if self.precise_value is not None:
            return self.precise_value
        return self.value(self.rows.sum(axis=0))

    def sum_rows(self, selection: np.ndarray) -> np.ndarray:
        """Return the sum of some rows, given as indices (repeats allowed) or as a mask."""
        import numpy as np

        if not self._is_integral:
            return self.rows[selection].sum(axis=0)
        is_mask = selection.dtype == bool
        counts = selection if is_mask else np.bincount(selection, minlength=len(self.rows))
        return counts @ self.rows

    @functools.cached_property
    def _is_integral(self) -> bool:
        """Whether all values are whole numbers, so that a matrix product gives the exact sum."""
        return bool((self.rows == self.rows.round()).all())


MetricFunction = Callable[[Rows, MetricOptions], Statistics]


def mean_statistics(values: Sequence[float], signature: str) -> Statistics:
    """Return a metric that is the mean of one number per row.

    Args:
        values: the numbers.
        signature: the metric's signature.
    """
    import numpy as np

    pairs = np.stack([np.asarray(values, "float64"), np.ones(len(values))], axis=1)
    return Statistics(signature, pairs, ratio)


def match_statistics(
    rows: Rows, normalize: Callable[[Any], Any], signature: str = ""
) -> Statistics:
    """Return the share of outputs that equal one of their references.

    Args:
        rows: the outputs and the references.
        normalize: a function that is applied to both before they are compared.
        signature: the end of the signature, after the number of references.
    """
    pairs = zip(rows.hypotheses, rows.references, strict=True)
    matches = [normalize(output) in map(normalize, references) for output, references in pairs]
    return mean_statistics(matches, f"nrefs:{rows.reference_count()}{signature}")


def ratio(total: np.ndarray) -> float:
    """Return the value of a metric whose statistics are a numerator and a denominator."""
    return float(total[0] / total[1]) if total[1] else math.nan


@dataclasses.dataclass(frozen=True)
class MetricSpec:
    """The definition of a metric.

    Attributes:
        label: the display name.
        compute: computes the value, the signature and the row statistics.
        output_kind: the name of the kind of outputs that the metric scores, or ``any``.
        higher_is_better: whether a larger value means a better model.
        low: the lowest possible value; None if there is none.
        high: the highest possible value; None if there is none.
        scale: 100 for values written as percentages, otherwise 1.
        needs_attention: whether the metric reads attention weights, which are most of a table.
        needs_columns: whether the metric reads more than hypotheses and references.
    """

    label: str
    compute: MetricFunction
    output_kind: str = TEXT.name
    higher_is_better: bool = True
    low: float | None = 0.0
    high: float | None = 100.0
    scale: float = 100.0
    needs_attention: bool = False
    needs_columns: bool = False

    @property
    def scores_numbers(self) -> bool:
        """Whether the metric scores numbers only."""
        kind = KINDS.get(self.output_kind)
        return kind is not None and kind.is_number

    def supports(self, kind: Kind) -> bool:
        """Return whether the metric scores outputs of this kind."""
        return self.output_kind in (ANY_KIND, kind.name)
