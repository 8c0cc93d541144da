"""Compare the decoding speed of Regard with CTranslate2 and JoeyNMT on equal weights.

    python -m benchmarks.peers.install                    # JoeyNMT's environment, once
    regard run benchmarks/transformer.yaml                # the model, once: a quarter of an hour
    python -m benchmarks.decoding benchmark-transformer
    python -m benchmarks.decoding benchmark-transformer --only regard ctranslate2 --rounds 3

The 1,000 test sentences of Multi30k from text to text, sorted by length, in batches of equal size,
with the model's beam search and equal numbers of threads; then some of them one by one. The systems
run one after another, each in a process of its own. Prints a table with the speeds and the share of
equal outputs.

Regard decodes with the SavedModel, and `regard-patience` with `search.patience: 1`, which stops
like CTranslate2, when the beam is full. CTranslate2 uses the output of `regard export`. It divides
scores by a power of the length, the others by a power of (5 + length) / 6; the exponent is chosen
such that both grow equally at the mean length of the references. JoeyNMT gets converted weights
(benchmarks/peers/joeynmt_weights.py), and stops when all prefixes of its beam have finished.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import workload
from benchmarks.markdown_table import format_table, median_ratio
from benchmarks.peers.install import FOLDER as PEERS


@dataclasses.dataclass(frozen=True)
class System:
    """A system to measure.

    Attributes:
        program: ``regard``, ``ctranslate2`` or ``joeynmt``.
        quantization: the number format of CTranslate2.
        inter_threads: the number of batches that CTranslate2 decodes in parallel.
        patience: the patience of Regard's search; None for the model's setting.
    """

    program: str
    quantization: str = "float32"
    inter_threads: int = 1
    patience: float | None = None


SYSTEMS = {
    "joeynmt": System("joeynmt"),
    "ctranslate2": System("ctranslate2"),
    "ctranslate2-side-by-side": System("ctranslate2", inter_threads=2),
    "ctranslate2-int8": System("ctranslate2", "int8"),
    "ctranslate2-int8-side-by-side": System("ctranslate2", "int8", inter_threads=2),
    "regard": System("regard"),
    "regard-patience": System("regard", patience=1.0),
    "regard-exact": System("regard", patience=1000.0),  # more hypotheses than can end
}


def main() -> None:
    """Measure, and print the table."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="model of the registry, or folder of a SavedModel")
    parser.add_argument("--only", nargs="+", metavar="SYSTEM", choices=list(SYSTEMS))
    parser.add_argument("--batch", type=int, default=64, help="batch size in sentences")
    parser.add_argument(
        "--passes", type=int, default=3, help="passes over all sentences per process"
    )
    parser.add_argument(
        "--rounds", type=int, default=1, help="measure all systems in turn, this many times"
    )
    parser.add_argument(
        "--single", type=int, default=200, help="number of sentences to translate one by one"
    )
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peers", type=Path, default=PEERS, help="virtual environment of JoeyNMT")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        job, targets = prepare_job(arguments, Path(folder))
        results: dict[str, list[dict[str, Any]]] = {}
        for _ in range(arguments.rounds):
            for name in arguments.only or SYSTEMS:
                print(f"{name} ...", file=sys.stderr, flush=True)
                result = run(SYSTEMS[name], job, arguments)
                results.setdefault(name, []).append(result)
    print(format_results(results, targets))


