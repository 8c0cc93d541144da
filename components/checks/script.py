"""The check ``script``, and which scripts are usual for a feature."""

from collections.abc import Collection, Iterator, Mapping
from typing import ClassVar

from regard.components.checks.base import CheckContext, RowCheck, RowTexts
from regard.components.data.text_analysis import count_scripts, script_name
from regard.core.bounds import Share

# A script dominates a text with more than this share of its letters.
_DOMINANT_SHARE = 0.3
# A script is usual for a feature with at least this share of the letters of train.
USUAL_SHARE = 0.001


class ScriptCheck(RowCheck):
    """Rows with many letters of a script that is unexpected for their side: one with less than
    0.1 % of the letters of the side in train."""

    summary: ClassVar[str] = "are in a script that is unusual for their side"
    needs_train: ClassVar[bool] = True
    is_slow: ClassVar[bool] = True

    limit: Share = 0.001

    def affects(self, row: RowTexts, context: CheckContext) -> bool:
        return any(True for _ in _unusual_scripts(row, context))

    def details(self, row: RowTexts, context: CheckContext) -> Iterator[str]:
        for name, script in _unusual_scripts(row, context):
            yield f"{name} is {script_name(script)}"


def _unusual_scripts(row: RowTexts, context: CheckContext) -> Iterator[tuple[str, str]]:
    """Yield the feature and the script of each script that dominates texts and is not usual."""
    for name, texts in row.by_name.items():
        usual = context.usual_scripts.get(name)
        if usual is None:
            continue
        for script in dominant_scripts(count_scripts(" ".join(texts))):
            if is_unusual(script, usual):
                yield name, script


def is_unusual(script: str, usual: Collection[str] | None) -> bool:
    """Return whether a script is not usual for a feature; None: nothing is known about it."""
    return usual is not None and script not in usual


def dominant_scripts(letters: Mapping[str, int]) -> list[str]:
    """Return the scripts with many of the letters in alphabetical order."""
    if len(letters) == 1:
        return list(letters)
    limit = _DOMINANT_SHARE * sum(letters.values())
    return sorted(script for script, count in letters.items() if count > limit)


def usual_scripts(letters: Mapping[str, Mapping[str, int]]) -> dict[str, set[str]]:
    """Return the scripts that are usual for each feature.

    Args:
        letters: The letters of train by feature and script.
    """
    return {
        feature: {
            script
            for script, count in by_script.items()
            if count >= USUAL_SHARE * sum(by_script.values())
        }
        for feature, by_script in letters.items()
    }
