"""The rules by which a model is blessed.

A rule is a function that looks at the metrics and returns verdicts; a model is blessed when no
verdict is against it. Another rule is another function, added where `bless` is called.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from components.words import counted
from models.metrics import Metric


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What one rule says.

    Attributes:
        rule: the rule's name.
        passed: False keeps the model from being pushed.
        reason: a clause that goes on after the model, such as ``BLEU 33.1 is …``.
        metric: what is judged; None where it is no metric.
        value: its value; None where it has none.
        bound: what that is held against.
        slice: the part of the test split, such as ``domain=news``; None: the whole of it.
        rows: how many that part has.
    """

    rule: str
    passed: bool
    reason: str
    metric: str | None = None
    value: float | None = None
    bound: float | None = None
    slice: str | None = None
    rows: int | None = None


@dataclasses.dataclass(frozen=True)
class Where:
    """A slice of the test split, by its title, and how many rows it has."""

    slice: str
    rows: int

    def __str__(self) -> str:
        return f" in {self.slice} ({counted(self.rows, 'row')})"


@dataclasses.dataclass(frozen=True)
class Blessing:
    """The decision, one sentence that explains it, and what each rule said."""

    blessed: bool
    sentence: str
    reasons: list[Verdict]

    def to_dict(self) -> dict[str, object]:
        """The blessing as plain JSON values."""
        return dataclasses.asdict(self)


def undefined(candidate: Mapping[str, Metric]) -> list[Verdict]:
    """A metric without a value says nothing good: of a model that answers everything alike."""
    return [
        _verdict("undefined", False, f"{metric.label} is undefined ({metric.signature})", metric)
        for metric in candidate.values()
        if not metric.defined
    ]


def floors(
    candidate: Mapping[str, Metric], limits: Mapping[str, float], where: Where | None = None
) -> list[Verdict]:
    """Each metric reaches its floor; where lower is better, the floor is a ceiling.

    Args:
        candidate: its metrics.
        limits: the floors.
        where: the slice that the metrics are of; None: they are of all rows.
    """
    verdicts = []
    for name, limit in limits.items():
        metric = candidate[name]
        passed = _at_least(metric, limit)
        value, bound = tell_apart(metric.value, limit, _decimals(metric))
        if metric.value == limit:
            relation = "just reaches"
        else:
            relation = "is over" if metric.value > limit else "is under"
        if math.isnan(metric.value):
            relation = "cannot be compared with"
        kind = "floor" if metric.higher_is_better else "ceiling"
        reason = f"{metric.label} {value}{where or ''} {relation} the {kind} of {bound}"
        verdicts.append(_verdict("floors", passed, reason, metric, limit, where))
    return verdicts


def not_worse(
    candidate: Metric,
    production: Metric,
    tolerance: float,
    version: str,
    p_value: float | None = None,
    significance: float = 0.05,
    where: Where | None = None,
    tested: bool = False,
) -> list[Verdict]:
    """The candidate is not worse than the model in production.

    Args:
        candidate: its metric.
        production: that of the model in production.
        tolerance: by how much it may be worse all the same.
        version: of the model in production.
        p_value: how probable so large a difference is by chance; None: no chance is granted. Of
            one of several slices it is adjusted for their number.
        significance: the least of that by which a loss is taken for chance.
        where: the slice that the metrics are of; None: they are of all rows.
        tested: whether losses in slices are told from chance; one without a p-value, of a metric
            that is undefined in so few rows, is then taken for chance.
    """
    inside = where or ""
    if not production.defined:
        of = f"{candidate.label} of {_version(version)}{inside}"
        _, _, why = production.signature.partition("|undefined:")
        told = f" ({why})" if why else ""
        reason = f"{of} is undefined{told}, so there is no comparison"
        return [_verdict("production", True, reason, candidate, where=where)]
    sign = 1.0 if candidate.higher_is_better else -1.0
    bound = production.value - sign * tolerance
    passed = _at_least(candidate, bound)
    digits = _decimals(candidate)
    ours, theirs = tell_apart(candidate.value, production.value, digits)
    subject = f"{candidate.label} {ours}{inside} is"
    other = f"{_version(version)} ({theirs})"
    chance = p_value is not None and p_value >= significance and candidate.defined
    told = "" if p_value is None else f", {'Holm’s ' if where else ''}p = {p_value:.3f}"
    if not passed and chance:
        passed, reason = True, f"{subject} not significantly worse than {other}{told}"
    elif not passed and tested and where and p_value is None:
        passed = True
        reason = f"{subject} not known to be worse than {other}: it cannot be told from chance"
    elif not passed:
        allowed = f" by more than the tolerance of {tolerance:g}" if tolerance else ""
        reason = f"{subject} worse than {other}{allowed}{told}"
    elif sign * (candidate.value - production.value) >= 0:
        reason = f"{subject} not worse than {other}"
    else:
        reason = f"{subject} within the tolerance of {tolerance:g} of {other}"
    return [_verdict("production", passed, reason, candidate, bound, where)]


