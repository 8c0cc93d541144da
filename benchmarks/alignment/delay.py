"""Alignment error rates with the attention of the step before and after each target token.

    python -m benchmarks.alignment.delay alignment-tatoeba-luong alignment-tatoeba-luong-guided

reads the predictions of the newest finished run of each pipeline in ``$REGARD_HOME``.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
import pyarrow.parquet

from regard.models.metrics import GoldAlignment, MetricOptions, Rows, compute
from regard.models.reference_columns import ALIGNMENT, SOURCE, TARGET


def shifted_rates(table: dict[str, list]) -> dict[int, float]:
    """Return the error rate by shift: -1 uses the weights of the step before each token."""
    rates = {}
    for shift in (-1, 0, 1):
        weights = []
        for row in table[ALIGNMENT]:
            steps = np.clip(np.arange(len(row)) + shift, 0, len(row) - 1)
            weights.append([row[step] for step in steps])
        columns = {**table, ALIGNMENT: weights}
        texts = [""] * len(weights)
        options = MetricOptions(alignment=GoldAlignment("links"))
        (metric,) = compute(["aer"], Rows(texts, [[text] for text in texts], columns), options)
        rates[shift] = metric.value
    return rates


def main() -> None:
    """Print a line per pipeline."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("pipelines", nargs="+")
    for name in parser.parse_args().pipelines:
        folder = Path(os.environ["REGARD_HOME"], "pipelines", name, "artifacts", "Predictor")
        files = folder.glob("predictions/*/candidate.parquet")
        newest = max(files, key=lambda file: int(file.parent.name))
        columns = [ALIGNMENT, SOURCE, TARGET, "links"]
        rates = shifted_rates(pyarrow.parquet.read_table(newest, columns=columns).to_pydict())
        print(name, *(f"{shift:+d}: {rate:.4f}" for shift, rate in rates.items()))


if __name__ == "__main__":
    main()
