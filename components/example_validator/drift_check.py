"""The checks of drift: the training split compared with that of the model in production."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

from regard.components.data import profiles
from regard.components.registry.store import LATEST, production_baseline
from regard.components.settings.data_checks import DataChecksConfig, DriftCheckConfig
from regard.core.errors import DataError, UserError
from regard.serving.contract import PROFILE

_DESCRIPTIONS = {
    "drift_words": "the words of {feature} have a Jensen-Shannon divergence of {value:.3f}",
    "drift_oov": "{rate:.2%} of the running words of {feature} are {new}, {expected:.2%} expected",
    "drift_lengths": "the lengths of {feature} have a Jensen-Shannon divergence of {value:.3f}",
}
_PROFILE_REMEDY = "Remove the file, and the drift from this version is not checked."


class DriftFinding(TypedDict):
    """The result of a drift check; ``value`` is that of the worst ``feature``."""

    value: float
    feature: str
    limit: float
    action: str
    exceeded: bool
    features: dict[str, profiles.Drift]


class DriftFindings(TypedDict):
    """The drift from a version, and the features that each check could not compare."""

    version: str
    checks: dict[str, DriftFinding]
    uncompared: dict[str, list[str]]


def check_drift(
    production: str, profile: profiles.Profile, checks: DataChecksConfig
) -> DriftFindings | None:
    """Compare the training split with that of production; None if there is nothing to compare with.

    Args:
        production: the parameter of ``ExampleValidator``.
        profile: the profile of the training split.
        checks: the checks that are set.

    Raises:
        UserError: the profile of production cannot be read.
    """
    active = checks.drift_checks
    reference = _production_profile(production) if active else None
    if reference is None:
        return None
    version, path = reference
    measured = profiles.measure_drift(profiles.read_profile(path, _PROFILE_REMEDY), profile)
    missing = profiles.missing_features(measured, profile)
    return {
        "version": version,
        "checks": {
            name: _drift_finding(measured[name], check)
            for name, check in active.items()
            if measured[name]
        },
        "uncompared": {name: missing[name] for name in active if missing[name]},
    }


def _production_profile(production: str) -> tuple[str, str] | None:
    """Return version and profile of production; None if there is none."""
    if not production:
        return None
    reference = json.loads(production)
    if reference["version"] != LATEST:
        return reference["version"], reference["profile"]
    folder, version = production_baseline(reference["versions"], LATEST)
    path = Path(folder, PROFILE)
    return (version, str(path)) if version and path.is_file() else None


def _drift_finding(features: dict[str, profiles.Drift], check: DriftCheckConfig) -> DriftFinding:
    worst = max(features, key=lambda name: features[name]["value"])
    value = features[worst]["value"]
    return {
        "value": value,
        "feature": worst,
        "limit": check.limit,
        "action": check.action,
        "exceeded": value > check.limit,
        "features": features,
    }


def drift_warnings(drift: DriftFindings | None) -> list[str]:
    """Return a sentence for each exceeded limit and for features that could not be compared."""
    if not drift:
        return []
    version = drift["version"]
    uncompared = [
        f"{name}: the profile of version {version} in production does not describe "
        f"{', '.join(features)}"
        for name, features in drift["uncompared"].items()
    ]
    return uncompared + [
        _describe(name, finding, version)
        for name, finding in drift["checks"].items()
        if finding["exceeded"]
    ]


def drift_failures(drift: DriftFindings | None) -> Iterator[UserError]:
    """Yield an error for each drift check with the action ``fail`` that exceeds its limit."""
    if not drift:
        return
    remedy = (
        "Check the source of the new rows. If they are intended, raise the limit or set the action "
        "to warn."
    )
    for name, finding in drift["checks"].items():
        if finding["exceeded"] and finding["action"] == "fail":
            text = _describe(name, finding, drift["version"])
            yield DataError(text, f"data.checks.{name}", remedy)


def _describe(name: str, finding: DriftFinding, version: str) -> str:
    worst = finding["features"][finding["feature"]]
    listed = worst.get("listed")
    new = f"not among the {listed:,} most frequent words of that version" if listed else "new"
    description = _DESCRIPTIONS[name].format(feature=finding["feature"], new=new, **worst)
    words = ", ".join(repr(example["word"]) for example in worst.get("examples", [])[:5])
    limit = f"{finding['limit']:g}"
    if name == "drift_oov":
        limit = f"{finding['limit']:.2%} above the expected share"
    text = f"{name}: since version {version} in production, {description}; the limit is {limit}"
    return f"{text}; mainly {words}" if words else text
