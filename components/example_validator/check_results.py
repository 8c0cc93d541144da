"""Findings from the counts of the checks, and the warnings and errors that follow from them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from typing_extensions import NotRequired, TypedDict

from regard.components.data import near_duplicates, text_checks
from regard.components.data.example_rows import ExampleRow
from regard.components.data.row_values import ComparedValues
from regard.components.data.text_analysis import script_name
from regard.components.data.text_markup import find_entity, find_tokenization
from regard.components.example_validator.shard_rows import CheckCounts, Shard
from regard.components.example_validator.target_checks import (
    TargetSettings,
    is_changed,
    normalize_target,
    output_features,
)
from regard.components.settings.data_checks import CheckConfig, DataChecksConfig
from regard.core.errors import UserError
from regard.core.features import Feature
from regard.core.formatting import format_count, truncate

_DESCRIPTIONS = {
    "empty_side": "have an empty side",
    "length_ratio": "have sides of very different length",
    "too_long": "are too long",
    "duplicates": "of the training split are duplicates",
    "overlap": "of the other splits have inputs of the training split",
    "near_overlap": "of the other splits have inputs that are nearly the same as one of the "
    "training split",
    "target_overlap": "of the other splits have targets of the training split",
    "same_sides": "have the same text on both sides",
    "script": "are in a script that is unusual for their side",
    "language": "have a side in another language",
    "control_characters": "contain invisible control characters",
    "encoding": "were decoded with the wrong encoding",
    "html_entities": "contain HTML entities",
    "tokenization": "were tokenized before",
    "normalization": "have a target that the tokenizer's normalization changes",
}
# What to do about all rows, where the name of the check does not say it.
_REMEDIES = {
    "html_entities": "Replace them in the files, for example with Python's html.unescape",
    "tokenization": "Train on the original text, or join the words again, for example with "
    "`sacremoses detokenize`; otherwise requests must be tokenized in the same way",
}
_MARKUP = {"html_entities": find_entity, "tokenization": find_tokenization}
_WITHOUT_DROP = ("target_overlap", "normalization")
_OF_OTHER_SPLITS = ("overlap", "near_overlap", "target_overlap")


class CheckExample(TypedDict):
    """A row that a check found.

    Attributes:
        where: its file and line.
        text: its text, shortened.
        same_as: file and line of the row that it repeats.
        similarity: to that row, 0 to 1.
        detail: what is wrong, if the name of the check does not say it.
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
        action: that of the check; only ``fail`` fails the run, the others warn.
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
        features: of a row.
        usual_scripts: the usual scripts of each feature.
        targets: settings of the texts that the model writes.
    """

    checks: DataChecksConfig
    shards: Sequence[Shard]
    features: Sequence[Feature]
    usual_scripts: Mapping[str, set[str]]
    targets: TargetSettings

    @property
    def _active(self) -> dict[str, CheckConfig]:
        """The checks of rows that are set, by name."""
        return {name: check for name, check in self.checks if isinstance(check, CheckConfig)}

    def example_references(self, counts: CheckCounts) -> set[int]:
        """Return the references of the rows that the findings show as examples."""
        pairs = [pair for name in self._active for pair in counts.examples.get(name, ())]
        return {ref for pair in pairs for ref in pair if ref is not None}

    def findings(
        self, counts: CheckCounts, rows: Mapping[int, ExampleRow]
    ) -> dict[str, CheckFinding]:
        """Return the finding of every check that is set.

        Args:
            counts: of the checks.
            rows: the rows that the examples of the counts refer to.
        """
        return {
            name: self._finding(name, check, counts, rows) for name, check in self._active.items()
        }

    def _finding(
        self, name: str, check: CheckConfig, counts: CheckCounts, rows: Mapping[int, ExampleRow]
    ) -> CheckFinding:
        total = sum(n for index, n in counts.rows.items() if _examines(name, self.shards[index]))
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
                self._example(name, rows[ref], None if other is None else rows[other])
                for ref, other in counts.examples.get(name, [])
            ],
        }
        if name == "near_overlap" and counts.capped:
            finding["capped"] = counts.capped
        if left_out:
            finding["left_out"] = left_out
        return finding

    def _example(self, name: str, row: ExampleRow, other: ExampleRow | None) -> CheckExample:
        pairs = zip(self.features, row.values, strict=True)
        texts = (feature.kind.format(feature, values) for feature, values in pairs)
        text = " | ".join(truncate(text) for text in texts)
        example: CheckExample = {"where": f"{row.file}:{row.line}", "text": text}
        if other is not None:
            example["same_as"] = f"{other.file}:{other.line}"
        if name == "near_overlap" and other is not None:
            compared = ComparedValues(self.features)
            value = near_duplicates.similarity(
                *(compared.input_text(one.values) for one in (row, other))
            )
            example["similarity"] = value
            example["detail"] = f"{value:.0%} similar"
        elif detail := "; ".join(self._details(name, row)):
            example["detail"] = detail
        return example

    def _details(self, name: str, row: ExampleRow) -> Iterator[str]:
        """Yield what is wrong with the texts of a row if the check's name does not say it."""
        for feature, values in zip(self.features, row.values, strict=True):
            if not feature.tokenized:
                continue
            joined = " ".join(values)
            if name == "control_characters":
                controls = dict.fromkeys(text_checks.control_characters(joined))
                if controls:
                    codes = ", ".join(f"U+{ord(c):04X}" for c in controls)
                    yield f"{feature.name} contains {codes}"
            elif name in _MARKUP:
                if trace := _MARKUP[name](joined):
                    yield f"{feature.name} contains {trace.strip()}"
            elif name == "encoding":
                for text in values:
                    if (fixed := text_checks.fix_encoding(text)) != text:
                        yield f"{feature.name} should be {text_checks.changed_part(fixed, text)!r}"
            elif name == "normalization" and feature.name in output_features(self.features):
                for text in values:
                    if is_changed(text, self.targets.normalization):
                        other = normalize_target(text, self.targets.normalization)
                        part = text_checks.changed_part(other, text)
                        old = text_checks.changed_part(text, other)
                        yield f"{feature.name} becomes {part!r}, not {old!r}"
            elif name == "script":
                usual = self.usual_scripts.get(feature.name)
                for script in text_checks.unusual_scripts(joined, usual):
                    yield f"{feature.name} is {script_name(script)}"
            elif name == "language" and (check := self.checks.language):
                for _, language in text_checks.other_languages({feature.name: values}, check):
                    yield f"{feature.name} is {language}"


def describe(name: str, finding: CheckFinding) -> str:
    """Return a sentence with count, share, limit and first row of a finding."""
    text = (
        f"{name}: {finding['count']:,} of {finding['total']:,} rows ({finding['share']:.2%}) "
        f"{_DESCRIPTIONS[name]}; the limit is {finding['limit']:.2%}"
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
    remedy = f". {_REMEDIES[name]}" if name in _REMEDIES else ""
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
            key = f"data.checks.{name}"
            others = "warn" if name in _WITHOUT_DROP else "warn or drop"
            remedy = f"Fix the rows, raise `{key}.limit`, or set `{key}.action` to {others}."
            if name == "normalization":
                remedy = f"{remedy} `tokenizer.normalization: identity` keeps every character."
            yield UserError(describe(name, finding), finding["examples"][0]["where"], remedy)


def _examines(name: str, shard: Shard) -> bool:
    if name == "duplicates":
        return shard.split == "train"
    return name not in _OF_OTHER_SPLITS or shard.split != "train"
