"""From counts to findings, and from findings to a warning or the end of the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from components import scripts
from components.corpus_gen.text import shorten
from components.errors import UserError
from components.example_validator import writing
from components.example_validator.near import MEASURED, similarity, text_of
from components.example_validator.rows import Row, Shard, shown
from components.example_validator.tally import Tally
from components.example_validator.texts import controls, repaired
from components.words import counted
from models.tasks.features import Feature

_SAYS = {
    "empty_side": "have an empty side",
    "length_ratio": "have sides of very different length",
    "too_long": "are too long",
    "duplicates": "of the training split are there again",
    "overlap": "of the other splits have inputs that are in the training split",
    "near_overlap": "of the other splits have inputs that are nearly the same as one in the "
    "training split",
    "target_overlap": "of the other splits have targets that are in the training split",
    "same_sides": "have the same text on both sides",
    "script": "are in a script that is unusual for their side",
    "control_characters": "hold characters that control and show nothing",
    "encoding": "were decoded by the wrong encoding",
}
_OF_OTHERS = ("overlap", "near_overlap", "target_overlap")


class Judge:
    """Makes findings of what was counted.

    Args:
        checks: those that are on, with ``limit`` and ``action``.
        shards: the corpus.
        features: of a row.
        usual: the usual scripts of each feature.
    """

    def __init__(
        self,
        checks: Mapping[str, Mapping[str, Any]],
        shards: Sequence[Shard],
        features: Sequence[Feature],
        usual: Mapping[str, set[str]],
    ):
        self._checks = checks
        self._shards = shards
        self._features = features
        self._usual = usual

    def findings(self, tally: Tally, rows: Mapping[int, Row]) -> dict[str, dict[str, Any]]:
        """What every check that is on found, by its name.

        ``share`` is of the rows that a check looks at: the training split's for ``duplicates``,
        the other splits' for ``overlap``, ``near_overlap`` and ``target_overlap``, otherwise all.
        ``capped``: so many rows of train were like too many others for all of them to be measured.

        Args:
            tally: the counts.
            rows: the rows that the tally's examples refer to.
        """
        return {name: self._finding(name, tally, rows) for name in self._checks}

    def _finding(self, name: str, tally: Tally, rows: Mapping[int, Row]) -> dict[str, Any]:
        check, shards = self._checks[name], self._shards
        looked_at = sum(n for index, n in tally.rows.items() if _concerns(name, shards[index]))
        by_split: dict[str, int] = {}
        for index, n in tally.counts.get(name, {}).items():
            split = shards[index].split
            by_split[split] = by_split.get(split, 0) + n
        count = sum(by_split.values())
        share = count / looked_at if looked_at else 0.0
        capped = {"capped": tally.capped} if name == "near_overlap" and tally.capped else {}
        return {
            "count": count,
            "of": looked_at,
            "share": share,
            "limit": check["limit"],
            "action": check["action"],
            "exceeded": share > check["limit"],
            "splits": by_split,
            "examples": [
                self._example(name, rows[ref], None if other is None else rows[other])
                for ref, other in tally.examples.get(name, [])
            ],
            **capped,
        }

    def _example(self, name: str, row: Row, other: Row | None) -> dict[str, Any]:
        """Where a row stands, its text, the row it repeats, and what is wrong (``told``)."""
        texts = map(shown, self._features, row.values)
        example: dict[str, Any] = {
            "where": f"{row.file}:{row.line}",
            "text": " | ".join(shorten(text) for text in texts),
        }
        if other is not None:
            example["same_as"] = f"{other.file}:{other.line}"
        if name == "near_overlap" and other is not None:
            example["similarity"] = similarity(*(text_of(self._inputs(r)) for r in (row, other)))
            example["told"] = f"{example['similarity']:.0%} alike"
        elif told := "; ".join(self._told(name, row)):
            example["told"] = told
        return example

    def _inputs(self, row: Row) -> list[list[Any]]:
        pairs = zip(self._features, row.values, strict=True)
        return [values for feature, values in pairs if feature.role == "input"]

    def _told(self, name: str, row: Row) -> Iterator[str]:
        """What is wrong with the texts of a row, where the check's name does not say it all."""
        for feature, values in zip(self._features, row.values, strict=True):
            if not feature.tokenized:
                continue
            if name == "control_characters":
                found = dict.fromkeys(c for text in values for c in controls(text))
                if found:
                    yield f"{feature.name} holds " + ", ".join(f"U+{ord(c):04X}" for c in found)
            elif name == "encoding":
                for text in values:
                    if (better := repaired(text)) != text:
                        yield f"{feature.name} would be {_around(text, better)!r}"
            elif name == "script":
                share = self._checks[name]["share"]
                for script in writing.above(scripts.scripts(" ".join(values)), share):
                    if script not in self._usual.get(feature.name, {script}):
                        yield f"{feature.name} is {scripts.name(script)}"


def sentence(name: str, finding: Mapping[str, Any]) -> str:
    """What a check found, with count, share, limit and the first place."""
    told = (
        f"{name}: {finding['count']:,} of {finding['of']:,} rows ({finding['share']:.2%}) "
        f"{_SAYS[name]}; the limit is {finding['limit']:.2%}"
    )
    if capped := finding.get("capped"):
        told += f" ({counted(capped, 'row')} of train may be like over {MEASURED} rows, of which "
        told += f"only the {MEASURED} most promising were measured: there may be more)"
    if not finding["examples"]:
        return told
    first = finding["examples"][0]
    again = f" (as {first['same_as']})" if "same_as" in first else ""
    more = f" ({first['told']})" if "told" in first else ""
    return f"{told}; first {first['where']}{again}: {first['text']!r}{more}"


def refuse(found: Mapping[str, Mapping[str, Any]]) -> None:
    """Ends the run if a check whose action is ``fail`` found more than its limit.

    Raises:
        UserError: names the first such check, the place of its first row, and the key to change.
    """
    failing = [n for n, f in found.items() if f["exceeded"] and f["action"] == "fail"]
    if not failing:
        return
    name = failing[0]
    others = f" (also over their limits: {', '.join(failing[1:])})" if failing[1:] else ""
    raise UserError(
        sentence(name, found[name]) + others,
        where=found[name]["examples"][0]["where"],
        remedy=f"Mend the rows, raise `data.checks.{name}.limit`, or set "
        f"`data.checks.{name}.action` to warn.",
    )


def _concerns(name: str, shard: Shard) -> bool:
    if name == "duplicates":
        return shard.split == "train"
    return name not in _OF_OTHERS or shard.split != "train"


def _around(text: str, better: str) -> str:
    """The part of a repaired text that begins a little before the first repair."""
    same = next(
        (i for i, pair in enumerate(zip(text, better, strict=False)) if len({*pair}) > 1), 0
    )
    start = max(0, same - 20)
    return ("..." if start else "") + shorten(better[start:])
