"""What a table of predictions holds, as metrics read it and as other tools do."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components import predictions
from models.metrics import Rows
from models.metrics.aligning import ALIGNMENT
from models.metrics.baselines import BASELINES

HYPOTHESES = "hypotheses.txt"
REFERENCES = "references.txt"
# Lists that only what is drawn of a row needs, and metrics of that.
_PIECES = frozenset(name for name in predictions.RESERVED if name.endswith("pieces"))
# sacreBLEU's command line reads one sentence a line, so a break inside one must not survive.
_BREAKS = re.compile(r"\r\n|\r|\n")


def answered(path: Path, contract: Mapping[str, Any], looks: bool = False) -> Rows:
    """The answers, the references and the other columns of a table.

    Args:
        path: the table.
        contract: that of the model.
        looks: whether the weights that can be drawn and the pieces beside them are wanted too; they
            are most of the table.
    """
    bulk = () if looks else ((contract["looks"] or {}).get("weights"), ALIGNMENT, *_PIECES)
    names = [name for name in predictions.column_names(path) if name not in bulk]
    table = predictions.read(path, names)
    hypotheses, references = table.pop("hypothesis"), table.pop("references")
    if contract["answer_kind"] == "text":
        hypotheses = [one_line(text) for text in hypotheses]
        references = [[one_line(text) for text in row] for row in references]
    columns = {name: values for name, values in table.items() if name not in predictions.OWN}
    return Rows(hypotheses, references, columns)


def baseline(rows: Rows, contract: Mapping[str, Any], name: str) -> Rows:
    """The same rows, answered by one of `BASELINES` from the first text that the model is given.

    What the model told besides is not the baseline's, so it is left out.
    """
    source = next(entry["name"] for entry in contract["inputs"] if entry["kind"] == "text")
    answer = BASELINES[name].answer
    answers = [one_line(answer(text)) for text in rows.columns[source]]
    columns = {n: kept for n, kept in rows.columns.items() if n not in predictions.RESERVED}
    return Rows(answers, rows.references, columns)


def text_files(rows: Rows) -> dict[str, list[str]]:
    """The lines of the files that other tools read: hypotheses and references.

    Texts stand as they are, anything else as JSON. The second references of rows that have
    several are in ``references-2.txt``, and so on; a row that has fewer has its first one there
    again, which changes neither BLEU nor chrF. An empty line would: to sacreBLEU's command line it
    is a reference without words.
    """
    most = max(map(len, rows.references), default=0)
    files = {HYPOTHESES: [_line(answer) for answer in rows.hypotheses]}
    for number in range(max(most, 1)):
        name = REFERENCES if number == 0 else f"references-{number + 1}.txt"
        files[name] = [_line(row[number if number < len(row) else 0]) for row in rows.references]
    return files


def one_line(text: str) -> str:
    """The text with every line break replaced by a space."""
    return _BREAKS.sub(" ", text)


def _line(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
