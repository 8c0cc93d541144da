"""The check ``script``: rows that are written in letters that their feature hardly ever has.

What is usual is known only when all of train has been read. So rows are counted by the scripts
that have much of them, of which there are few kinds, and judged in the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from components.example_validator.tally import Tally
from components.scripts import scripts

_KIND = "script "


def note(
    tally: Tally, ref: int, texts: Mapping[str, Sequence[str]], share: float, train: bool
) -> None:
    """Counts a row under the scripts that have more than their share of a feature's letters.

    Args:
        tally: where the row is counted, and the letters of train by feature and script.
        ref: the row's reference.
        texts: of each feature.
        share: of the letters, 0..1.
        train: whether the row is of the training split, which says what is usual.
    """
    strong = []
    for feature, several in texts.items():
        letters = scripts(several[0] if len(several) == 1 else " ".join(several))
        if train:
            sums = tally.letters.setdefault(feature, {})
            for script, count in letters.items():
                sums[script] = sums.get(script, 0) + count
        strong += [(feature, script) for script in above(letters, share)]
    tally.add(_kind(strong), ref)


def above(letters: Mapping[str, int], share: float) -> list[str]:
    """The scripts with more than a share of the letters, in the alphabet's order."""
    if len(letters) == 1:
        return list(letters)
    least = share * sum(letters.values())
    return sorted(script for script, count in letters.items() if count > least)


def usual(tally: Tally, least: float) -> dict[str, set[str]]:
    """The scripts that have at least a share of the letters of each feature of train."""
    return {
        feature: {
            script for script, count in letters.items() if count >= least * sum(letters.values())
        }
        for feature, letters in tally.letters.items()
    }


def judged(tally: Tally, usual: Mapping[str, set[str]]) -> Tally:
    """The tally with its rows of unusual scripts as the findings of ``script``.

    Where nothing is known of a feature, as in a corpus without train, nothing of it is unusual.
    """
    kinds = [name for name in tally.counts if name.startswith(_KIND)]
    strange = [
        Tally(counts={"script": tally.counts[kind]}, examples={"script": tally.examples[kind]})
        for kind in kinds
        if any(script not in usual.get(feature, {script}) for feature, script in _strong(kind))
    ]
    rest = replace(
        tally,
        counts={name: counts for name, counts in tally.counts.items() if name not in kinds},
        examples={name: kept for name, kept in tally.examples.items() if name not in kinds},
    )
    return Tally.total([rest, *strange])


def _kind(strong: Sequence[tuple[str, str]]) -> str:
    return _KIND + " ".join([f"{feature}={script}" for feature, script in strong])


def _strong(kind: str) -> list[list[str]]:
    return [pair.split("=") for pair in kind.removeprefix(_KIND).split()]
