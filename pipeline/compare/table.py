"""The table of a comparison: Markdown for a file, columns for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.compare.results import FINISHED, SIDE_BY_SIDE
from pipeline.live import duration

if TYPE_CHECKING:
    from rich.text import Text

Entry = Mapping[str, Any]


def markdown(content: Mapping[str, Any], command: str) -> str:
    """The table of what ``results.gather`` gives, with all that its figures depend on.

    Args:
        content: the comparison.
        command: what was called, for the line above the table.
    """
    models = content["models"]
    columns = _columns(models)
    lines = [f"# {content['name']}", "", "```sh", command, "```", ""]
    lines += [_row(["model", *columns]), _row(["---", *["---:"] * len(columns)])]
    for cells in _cells(_rows(content), columns):
        lines.append(_row(cells))
    return "\n".join([*lines, "", *(f"- {note}" for note in notes(models)), ""])


def lines(content: Mapping[str, Any]) -> list[Text]:
    """The same table for the terminal or a log: whole numbers, however narrow that is."""
    from rich.text import Text

    models = content["models"]
    made = _columns(models)
    rows = [["model", *made], *_cells(_rows(content), made)]
    widths = [max(len(row[i].strip("*")) for row in rows) for i in range(len(rows[0]))]
    found = []
    for number, row in enumerate(rows):
        line = Text()
        for i, (cell, width) in enumerate(zip(row, widths, strict=True)):
            plain = cell.strip("*")
            padded = f"{plain:>{width}}" if i else f"{plain:<{width}}"
            bold = number == 0 or plain != cell
            line.append(("  " if i else "") + padded, "bold" if bold else "")
        found.append(line)
    return found


def notes(models: Sequence[Entry]) -> list[str]:
    """Signatures and conditions, each told once."""
    done = [model for model in models if "metrics" in model]
    if not done:
        return []
    told = [
        f"not comparable: the {what} differ: {' | '.join(', '.join(g) for g in groups)}"
        for what, groups in (
            ("tokenizers", _alike(done, "tokenizer")),
            ("test splits", _alike(done, "references")),
        )
        if len(groups) > 1
    ]
    told += [f"{label}: `{sign}`" for label, sign in _signatures(done) if sign]
    rows = sorted({model["test_rows"] for model in done if "test_rows" in model})
    parts = []
    if any("perplexity" in model for model in done):
        parts.append(
            "perplexity: of a piece, on the eval split, with the weights that are exported"
        )
    if len(rows) == 1:
        parts.append(f"the scores are of the test split, {rows[0]:,} rows")
    told += ["; ".join(parts)] if parts else []
    speeds = {(m.get("device"), m.get("decode_batch_size")) for m in done}
    for device, batch in sorted(speeds, key=str):
        if device:
            told.append(f"sentences/s: with the exported model on a {device}, batches of {batch}")
    shared: dict[int, list[str]] = {}
    for model in done:
        shared.setdefault(int(model.get(SIDE_BY_SIDE, 1)), []).append(model["label"])
    for number, labels in sorted(shared.items()):
        if number > 1:
            told.append(f"{number} models shared the machine: {', '.join(labels)}")
    return told


def _alike(done: Sequence[Entry], key: str) -> list[list[str]]:
    """The labels of the models that have the same under a key, together."""
    groups: dict[str, list[str]] = {}
    for model in done:
        if key in model:
            groups.setdefault(model[key], []).append(model["label"])
    return list(groups.values())


def _signatures(done: Sequence[Entry]) -> list[tuple[str, str]]:
    found: dict[tuple[str, str], None] = {}
    for model in done:
        for metric in model["metrics"].values():
            found[(metric.get("label", metric["name"]), metric.get("signature", ""))] = None
    return list(found)


def _rows(content: Mapping[str, Any]) -> list[Entry]:
    """All models, and below them what answers without one."""
    return [*content["models"], *content.get("baselines", [])]


def _columns(models: Sequence[Entry]) -> dict[str, tuple[Callable[[Entry], Any], str, int]]:
    """Heading to: how to get the number, its format, and whether high (1) or low (-1) is best."""
    found: dict[str, tuple[Callable[[Entry], Any], str, int]] = {
        "parameters": (lambda m: m.get("parameters"), ",d", 0),
        "training, s": (lambda m: m.get("training_seconds"), ",.0f", 0),
        "epochs": (lambda m: m.get("epochs"), ",d", 0),
        "steps": (lambda m: m.get("steps"), ",d", 0),
        "perplexity": (lambda m: m.get("perplexity"), ",.2f", -1),
    }
    if not any("perplexity" in model or "metrics" not in model for model in models):
        del found["perplexity"]  # what is trained here has none
    for model in models:
        for name, metric in model.get("metrics", {}).items():
            digits = ".2f" if metric.get("scale", 100.0) >= 10 else ".4f"
            best = 1 if metric.get("higher_is_better", True) else -1
            heading = metric.get("label", name)
            found[heading] = (_value_of(name), digits, best)
    found["sentences/s"] = (lambda m: m.get("sentences_per_second"), ",.1f", 0)
    return found


def _value_of(name: str) -> Callable[[Entry], Any]:
    return lambda model: model.get("metrics", {}).get(name, {}).get("value")


def _cells(models: Sequence[Entry], columns: Mapping[str, Any]) -> list[list[str]]:
    """The rows; the best of a column is bold where two or more can be compared."""
    rows = [[_name(model)] for model in models]
    for get, form, best in columns.values():
        values = [get(model) for model in models]
        texts = ["–" if value is None else format(value, form) for value in values]
        known = [value for value in values if value is not None]
        if best and len(known) > 1:
            top = format(max(known) if best > 0 else min(known), form)
            texts = [f"**{text}**" if text == top else text for text in texts]
        for row, text in zip(rows, texts, strict=True):
            row.append(text)
    return rows


def _name(model: Entry) -> str:
    """The label; with the state of a model whose last run has not ended well."""
    if model["state"] == FINISHED:
        return str(model["label"])
    return f"{model['label']} ({model['state']})"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def status_lines(content: Mapping[str, Any]) -> list[str]:
    """One line a model: its label, its state, and what there is to tell about it."""
    margin = max(len(model["label"]) for model in content["models"])
    lines = []
    for model in content["models"]:
        text = model.get("detail", "")
        if model["state"] == FINISHED:
            text = brief(model)
        lines.append(f"{model['label']:<{margin}}  {model['state']:<11}  {text}".rstrip())
    return lines


def brief(model: Entry) -> str:
    """A finished model in a few words."""
    facts = []
    for metric in list(model.get("metrics", {}).values())[:2]:
        digits = 2 if metric.get("scale", 100.0) >= 10 else 4
        facts.append(f"{metric.get('label', metric['name'])} {metric['value']:.{digits}f}")
    if "perplexity" in model:
        facts.append(f"perplexity {model['perplexity']:.2f}")
    if "training_seconds" in model:
        facts.append(f"trained in {duration(model['training_seconds'])}")
    return " · ".join(facts)
