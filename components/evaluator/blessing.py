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

from models.metrics import Metric


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What one rule says.

    Attributes:
        rule: the rule's name.
        passed: False keeps the model from being pushed.
        reason: a clause that goes on after the model, such as ``BLEU 33.1 is …``.
    """

    rule: str
    passed: bool
    reason: str


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
        Verdict("undefined", False, f"{metric.label} is undefined ({metric.signature})")
        for metric in candidate.values()
        if not metric.defined
    ]


def floors(candidate: Mapping[str, Metric], limits: Mapping[str, float]) -> list[Verdict]:
    """Each metric reaches its floor; where lower is better, the floor is a ceiling."""
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
        reason = f"{metric.label} {value} {relation} the {kind} of {bound}"
        verdicts.append(Verdict("floors", passed, reason))
    return verdicts


def not_worse(
    candidate: Metric,
    production: Metric,
    tolerance: float,
    version: str,
    p_value: float | None = None,
    significance: float = 0.05,
) -> list[Verdict]:
    """The candidate is not worse than the model in production.

    Args:
        candidate: its metric.
        production: that of the model in production.
        tolerance: by how much it may be worse all the same.
        version: of the model in production.
        p_value: how probable so large a difference is by chance; None: no chance is granted.
        significance: the least of that by which a loss is taken for chance.
    """
    if not production.defined:
        reason = f"{candidate.label} of {_version(version)} is undefined, so there is no comparison"
        return [Verdict("production", True, reason)]
    sign = 1.0 if candidate.higher_is_better else -1.0
    bound = production.value - sign * tolerance
    passed = _at_least(candidate, bound)
    digits = _decimals(candidate)
    ours, theirs = tell_apart(candidate.value, production.value, digits)
    subject = f"{candidate.label} {ours} is"
    other = f"{_version(version)} ({theirs})"
    chance = p_value is not None and p_value >= significance and candidate.defined
    told = "" if p_value is None else f", p = {p_value:.3f}"
    if not passed and chance:
        passed, reason = True, f"{subject} not significantly worse than {other}{told}"
    elif not passed:
        allowed = f" by more than the tolerance of {tolerance:g}" if tolerance else ""
        reason = f"{subject} worse than {other}{allowed}{told}"
    elif sign * (candidate.value - production.value) >= 0:
        reason = f"{subject} not worse than {other}"
    else:
        reason = f"{subject} within the tolerance of {tolerance:g} of {other}"
    return [Verdict("production", passed, reason)]


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
    told = against or list(verdicts)
    head = "Not blessed" if against else "Blessed"
    if told:
        text = _join([verdict.reason for verdict in told])
    else:
        text = "there is no floor and no model in production to compare with"
    return Blessing(not against, f"{head}: {text}.", list(verdicts))


def tell_apart(first: float, second: float, decimals: int) -> tuple[str, str]:
    """Writes two numbers with as many decimals as it takes to see that they differ."""
    for digits in range(decimals, 10):
        texts = f"{first:.{digits}f}", f"{second:.{digits}f}"
        if texts[0] != texts[1] or first == second:
            break
    return texts


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
