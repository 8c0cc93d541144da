"""A page about the rows on which two models differ."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.components.common import prediction_table
from regard.components.evaluator.row_differences import RowDifference, RowDifferences
from regard.components.reporter.examples import attention_data, make_input
from regard.components.reporter.run_facts import RunFacts
from regard.components.reporter.templates import render_page, script_json
from regard.components.reporter.text_diff import diff_texts
from regard.core.formatting import truncate
from regard.core.kinds import KINDS
from regard.serving.contract import answer_kind

_MAX_CHARACTERS = 1_200
# Rows with attention and images, which are most of the page.
_MAX_DETAILED_ROWS = 100
Json = dict[str, Any]


def difference_page_path(report: Path) -> Path:
    """Return the path of the page next to that of the report."""
    return report.with_name(f"{report.stem}.differences.html")


def render(facts: RunFacts, names: Sequence[str] = ()) -> str:
    """Render the page.

    Args:
        facts: the run, or the evaluation of two models.
        names: the names of both models; none: the candidate and the version in production.

    Returns:
        The page; empty if there are no two models, or no metric of single rows.
    """
    folder = facts.folders.get("evaluation")
    differences = RowDifferences.read(folder) if folder else None
    if differences is None or facts.table is None:
        return ""
    names = [_short_name(name) for name in names]
    if not names:
        version = (facts.metrics.get("production") or {}).get("version")
        names = ["candidate", f"version {version}" if version else "production"]
    kinds = [
        {"name": kind, "new": new, "fixed": fixed}
        for kind, (new, fixed) in differences.errors.items()
    ]
    data = {
        "names": names,
        "contract": {
            name: facts.contract.get(name)
            for name in ("inputs", "answer", "answer_kind", "looks", "heads")
        },
        "metric": differences.metric,
        "metrics": {name: metric.model_dump() for name, metric in differences.metrics.items()},
        "slices": differences.slices,
        "kinds": [entry["name"] for entry in kinds],
        "rows": _make_rows(facts, facts.table, differences.rows),
    }
    return render_page(
        "differences",
        names=names,
        run=facts.run,
        differences=differences,
        kinds=kinds,
        comparison=(facts.metrics.get("production") or {}).get("comparison"),
        data=script_json(data),
    )


def _short_name(name: str) -> str:
    """Return the last two parts of the path of a model, such as ``orders/2``."""
    return "/".join(name.rstrip("/").split("/")[-2:])


def _make_rows(facts: RunFacts, table: Path, rows: Sequence[RowDifference]) -> list[Json]:
    numbers = [difference.row for difference in rows]
    tables = [table, table.with_name(prediction_table.PRODUCTION)]
    detailed = numbers[:_MAX_DETAILED_ROWS]
    simple = numbers[_MAX_DETAILED_ROWS:]
    inputs = [entry["name"] for entry in facts.contract["inputs"]]
    columns = ["file", "line", "references", "hypothesis", *inputs]
    sides = [
        [
            *prediction_table.rows_at(path, detailed),
            *prediction_table.rows_at(path, simple, columns),
        ]
        for path in tables
    ]
    return [
        _make_row(facts, difference, own, other, rank < _MAX_DETAILED_ROWS)
        for rank, (difference, own, other) in enumerate(zip(rows, *sides, strict=True))
    ]


def _make_row(
    facts: RunFacts,
    difference: RowDifference,
    own: Mapping[str, Any],
    other: Mapping[str, Any],
    is_detailed: bool,
) -> Json:
    contract = facts.contract
    if answer_kind(contract).is_text:
        full = [own["hypothesis"], other["hypothesis"]]
        texts = [truncate(text, _MAX_CHARACTERS) for text in full]
        outputs = diff_texts(texts[0], texts[1], truncated=texts != full)
        references = [truncate(text, _MAX_CHARACTERS) for text in own["references"]]
    else:
        outputs = [(str(own["hypothesis"]), False)], [(str(other["hypothesis"]), False)]
        references = [str(value) for value in own["references"]]
    inputs = []
    for entry in contract["inputs"]:
        kind = KINDS[entry["kind"]]
        if kind.names_file and not is_detailed:
            inputs.append({"name": entry["name"], "text": own[entry["name"]], "url": None})
        else:
            card = make_input(own[entry["name"]], entry["name"], kind, facts.config)
            inputs.append({"name": card.name, "text": card.text, "url": card.url})
    return {
        "location": f"{Path(own['file']).name}:{own['line']}" if own["file"] else "",
        "inputs": inputs,
        "references": references,
        "outputs": outputs,
        "values": difference.values,
        "errors": difference.errors,
        "slices": difference.slices,
        "maps": [attention_data(side, contract) for side in (own, other)] if is_detailed else [],
    }
