"""Compare BLEU and sentences per second of a teacher and of a student with several searches.

    regard run configs/multi30k-en-de-rotary.yaml     # the teacher
    regard run configs/multi30k-en-de-best.yaml --set name=multi30k-en-de-student \\
        --set model.encoder.layers=2 --set model.decoder.layers=2 \\
        --set search.beam_size=2 --set search.patience=null --set training.max_steps=8000 \\
        --set augmentation.back_translation=null --set "data.monolingual=[]" \\
        --set evaluation.thresholds.bleu=36
    python -m benchmarks.students multi30k-en-de-rotary multi30k-en-de-student

The 1,000 test sentences of Multi30k from text to text, sorted by length, in batches of equal size;
the teacher with the search that it was published with. Both models are exported with the present
code, in float32. In each round all run one after another, each in a process of its own. The table
has medians over the rounds, of speeds and of ratios.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import workload
from benchmarks.decoding import export_with_search, sentences_per_second
from benchmarks.markdown_table import format_table, median_ratio

TEACHER = "teacher"
# With a length penalty, `patience` is 1 by default: a search stops when its beam is full.
SEARCHES: dict[str, dict[str, Any]] = {
    "greedy": {"type": "greedy"},
    "beam 2": {"type": "beam", "beam_size": 2},
    "beam 3": {"type": "beam", "beam_size": 3},
    "beam 5": {"type": "beam", "beam_size": 5},
    "beam 2, exact": {"type": "beam", "beam_size": 2, "patience": None},
}


def main() -> None:
    """Measure, and print the table."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("teacher", help="model of the registry")
    parser.add_argument("student", help="model of the registry")
    parser.add_argument("--only", nargs="+", metavar="SEARCH", choices=list(SEARCHES))
    parser.add_argument("--split", choices=list(workload.SPLITS), default="test")
    parser.add_argument("--batch", type=int, default=64, help="batch size in sentences")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()

    from regard.components.registry.records import read_record
    from regard.components.registry.store import Registry
    from regard.pipeline.workspace import Workspace

    workspace = Workspace.from_environment()
    registry = Registry(workspace.registry)
    teacher, student = (registry.resolve(name) for name in (arguments.teacher, arguments.student))
    sources, targets = workload.references(workspace.data_root() / "multi30k", arguments.split)
    pairs = list(zip(sources, targets, strict=True))[: arguments.sentences]
    pairs.sort(key=lambda pair: len(pair[0]), reverse=True)
    texts, references = [source for source, _ in pairs], [target for _, target in pairs]
    with tempfile.TemporaryDirectory() as folder:
        search = read_record(teacher).config["search"]
        models = {TEACHER: export_with_search(teacher, search, Path(folder, TEACHER))}
        published = read_record(student).config["search"]
        for number, name in enumerate(arguments.only or SEARCHES):
            search = change_search(published, SEARCHES[name])
            models[name] = export_with_search(student, search, Path(folder, str(number)))
        results: dict[str, list[dict[str, Any]]] = {name: [] for name in models}
        for _ in range(arguments.rounds):
            for name, model in models.items():
                print(f"{name} ...", file=sys.stderr, flush=True)
                results[name].append(decode(model, texts, arguments.batch, arguments.threads))
    print(format_results(results, references))


def change_search(published: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the published section ``search`` with changes, without keys of other types."""
    from regard.models.settings.search import BeamSearchConfig, GreedySearchConfig

    kind = {"greedy": GreedySearchConfig, "beam": BeamSearchConfig}[changes["type"]]
    settings = {name: value for name, value in published.items() if name in kind.model_fields}
    return {**settings, **changes}


def decode(model: str, texts: Sequence[str], batch: int, threads: int) -> dict[str, Any]:
    """Decode once in a process of its own; see `latency.measure` for the result."""
    request = {"program": "regard", "model": model, "texts": texts, "batch": batch}
    request |= {"threads": threads, "passes": 1, "single": 0}
    command = [sys.executable, "-m", "benchmarks.decoding_process"]
    return workload.run_process(command, request, threads)


def format_results(
    results: Mapping[str, Sequence[Mapping[str, Any]]], references: Sequence[str]
) -> str:
    """Format the results as a Markdown table with one row per search."""
    import sacrebleu

    speeds = {name: sentences_per_second(runs) for name, runs in results.items()}
    rows = []
    for name, runs in results.items():
        bleu = sacrebleu.corpus_bleu(list(runs[-1]["outputs"]), [list(references)]).score
        ratio = median_ratio(speeds[name], speeds[TEACHER])
        rows.append([name, f"{bleu:.2f}", f"{statistics.median(speeds[name]):.0f}", f"{ratio:.2f}"])
    return format_table(["search", "BLEU", "sentences/s", "× teacher"], rows)


if __name__ == "__main__":
    main()
