"""Findings from the counts of the checks, and the warnings and errors that follow from them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from typing_extensions import NotRequired, TypedDict

from regard.components.checks.base import CheckContext, DataCheck, RowCheck
from regard.components.checks.repeated_rows import NearOverlapCheck
from regard.components.data import near_duplicates
from regard.components.data.example_rows import ExampleRow
from regard.components.data.row_values import ComparedValues
from regard.components.example_validator.shard_rows import CheckCounts, Shard
from regard.components.settings.data_checks import DataChecksConfig, check_class
from regard.core.errors import DataError, UserError
from regard.core.features import Feature
from regard.core.formatting import format_count, truncate


class CheckExample(TypedDict):
    """A row that a check found.

    Attributes:
        where: its file and line.
        text: its text, shortened.
        same_as: file and line of the row that it repeats.
        similarity: the similarity to that row, 0 to 1.
        detail: the problem, if the name of the check does not say it.
    """

    where: str
    text: str
    same_as: NotRequired[str]
    similarity: NotRequired[float]
    detail: NotRequired[str]


class CheckFinding(TypedDict):
    """The result of a check.

    Attributes:
        count: the rows that it found.
        total: the rows that it examined: the training split for ``duplicates``, the other splits
            for ``overlap``, ``near_overlap`` and ``target_overlap``, otherwise all.
        share: ``count`` divided by ``total``.
        limit: the share that is allowed.
        action: the action of the check; only ``fail`` fails the run, the others warn.
        exceeded: whether the share is above the limit.
        splits: the rows that it found by split.
        examples: the first of them.
        capped: the rows of train that were similar to too many others to compare them with all.
        left_out: the rows of the other splits that were not compared, because there are too many.
    """

    count: int
    total: int
    share: float
    limit: float
    action: str
    exceeded: bool
    splits: dict[str, int]
    examples: list[CheckExample]
    capped: NotRequired[int]
    left_out: NotRequired[int]


@dataclass(frozen=True)
class FindingBuilder:
    """Makes findings from counts.

    Attributes:
        checks: the checks that are set.
        shards: the corpus.
        features: the features of a row.
        context: the knowledge of the checks of single rows in addition to the row.
    """

    checks: DataChecksConfig
    shards: Sequence[Shard]
    features: Sequence[Feature]
    context: CheckContext

    def example_references(self, counts: CheckCounts) -> set[int]:
        """Return the references of the rows that the findings show as examples."""
        references: set[int] = set()
        for name in self.checks.data_checks:
            for ref, other in counts.examples.get(name, ()):
                references.add(ref)
                if other is not None:
                    references.add(other)
        return references

    def findings(
        self, counts: CheckCounts, rows: Mapping[int, ExampleRow]
    ) -> dict[str, CheckFinding]:
        """Return the finding of every check that is set.

        Args:
            counts: the counts of the checks.
            rows: the rows that the examples of the counts refer to.
        """
        return {
            name: self._finding(name, check, counts, rows)
            for name, check in self.checks.data_checks.items()
        }

    def _finding(
        self, name: str, check: DataCheck, counts: CheckCounts, rows: Mapping[int, ExampleRow]
    ) -> CheckFinding:
        total = sum(
            n for index, n in counts.rows.items() if check.examines(self.shards[index].split)
        )
        left_out = max(0, counts.inputs - getattr(check, "max_rows", counts.inputs))
        total -= left_out
        by_split: Counter[str] = Counter()
        for index, n in counts.counts.get(name, {}).items():
            by_split[self.shards[index].split] += n
        count = by_split.total()
        share = count / total if total else 0.0
        finding: CheckFinding = {
            "count": count,
            "total": total,
            "share": share,
            "limit": check.limit,
            "action": check.action,
            "exceeded": share > check.limit,
            "splits": by_split,
            "examples": [
                self._example(check, rows[ref], None if other is None else rows[other])
                for ref, other in counts.examples.get(name, [])
            ],
        }
        if isinstance(check, NearOverlapCheck) and counts.capped:
            finding["capped"] = counts.capped
        if left_out:
            finding["left_out"] = left_out
        return finding

    def _example(self, check: DataCheck, row: ExampleRow, other: ExampleRow | None) -> CheckExample:
        pairs = zip(self.features, row.values, strict=True)
        texts = (feature.kind.format(feature, values) for feature, values in pairs)
        text = " | ".join(truncate(text) for text in texts)
        example: CheckExample = {"where": f"{row.file}:{row.line}", "text": text}
        if other is not None:
            example["same_as"] = f"{other.file}:{other.line}"
        compared = ComparedValues(self.features)
        if isinstance(check, NearOverlapCheck) and other is not None:
            value = near_duplicates.similarity(
                compared.input_text(row.values), compared.input_text(other.values)
            )
            example["similarity"] = value
            example["detail"] = f"{value:.0%} similar"
        elif isinstance(check, RowCheck):
            details = check.details(compared.row_texts(row.values), self.context)
            if detail := "; ".join(details):
                example["detail"] = detail
        return example


def describe(name: str, finding: CheckFinding) -> str:
    """Return a sentence with count, share, limit and first row of a finding."""
    check = check_class(name)
    text = (
        f"{name}: {finding['count']:,} of {finding['total']:,} rows ({finding['share']:.2%}) "
        f"{check.summary}; the limit is {finding['limit']:.2%}"
    )
    if capped := finding.get("capped"):
        rows = format_count(capped, "row")
        limit = near_duplicates.MAX_MEASURED
        text += f" ({rows} of train had more than {limit} similar candidates, of which only "
        text += f"{limit} were measured: the count may be too low)"
    if left_out := finding.get("left_out"):
        text += f" ({format_count(left_out, 'other row')} were left out: see `max_rows`)"
    if not finding["examples"]:
        return text
    remedy = f". {check.remedy}" if check.remedy else ""
    first = finding["examples"][0]
    other = f" (same as {first['same_as']})" if "same_as" in first else ""
    detail = f" ({first['detail']})" if "detail" in first else ""
    return f"{text}; first {first['where']}{other}: {first['text']!r}{detail}{remedy}"


def check_warnings(findings: Mapping[str, CheckFinding]) -> list[str]:
    """Return a sentence for each finding above its limit, or that may be too low."""
    return [
        describe(name, finding)
        for name, finding in findings.items()
        if finding["exceeded"] or "capped" in finding or "left_out" in finding
    ]


def failures(findings: Mapping[str, CheckFinding]) -> Iterator[UserError]:
    """Yield an error for each check with the action ``fail`` that exceeds its limit."""
    for name, finding in findings.items():
        if finding["exceeded"] and finding["action"] == "fail":
            key, check = f"data.checks.{name}", check_class(name)
            others = "warn or drop" if check.can_drop() else "warn"
            remedy = f"Fix the rows, raise `{key}.limit`, or set `{key}.action` to {others}."
            remedy = f"{remedy} {check.alternative}".rstrip()
            yield DataError(describe(name, finding), finding["examples"][0]["where"], remedy)