def prepare_job(arguments: Any, folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Prepare the inputs, and the model in the format of each system; also return the references.

    Raises:
        UserError: there is no such model.
    """
    import numpy as np
    import sentencepiece

    from benchmarks.peers.joeynmt_weights import convert_weights
    from regard.components.registry.records import read_record
    from regard.components.registry.store import Registry
    from regard.components.trainer.export import read_warm_start
    from regard.pipeline.config import load
    from regard.pipeline.workspace import Workspace

    registry = Workspace.from_environment().registry
    version = Registry(registry).resolve(arguments.model)
    model = read_warm_start(version)
    if model is None:
        sys.exit(f"{version} has no file for a warm start")
    serialized = model.tokenizers["target"]
    (folder / "tokenizer.model").write_bytes(serialized)
    tokenizer = sentencepiece.SentencePieceProcessor(model_proto=serialized)
    tokens = [tokenizer.id_to_piece(i) for i in range(tokenizer.get_piece_size())]
    (folder / "vocabulary.txt").write_text(
        "".join(f"{token}\n" for token in tokens), encoding="utf-8"
    )
    weights = dict(zip(model.weight_names, model.weights, strict=True))
    np.savez(folder / "joeynmt.npz", **convert_weights(weights, model.model))
    config = load(workload.ROOT / "benchmarks" / "transformer.yaml").model_dump(mode="json")
    search = read_record(version).config.get("search", config["search"])
    sources, targets = workload.references(Path(config["data"]["root"]))
    pairs = list(zip(sources, targets, strict=True))[: arguments.sentences]
    pairs.sort(key=lambda pair: len(tokenizer.encode(pair[0])), reverse=True)
    lengths = [len(tokenizer.encode(target)) + 1 for _, target in pairs]
    job = {
        "texts": [source for source, _ in pairs],
        "models": {"regard": str(version), "joeynmt": str(folder / "joeynmt.npz")},
        "registry": str(registry),
        "settings": model.model,
        "tokenizer": str(folder / "tokenizer.model"),
        "vocabulary": str(folder / "vocabulary.txt"),
        "search": search,
        "beam_size": search["beam_size"],
        "length_penalty": search["length_penalty"],
        "ctranslate2_length_penalty": _ctranslate2_penalty(
            search["length_penalty"], sum(lengths) / len(lengths)
        ),
        "length_factor": search["max_length_factor"],
        "length_offset": search["max_length_offset"] + 1,
    }
    return job, [target for _, target in pairs]


def _ctranslate2_penalty(penalty: float, length: float) -> float:
    """The exponent α for which length**α grows like ((5 + length) / 6)**penalty at this length."""
    return penalty * length / (5.0 + length)


def run(system: System, job: Mapping[str, Any], arguments: Any) -> dict[str, Any]:
    """Run one system in a process of its own, and return its result."""
    request = {key: value for key, value in job.items() if key != "models"}
    request |= {name: getattr(arguments, name) for name in ("batch", "passes", "single", "threads")}
    request |= {"program": system.program, "inter_threads": system.inter_threads}
    command = [sys.executable, "-m", "benchmarks.decoding_process"]
    if system.program == "ctranslate2":
        request["model"] = _export_ctranslate2(job, system.quantization)
    elif system.patience is not None:
        request["model"] = export_with_search(
            Path(job["models"]["regard"]),
            {**job["search"], "patience": system.patience},
            Path(job["vocabulary"]).parent / f"patience-{system.patience:g}",
        )
    else:
        request["model"] = job["models"][system.program]
    if system.program == "joeynmt":
        python = arguments.peers / "bin" / "python"
        if not python.exists():
            sys.exit(f"{python} does not exist: run python -m benchmarks.peers.install")
        command = [str(python), "-m", "benchmarks.peers.joeynmt_decoding"]
    return workload.run_process(command, request, arguments.threads)


def _export_ctranslate2(job: Mapping[str, Any], quantization: str) -> str:
    """Export the model with `regard export` on first use, and return its folder."""
    folder = Path(job["vocabulary"]).parent / f"ctranslate2-{quantization}"
    if not folder.exists():
        from regard.pipeline.deployment.export import to_ctranslate2

        model, registry = job["models"]["regard"], Path(job["registry"])
        to_ctranslate2(model, registry, folder, quantization)
    return str(folder)


def export_with_search(version: Path, search: Mapping[str, Any], folder: Path) -> str:
    """Export a model in float32 with another search on first use, and return the folder.

    Args:
        version: a version of the registry.
        search: the section ``search``.
        folder: where to write the SavedModel.
    """
    if not folder.exists():
        from regard.components.common.tokenizers import read_tokenizers
        from regard.components.registry.records import read_record
        from regard.components.settings.trainer import TrainerConfig
        from regard.components.trainer.export import export, read_warm_start
        from regard.models import tasks

        model, recorded = read_warm_start(version), read_record(version).config
        if model is None:
            sys.exit(f"{version} has no file for a warm start")
        network = tasks.get_network(model.task)
        with tempfile.TemporaryDirectory() as serialized:
            for side, content in model.tokenizers.items():
                (Path(serialized) / f"{side}.model").write_bytes(content)
            tokenizers = read_tokenizers(Path(serialized), network.description.text_features)
        config = TrainerConfig(
            task=model.task,
            model=model.model,
            training=recorded.get("training", {}),
            search=search,
        )
        sizes = {side: int(tokenizer.vocab_size()) for side, tokenizer in tokenizers.items()}
        copy = network.build(config.model, config.training, sizes)
        copy.set_weights(model.weights)
        export(copy, network, config, tokenizers, folder)
    return str(folder)


def sentences_per_second(runs: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the speed of the median pass of each run."""
    return [len(run["outputs"]) / statistics.median(run["seconds"]) for run in runs]


def format_results(
    results: Mapping[str, Sequence[Mapping[str, Any]]], targets: Sequence[str]
) -> str:
    """Format the results as a Markdown table with one row per system."""
    import sacrebleu

    speeds = {name: sentences_per_second(runs) for name, runs in results.items()}
    latencies = {
        name: sorted(x for run in runs for x in run["latencies"]) for name, runs in results.items()
    }
    first = next(name for name in ("regard", *results) if name in results)
    peers = [name for name in results if name != "regard"]
    header = ["system", "sentences/s", *(f"× {peer}" for peer in peers), "single p50 ms", "p95 ms"]
    header += ["BLEU", f"same as {first}", "single same as batch"]
    rows = []
    for name, runs in results.items():
        outputs, times = runs[-1]["outputs"], latencies[name]
        same = [a == b for a, b in zip(outputs, results[first][-1]["outputs"], strict=True)]
        cells = [name, f"{statistics.median(speeds[name]):.1f}"]
        cells += [f"{median_ratio(speeds[name], speeds[peer]):.2f}" for peer in peers]
        cells += [f"{1e3 * _quantile(times, 0.5):.1f}", f"{1e3 * _quantile(times, 0.95):.1f}"]
        cells.append(f"{sacrebleu.corpus_bleu(list(outputs), [list(targets)]).score:.2f}")
        cells += [f"{statistics.mean(same):.1%}", f"{runs[-1]['same_alone']:.1%}"]
        rows.append(cells)
    return format_table(header, rows)


def _quantile(values: Sequence[float], quantile: float) -> float:
    return values[int(quantile * (len(values) - 1))] if values else float("nan")


if __name__ == "__main__":
    main()
