"""Converts a table of predictions to rows for metrics, and to text files for other tools."""

import json
import re
from pathlib import Path
from typing import Any

from regard.components.common import prediction_table
from regard.components.evaluator.slices import FILE
from regard.models.metrics import Rows
from regard.models.metrics.baselines import BASELINES
from regard.models.reference_columns import ALIGNMENT, FORCED_COLUMNS
from regard.models.tags import split_tag
from regard.serving.contract import Contract, answer_kind, text_inputs

HYPOTHESES = "hypotheses.txt"
REFERENCES = "references.txt"
# The end of the names of columns of tokens, which only renderings and metrics of attention need.
_TOKENS = "pieces"
# sacreBLEU's command reads one sentence per line, so line breaks inside sentences are replaced.
_LINE_BREAKS = re.compile(r"\r\n|\r|\n")


def read_rows(path: Path, contract: Contract, with_attention: bool = False) -> Rows:
    """Read the outputs, the references and the other columns of a table.

    Args:
        path: the table.
        contract: the model's contract.
        with_attention: whether to read attention weights and tokens, which are most of the table.
    """
    weights = contract["looks"]["weights"] if contract["looks"] else None
    tokens = (name for name in _model_outputs(contract) if name.endswith(_TOKENS))
    excluded = () if with_attention else (weights, ALIGNMENT, *tokens)
    names = [name for name in prediction_table.column_names(path) if name not in excluded]
    table = prediction_table.read(path, names)
    hypotheses, references = table.pop("hypothesis"), table.pop("references")
    if answer_kind(contract).is_text:
        hypotheses = [_one_line(text) for text in hypotheses]
        references = [[_one_line(text) for text in row] for row in references]
    fixed = {*prediction_table.FIXED_COLUMNS} - {FILE}
    columns = {name: values for name, values in table.items() if name not in fixed}
    if tags := contract.get("tags"):  # metrics, checks and slices compare the text alone
        source = contract["inputs"][0]["name"]
        columns[source] = [split_tag(text, tags)[1] for text in columns[source]]
    return Rows(hypotheses, references, columns)


def baseline_rows(rows: Rows, contract: Contract, name: str) -> Rows:
    """Return the rows with the outputs of one of `BASELINES`, of the model's first text input.

    The model's other outputs are dropped.
    """
    texts = text_inputs(contract)
    hypotheses = BASELINES[name].predict(rows, rows.columns[texts[0]] if texts else [])
    if answer_kind(contract).is_text:
        hypotheses = [_one_line(text) for text in hypotheses]
    outputs = _model_outputs(contract)
    columns = {name: values for name, values in rows.columns.items() if name not in outputs}
    return Rows(hypotheses, rows.references, columns)


def _model_outputs(contract: Contract) -> frozenset[str]:
    """Return the columns of a table that are outputs of the model."""
    return frozenset((*contract["signatures"][contract["detail"]]["outputs"], *FORCED_COLUMNS))


def text_files(rows: Rows) -> dict[str, list[str]]:
    """Return the lines of files with the hypotheses and the references, by file name.

    Texts are written as they are, other outputs as JSON. The second references of rows are in
    ``references-2.txt``, and so on; for rows with fewer references the first one is repeated,
    which changes neither BLEU nor chrF, whereas sacreBLEU's command takes an empty line for a
    reference.
    """
    count = max(map(len, rows.references), default=0)
    files = {HYPOTHESES: [_line(output) for output in rows.hypotheses]}
    for number in range(max(count, 1)):
        name = REFERENCES if number == 0 else f"references-{number + 1}.txt"
        files[name] = [_line(row[number if number < len(row) else 0]) for row in rows.references]
    return files


def _one_line(text: str) -> str:
    return _LINE_BREAKS.sub(" ", text)


def _line(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