def without_rows(name: str, choices: Sequence[str]) -> list[Verdict]:
    """A slice that something is asked of, and that the test split has not: nothing is known."""
    there = f"; there is {', '.join(choices)}" if choices else ""
    return [Verdict("slices", False, f"the test split has no row of {name}{there}", slice=name)]


def degeneration(found: Mapping[str, Mapping[str, Any]]) -> list[Verdict]:
    """No more degenerate answers than a check allows, where its action is to fail."""
    return [
        Verdict("checks", not over(entry), tell_share(entry))
        for entry in found.values()
        if entry["action"] == "fail"
    ]


def over(entry: Mapping[str, Any]) -> bool:
    """Whether a check has found more than its limit."""
    return bool(entry["share"] > entry["limit"])


def tell_share(entry: Mapping[str, Any]) -> str:
    """What a check has found, in words."""
    share, limit = (f"{100 * entry[name]:.2g}%" for name in ("share", "limit"))
    relation = "over" if over(entry) else "within"
    return f"{share} of the answers are {entry['label']}, {relation} the limit of {limit}"


def no_comparison(version: str, error: str) -> list[Verdict]:
    """The model in production could not be decoded: that does not speak against the new one."""
    line = " ".join(error.split())
    short = line if len(line) <= 160 else line[:159] + "…"
    reason = f"{_version(version)} could not be decoded for a comparison ({short})"
    return [Verdict("production", True, reason)]


def bless(verdicts: Sequence[Verdict]) -> Blessing:
    """Puts the verdicts together; those that decide are the ones in the sentence."""
    against = [verdict for verdict in verdicts if not verdict.passed]
    told = against or [verdict for verdict in verdicts if verdict.slice is None]
    head = "Not blessed" if against else "Blessed"
    reasons = [verdict.reason for verdict in told]
    # A model that is good enough is so in each of many slices, which nobody wants to read.
    slices = {verdict.slice for verdict in verdicts if verdict.slice is not None}
    if slices and not against:
        reasons.append(f"nothing is against it in {counted(len(slices), 'slice')}")
    if not reasons:
        reasons = ["there is no floor and no model in production to compare with"]
    text = _join(reasons)
    return Blessing(not against, f"{head}: {text}.", list(verdicts))


def tell_apart(first: float, second: float, decimals: int) -> tuple[str, str]:
    """Writes two numbers with as many decimals as it takes to see that they differ."""
    for digits in range(decimals, 10):
        texts = f"{first:.{digits}f}", f"{second:.{digits}f}"
        if texts[0] != texts[1] or first == second:
            break
    return texts


def _verdict(
    rule: str,
    passed: bool,
    reason: str,
    metric: Metric,
    bound: float | None = None,
    where: Where | None = None,
) -> Verdict:
    place = (where.slice, where.rows) if where else (None, None)
    value = metric.value if metric.defined else None
    return Verdict(rule, passed, reason, metric.name, value, bound, *place)


def _at_least(metric: Metric, bound: float) -> bool:
    if metric.higher_is_better:
        return metric.value >= bound
    return metric.value <= bound


def _decimals(metric: Metric) -> int:
    return 1 if metric.scale >= 10 else 3


def _version(version: str) -> str:
    return f"version {version}" if version else "the model in production"


def _join(reasons: Sequence[str]) -> str:
    """Joins clauses; one that begins like the one before it does not repeat its subject."""
    text = reasons[0]
    for before, reason in itertools.pairwise(reasons):
        subject, found, rest = reason.partition(" is ")
        if found and before.startswith(f"{subject} is "):
            text += f" and {rest}"
        else:
            text += f", and {reason}"
    return text
