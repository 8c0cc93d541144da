"""The gate: rules that decide whether a model may be pushed.

A rule is a function that returns verdicts. A model is blessed if every verdict passes.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

from regard.components.evaluator.results import (
    CANDIDATE,
    PRODUCTION,
    BaselineResult,
    Comparison,
    Decision,
    DegenerateCheck,
    Verdict,
)
from regard.components.evaluator.slices import Slice
from regard.components.settings.evaluation import EvaluationConfig, ProductionComparisonConfig
from regard.core.formatting import format_count, metric_digits, truncate
from regard.models.metrics import Metric

BASELINE_SIGNIFICANCE = 0.05
MetricsByModel = Mapping[str, Mapping[str, Metric]]
_MAX_ERROR_CHARACTERS = 160
_THAN_BASELINE = " than the baseline "


def decide(
    metrics: MetricsByModel,
    slices: Sequence[Slice],
    comparison: Comparison | None,
    degenerate: Mapping[str, DegenerateCheck],
    config: EvaluationConfig,
    version: str = "",
    production_error: str = "",
    baselines: Sequence[BaselineResult] = (),
    further: Sequence[Verdict] = (),
) -> Decision:
    """Decide whether a model may be pushed.

    Args:
        metrics: the metrics of all rows, by model and name.
        slices: the scores in slices.
        comparison: the tests against production; None if there is no comparison.
        degenerate: the checks for degenerate outputs.
        config: the ``evaluation`` section.
        version: the version in production.
        production_error: why production could not be decoded; empty if it could.
        baselines: the baselines, which count if there is no model in production.
        further: verdicts of other rules.
    """
    candidate, production = metrics[CANDIDATE], config.production
    verdicts = check_defined(candidate)
    verdicts += check_thresholds(candidate, config.thresholds)
    for name, thresholds in config.slices.thresholds.items():
        for part in slices:
            if part.matches(name):
                values = _slice_metrics(CANDIDATE, metrics, part)
                verdicts += check_thresholds(values, thresholds, part)
    verdicts += check_slices_exist(config.slices.thresholds, slices, "evaluation.slices.thresholds")
    verdicts += check_degenerate_outputs(degenerate)
    verdicts += further
    if production and comparison:
        verdicts += _check_production(metrics, slices, comparison, version, production)
        verdicts += check_slices_exist(production.slices, slices, "evaluation.production.slices")
    elif production and production_error:
        verdicts.append(no_comparison(version, production_error))
    if PRODUCTION not in metrics:
        verdicts += [check_better_than(candidate, baseline) for baseline in baselines]
    # A slice that is named by its kind and by its title is listed once.
    return make_decision(list(dict.fromkeys(verdicts)))


def _check_production(
    metrics: MetricsByModel,
    slices: Sequence[Slice],
    comparison: Comparison,
    version: str,
    config: ProductionComparisonConfig,
) -> list[Verdict]:
    name = config.metric
    pair = metrics[CANDIDATE][name], metrics[PRODUCTION][name]
    verdicts = [check_not_worse(*pair, config, version, comparison.p_value)]
    tests = {(test.kind, test.name): test for test in comparison.slices}
    for part in slices:
        if test := tests.get((part.kind, part.name)):
            pair = (
                _slice_metrics(CANDIDATE, metrics, part)[name],
                _slice_metrics(PRODUCTION, metrics, part)[name],
            )
            p_value, is_tested = test.adjusted_p_value, test.test is not None
            verdicts.append(check_not_worse(*pair, config, version, p_value, part, is_tested))
    return verdicts


def _slice_metrics(model: str, metrics: MetricsByModel, part: Slice) -> dict[str, Metric]:
    return {
        name: dataclasses.replace(metric, value=part.scores[model][name])
        for name, metric in metrics[model].items()
    }


def check_defined(candidate: Mapping[str, Metric]) -> list[Verdict]:
    """Reject undefined metrics, such as the correlation of constant outputs."""
    return [
        _verdict("undefined", False, f"{metric.label} is undefined ({metric.signature})", metric)
        for metric in candidate.values()
        if not metric.is_defined
    ]


def check_thresholds(
    candidate: Mapping[str, Metric], thresholds: Mapping[str, float], part: Slice | None = None
) -> list[Verdict]:
    """Check that each metric reaches its threshold: at least, or at most if lower is better.

    Args:
        candidate: the metrics.
        thresholds: the thresholds by metric.
        part: the slice of the metrics; None: all rows.
    """
    verdicts = []
    for name, threshold in thresholds.items():
        metric = candidate[name]
        value, bound = format_distinctly(metric.value, threshold, metric_digits(metric.scale))
        if math.isnan(metric.value):
            relation = "cannot be compared with"
        elif metric.value == threshold:
            relation = "equals"
        else:
            relation = "is above" if metric.value > threshold else "is below"
        reason = f"{metric.label} {value}{_where(part)} {relation} the threshold of {bound}"
        passed = _reaches(metric, threshold)
        key = "evaluation.slices.thresholds" if part else f"evaluation.thresholds.{name}"
        verdicts.append(_verdict("thresholds", passed, reason, metric, threshold, part, key))
    return verdicts


def check_not_worse(
    candidate: Metric,
    production: Metric,
    config: ProductionComparisonConfig,
    version: str,
    p_value: float | None = None,
    part: Slice | None = None,
    is_tested: bool = False,
) -> Verdict:
    """Check that the candidate is not worse than the model in production.

    Args:
        candidate: the candidate's metric.
        production: the metric of the model in production.
        config: the tolerance and the significance level.
        version: the version in production.
        p_value: the p-value of the difference, adjusted if there are several slices; None: there
            is none.
        part: the slice of the metrics; None: all rows.
        is_tested: whether losses in slices are tested. A loss without a p-value, of a metric that
            is undefined with so few rows, then passes.
    """
    where, key = _where(part), "evaluation.production"
    if not production.is_defined:
        subject = f"{candidate.label} of {_version_name(version)}{where}"
        _, _, cause = production.signature.partition("|undefined:")
        cause = f" ({cause})" if cause else ""
        reason = f"{subject} is undefined{cause}, so there is no comparison"
        return _verdict("production", True, reason, candidate, part=part, key=key)
    sign = 1.0 if candidate.higher_is_better else -1.0
    bound = production.value - sign * config.tolerance
    passed = _reaches(candidate, bound)
    digits = metric_digits(candidate.scale)
    ours, theirs = format_distinctly(candidate.value, production.value, digits)
    subject = f"{candidate.label} {ours}{where} is"
    other = f"{_version_name(version)} ({theirs})"
    probability = ""
    if p_value is not None:
        symbol = "Holm’s p" if part else "p"
        probability = f", {symbol} = {p_value:.3f}"
    is_significant = p_value is None or p_value < config.significance or not candidate.is_defined
    gain = sign * (candidate.value - production.value)
    tolerance = f"the tolerance of {config.tolerance:g}"
    if not passed and not is_significant:
        passed, reason = True, f"{subject} not significantly worse than {other}{probability}"
    elif not passed and is_tested and part and p_value is None:
        passed = True
        reason = f"{subject} not known to be worse than {other}: too few rows for a test"
    elif not passed:
        excess = f" by more than {tolerance}" if config.tolerance else ""
        reason = f"{subject} worse than {other}{excess}{probability}"
    elif gain > 0 and p_value is not None and is_significant:
        reason = f"{subject} significantly better than {other}{probability}"
    elif gain >= 0:
        reason = f"{subject} not worse than {other}"
    else:
        reason = f"{subject} within {tolerance} of {other}"
    return _verdict("production", passed, reason, candidate, bound, part, key)


def check_better_than(candidate: Mapping[str, Metric], baseline: BaselineResult) -> Verdict:
    """Check that the candidate is significantly better than a baseline.

    Args:
        candidate: the candidate's metrics.
        baseline: the baseline with the compared metric, and the p-value if there is a test.
    """
    if not baseline.metric:
        reason = f"no metric compares the model with the baseline ({baseline.label})"
        return Verdict(rule="baselines", passed=False, reason=reason, key="evaluation.baselines")
    metric, bound = candidate[baseline.metric], baseline.metrics[baseline.metric].value
    sign = 1.0 if metric.higher_is_better else -1.0
    passed = sign * (metric.value - bound) > 0
    value, other = format_distinctly(metric.value, bound, metric_digits(metric.scale))
    relation = "better" if passed else "not better"
    if passed and baseline.p_value is not None:
        passed = baseline.p_value < BASELINE_SIGNIFICANCE
        relation = "significantly better" if passed else "not significantly better"
    probability = "" if baseline.p_value is None else f", p = {baseline.p_value:.3f}"
    details = f"{baseline.label}: {other}{probability}"
    reason = f"{metric.label} {value} is {relation}{_THAN_BASELINE}({details})"
    return _verdict("baselines", passed, reason, metric, bound, key="evaluation.baselines")


def check_slices_exist(names: Iterable[str], slices: Sequence[Slice], key: str) -> list[Verdict]:
    """Reject the slices that a key names, but that have no rows, so that nothing is known."""
    verdicts = []
    for name in names:
        if not any(part.matches(name) for part in slices):
            kind = name.partition("=")[0]
            titles = [part.title for part in slices if part.kind == kind]
            available = f"; available: {', '.join(titles)}" if titles else ""
            reason = f"the test split has no rows in {name}{available}"
            verdict = Verdict(rule="slices", passed=False, reason=reason, slice=name, key=key)
            verdicts.append(verdict)
    return verdicts


def check_degenerate_outputs(checks: Mapping[str, DegenerateCheck]) -> list[Verdict]:
    """Check the limits of degenerate outputs whose action is ``fail``."""
    return [
        Verdict(
            rule="checks",
            passed=not check.is_over_limit,
            reason=check.summary,
            key=f"evaluation.checks.{name}",
        )
        for name, check in checks.items()
        if check.action == "fail"
    ]


def no_comparison(version: str, error: str) -> Verdict:
    """Pass if the model in production could not be decoded, and give the reason."""
    line = truncate(" ".join(error.split()), _MAX_ERROR_CHARACTERS)
    reason = f"{_version_name(version)} could not be decoded for a comparison ({line})"
    return Verdict(rule="production", passed=True, reason=reason)


def make_decision(verdicts: Sequence[Verdict]) -> Decision:
    """Combine the verdicts; a sentence names those that decide, without passed output checks.

    After a failure it names the keys that set the rules, and the thresholds that were reached.
    """
    failed = [verdict for verdict in verdicts if not verdict.passed]
    deciding = failed
    if not failed:
        deciding = [item for item in verdicts if item.slice is None and item.rule != "checks"]
    reasons = _reasons(deciding)
    slices = {verdict.slice for verdict in verdicts if verdict.slice is not None}
    if slices and not failed:
        reasons.append(f"all checks pass in {format_count(len(slices), 'slice')}")
    if not reasons:
        reasons = ["there is no threshold and no model in production to compare with"]
    sentence = f"{'Failed' if failed else 'Passed'}: {_join(reasons)}."
    if keys := dict.fromkeys(verdict.key for verdict in failed if verdict.key):
        sentence += f" {'Rule' if len(keys) == 1 else 'Rules'}: {', '.join(keys)}."
    reached = [
        item.reason
        for item in verdicts
        if failed and item.passed and item.rule == "thresholds" and item.slice is None
    ]
    sentence += f" Passed: {_join(reached)}." if reached else ""
    return Decision(blessed=not failed, sentence=sentence, verdicts=list(verdicts))


def format_distinctly(first: float, second: float, decimals: int) -> tuple[str, str]:
    """Format two numbers with as many decimals as it takes to tell them apart."""
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
    part: Slice | None = None,
    key: str | None = None,
) -> Verdict:
    return Verdict(
        rule=rule,
        passed=passed,
        reason=reason,
        metric=metric.name,
        value=metric.value if metric.is_defined else None,
        bound=bound,
        slice=part.title if part else None,
        rows=len(part.rows) if part else None,
        key=key,
    )


def _reaches(metric: Metric, bound: float) -> bool:
    if metric.higher_is_better:
        return metric.value >= bound
    return metric.value <= bound


def _where(part: Slice | None) -> str:
    return f" in {part}" if part else ""


def _version_name(version: str) -> str:
    return f"version {version}" if version else "the model in production"


def _reasons(verdicts: Sequence[Verdict]) -> list[str]:
    """The clauses of verdicts; those that differ in the baseline only are one."""
    clauses = []
    for _, group in itertools.groupby(verdicts, _relation_to_baseline):
        same_relation = list(group)
        reasons = [verdict.reason for verdict in same_relation]
        if len(reasons) > 1 and (relation := _relation_to_baseline(same_relation[0])):
            details = [reason.removeprefix(relation + _THAN_BASELINE)[1:-1] for reason in reasons]
            reasons = [f"{relation} than the baselines ({'; '.join(details)})"]
        clauses += reasons
    return clauses


def _relation_to_baseline(verdict: Verdict) -> str:
    """How the candidate compares with a baseline; empty for verdicts of other rules."""
    if verdict.rule != "baselines" or _THAN_BASELINE not in verdict.reason:
        return ""
    return verdict.reason.partition(_THAN_BASELINE)[0]


def _join(reasons: Sequence[str]) -> str:
    """Join clauses without repeating the subject of the clause before."""
    text = reasons[0]
    for previous, reason in itertools.pairwise(reasons):
        subject, separator, rest = reason.partition(" is ")
        if separator and previous.startswith(f"{subject} is "):
            text += f" and {rest}"
        else:
            text += f", and {reason}"
    return text
