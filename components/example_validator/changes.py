"""What has changed since the data of the model in production, held against limits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components import profiles
from components.drift import drift, uncompared
from components.errors import UserError
from components.registry import PROFILE
from components.registry.rival import LATEST, rival

CHECKS = ("drift_words", "drift_oov", "drift_lengths")
_SAYS = {
    "drift_words": "the words of {feature} have a Jensen-Shannon divergence of {value:.3f}",
    "drift_oov": "{rate:.2%} of the running words of {feature} are {new}, where {expected:.2%} "
    "were to be expected",
    "drift_lengths": "the lengths of {feature} have a Jensen-Shannon divergence of {value:.3f}",
}
_REMEDY = "Remove the file: without it the data is not held against that of its version."


def held_against(
    production: str, profile: Mapping[str, Any], checks: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any] | None:
    """What the checks of drift that are on found; None where there is nothing to compare with.

    Args:
        production: as ``ExampleValidator`` takes it.
        profile: of this training split.
        checks: with ``limit`` and ``action``.

    Raises:
        UserError: the profile of production cannot be read.
    """
    on = {name: checks[name] for name in CHECKS if name in checks}
    reference = _reference(production) if on else None
    if reference is None:
        return None
    version, path = reference
    measured = drift(profiles.read(path, _REMEDY), profile)
    found = {name: _finding(measured[name], check) for name, check in on.items() if measured[name]}
    left_out = uncompared(measured, profile)
    left_out = {name: left_out[name] for name in on if left_out[name]}
    return {"version": version, "checks": found, "uncompared": left_out}


def _reference(production: str) -> tuple[str, str] | None:
    """Number and profile of the version in production; None where there is none, or without one."""
    if not production:
        return None
    known = json.loads(production)
    if known["version"] != LATEST:
        return known["version"], known["profile"]
    folder, version = rival(known["versions"], LATEST)
    path = Path(folder, PROFILE)
    return (version, str(path)) if version and path.is_file() else None


def _finding(features: dict[str, Any], check: Mapping[str, Any]) -> dict[str, Any]:
    """The worst feature counts."""
    worst = max(features, key=lambda name: features[name]["value"])
    return {
        "value": features[worst]["value"],
        "feature": worst,
        "limit": check["limit"],
        "action": check["action"],
        "exceeded": features[worst]["value"] > check["limit"],
        "features": features,
    }


def sentences(found: Mapping[str, Any] | None) -> list[str]:
    """What is to be warned of."""
    if not found:
        return []
    untold = f"not held against version {found['version']} in production, which tells nothing of it"
    left_out = [
        f"{name}: {', '.join(left)}: {untold}" for name, left in found["uncompared"].items()
    ]
    return left_out + [
        _sentence(name, finding, found["version"])
        for name, finding in found["checks"].items()
        if finding["exceeded"] and finding["action"] == "warn"
    ]


def refuse(found: Mapping[str, Any] | None) -> None:
    """Ends the run if a check of drift whose action is ``fail`` is over its limit.

    Raises:
        UserError: names the check and the key to change.
    """
    if not found:
        return
    for name, finding in found["checks"].items():
        if finding["exceeded"] and finding["action"] == "fail":
            raise UserError(
                _sentence(name, finding, found["version"]),
                where=f"data.checks.{name}",
                remedy="Look at where the new rows come from; if they are meant, raise its limit "
                "or set its action to warn.",
            )


def _sentence(name: str, finding: Mapping[str, Any], version: str) -> str:
    """What a check of drift found, with the words that tell most of it."""
    worst = finding["features"][finding["feature"]]
    among = worst.get("among")
    new = f"outside the {among:,} most frequent words of then" if among else "new"
    says = _SAYS[name].format(feature=finding["feature"], new=new, **worst)
    words = ", ".join(repr(example["word"]) for example in worst.get("examples", [])[:5])
    told = f"{name}: since version {version} in production, {says}; the limit is "
    told += f"{finding['limit']:.2%} more" if name == "drift_oov" else f"{finding['limit']:g}"
    return f"{told}; above all {words}" if words else told
