"""From counts to findings, and from findings to a warning or the end of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from components.corpus_gen.text import shorten
from components.errors import UserError
from components.example_validator.rows import Shard
from components.example_validator.tally import Tally

_SAYS = {
    "empty_side": "have an empty side",
    "length_ratio": "have sides of very different length",
    "too_long": "are too long",
    "duplicates": "of the training split are there again",
    "overlap": "of the other splits have inputs that are in the training split",
}

Rows = Mapping[int, tuple[list[str], str, int]]


def findings(
    tally: Tally, checks: Mapping[str, Mapping[str, Any]], shards: Sequence[Shard], rows: Rows
) -> dict[str, dict[str, Any]]:
    """What every check that is on found, by its name.

    ``share`` is of the rows that a check looks at: the training split's for ``duplicates``, the
    other splits' for ``overlap``, otherwise all.

    Args:
        tally: the counts.
        checks: the checks that are on, with ``limit`` and ``action``.
        shards: the corpus.
        rows: the rows that the tally's examples refer to.
    """
    return {name: _finding(name, tally, checks[name], shards, rows) for name in checks}


def _finding(
    name: str, tally: Tally, check: Mapping[str, Any], shards: Sequence[Shard], rows: Rows
) -> dict[str, Any]:
    looked_at = sum(n for shard, n in tally.rows.items() if _concerns(name, shards[shard].split))
    by_split: dict[str, int] = {}
    for shard, n in tally.counts.get(name, {}).items():
        split = shards[shard].split
        by_split[split] = by_split.get(split, 0) + n
    count = sum(by_split.values())
    share = count / looked_at if looked_at else 0.0
    examples = []
    for ref, other in tally.examples.get(name, []):
        texts, file, line = rows[ref]
        example = {"where": f"{file}:{line}", "text": " | ".join(shorten(t) for t in texts)}
        if other is not None:
            example["same_as"] = f"{rows[other][1]}:{rows[other][2]}"
        examples.append(example)
    return {
        "count": count,
        "of": looked_at,
        "share": share,
        "limit": check["limit"],
        "action": check["action"],
        "exceeded": share > check["limit"],
        "splits": by_split,
        "examples": examples,
    }


def sentence(name: str, finding: Mapping[str, Any]) -> str:
    """What a check found, with count, share, limit and the first place."""
    told = (
        f"{name}: {finding['count']:,} of {finding['of']:,} rows ({finding['share']:.2%}) "
        f"{_SAYS[name]}; the limit is {finding['limit']:.2%}"
    )
    if not finding["examples"]:
        return told
    first = finding["examples"][0]
    again = f" (as {first['same_as']})" if "same_as" in first else ""
    return f"{told}; first {first['where']}{again}: {first['text']!r}"


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


def _concerns(name: str, split: str) -> bool:
    if name == "duplicates":
        return split == "train"
    return name != "overlap" or split != "train"
