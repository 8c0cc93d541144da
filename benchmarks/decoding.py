"""How fast Regard decodes, beside CTranslate2 and JoeyNMT with the same weights, in one run.

    python -m benchmarks.peers.install                    # JoeyNMT's environment, once
    regard run benchmarks/transformer.yaml                # the model, once: a quarter of an hour
    python -m benchmarks.decoding benchmark-transformer
    python -m benchmarks.decoding benchmark-transformer --only regard ctranslate2 --rounds 3

Multi30k's 1,000 test sentences from text to text, the longest first, in batches of one size, with
the model's own beam search and as many threads; then some of them alone. Each system answers in a
process of its own, one after another. Prints a table, and how many answers are the same.

Regard answers from the SavedModel, and `regard-patience` from one with `search.patience: 1`, which
ends a sentence when CTranslate2 does: when the beam is full. CTranslate2 has what `regard export`
writes; it divides by a power of the length where the others divide by one of (5 + length) / 6: with
such an exponent that both rise alike at the mean length of the references. JoeyNMT gets the weights
by its own names (benchmarks/peers/joeynmt_weights.py), and ends a sentence when all prefixes of its
beam have ended.
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
from benchmarks.peers.install import FOLDER as PEERS
from benchmarks.tables import markdown, ratio


@dataclasses.dataclass(frozen=True)
class System:
    """What is measured.

    Attributes:
        program: ``regard``, ``ctranslate2`` or ``joeynmt``.
        quantization: CTranslate2's.
        inter_threads: how many batches CTranslate2 decodes at once.
        patience: that of Regard's search; None: the model's own.
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
}


def main() -> None:
    """Measures, and prints."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="of the registry, or a folder with a SavedModel")
    parser.add_argument("--only", nargs="+", metavar="SYSTEM", choices=list(SYSTEMS))
    parser.add_argument("--batch", type=int, default=64, help="sentences at once")
    parser.add_argument("--passes", type=int, default=3, help="over all sentences, in a process")
    parser.add_argument("--rounds", type=int, default=1, help="all systems in turn, so many times")
    parser.add_argument("--single", type=int, default=200, help="sentences asked alone")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peers", type=Path, default=PEERS, help="where JoeyNMT is installed")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asked, targets = questions(arguments, Path(folder))
        found: dict[str, list[dict[str, Any]]] = {}
        for _ in range(arguments.rounds):
            for name in arguments.only or SYSTEMS:
                print(f"{name} ...", file=sys.stderr, flush=True)
                answered = run(SYSTEMS[name], asked, arguments)
                found.setdefault(name, []).append(answered)
    print(table(found, targets))


def questions(arguments: Any, folder: Path) -> tuple[dict[str, Any], list[str]]:
    """What all systems are asked, with the model as each reads it; and the references.

    Raises:
        UserError: there is no such model.
    """
    import numpy as np
    import sentencepiece

    from benchmarks.peers.joeynmt_weights import converted
    from components.registry import Registry, read_record
    from components.trainer import kept
    from pipeline.config import load
    from pipeline.workspace import Workspace

    registry = Workspace.from_environment().registry
    version = Registry(registry).resolve(arguments.model)
    model = kept.read(version)
    if model is None:
        sys.exit(f"{version} tells no names of its weights")
    serialized = model.tokenizers["target"]
    (folder / "tokenizer.model").write_bytes(serialized)
    tokenizer = sentencepiece.SentencePieceProcessor(model_proto=serialized)
    names = [tokenizer.id_to_piece(i) for i in range(tokenizer.get_piece_size())]
    (folder / "pieces.txt").write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    weights = dict(zip(model.names, model.weights, strict=True))
    np.savez(folder / "joeynmt.npz", **converted(weights, model.model))
    config = load(workload.ROOT / "benchmarks" / "transformer.yaml").model_dump(mode="json")
    recorded = read_record(version).get("config", {})
    config |= {name: recorded[name] for name in ("training", "search") if name in recorded}
    search = config["search"]
    sources, targets = workload.references(Path(config["data"]["root"]))
    pairs = list(zip(sources, targets, strict=True))[: arguments.sentences]
    pairs.sort(key=lambda pair: len(tokenizer.encode(pair[0])), reverse=True)
    lengths = [len(tokenizer.encode(target)) + 1 for _, target in pairs]
    asked = {
        "texts": [source for source, _ in pairs],
        "models": {"regard": str(version), "joeynmt": str(folder / "joeynmt.npz")},
        "registry": str(registry),
        "settings": model.model,
        "config": {name: config[name] for name in ("training", "search")},
        "tokenizer": str(folder / "tokenizer.model"),
        "pieces": str(folder / "pieces.txt"),
        "beam_size": search["beam_size"],
        "length_penalty": search["length_penalty"],
        "own_length_penalty": _of_ctranslate2(
            search["length_penalty"], sum(lengths) / len(lengths)
        ),
        "length_factor": search["max_length_factor"],
        "length_offset": search["max_length_offset"] + 1,
    }
    return asked, [target for _, target in pairs]


def _of_ctranslate2(penalty: float, length: float) -> float:
    """What length**α must have for an exponent to rise like ((5 + length) / 6)**penalty there."""
    return penalty * length / (5.0 + length)


def run(system: System, asked: Mapping[str, Any], arguments: Any) -> dict[str, Any]:
    """One system in a process of its own; what it answered."""
    request = {key: value for key, value in asked.items() if key != "models"}
    request |= {name: getattr(arguments, name) for name in ("batch", "passes", "single", "threads")}
    request |= {"program": system.program, "inter_threads": system.inter_threads}
    command = [sys.executable, "-m", "benchmarks.decoding_process"]
    if system.program == "ctranslate2":
        request["model"] = _exported(asked, system.quantization)
    elif system.patience is not None:
        request["model"] = _searching(asked, system.patience)
    else:
        request["model"] = asked["models"][system.program]
    if system.program == "joeynmt":
        python = arguments.peers / "bin" / "python"
        if not python.exists():
            sys.exit(f"{python} is not there: python -m benchmarks.peers.install")
        command = [str(python), "-m", "benchmarks.peers.joeynmt_decoding"]
    return workload.asked_of(command, request, arguments.threads)


def _exported(asked: Mapping[str, Any], quantization: str) -> str:
    """The model as `regard export` writes it, once."""
    folder = Path(asked["pieces"]).parent / f"ctranslate2-{quantization}"
    if not folder.exists():
        from pipeline.exporting import to_ctranslate2

        model, registry = asked["models"]["regard"], Path(asked["registry"])
        to_ctranslate2(model, registry, folder, quantization)
    return str(folder)


def _searching(asked: Mapping[str, Any], patience: float) -> str:
    """The same weights with another search, once."""
    folder = Path(asked["pieces"]).parent / f"patience-{patience:g}"
    if not folder.exists():
        from components.trainer import kept
        from components.trainer.export import export, read_tokenizers
        from models import tasks

        model = kept.read(Path(asked["models"]["regard"]))
        assert model is not None  # `questions` has read it
        task = tasks.get(model.task)
        for side, serialized in model.tokenizers.items():
            (folder.parent / f"{side}.model").write_bytes(serialized)
        tokenizers = read_tokenizers(folder.parent, task.description.text_features)
        config = {**asked["config"], "model": model.model}
        config["search"] = {**config["search"], "patience": patience}
        pieces = {side: int(tokenizer.vocab_size()) for side, tokenizer in tokenizers.items()}
        same = task.build(config["model"], config["training"], pieces)
        same.set_weights(model.weights)
        export(same, task, config, tokenizers, folder)
    return str(folder)


def table(found: Mapping[str, Sequence[Mapping[str, Any]]], targets: Sequence[str]) -> str:
    """Markdown: a line a system, and what shows that they answered alike."""
    import sacrebleu

    speeds = {
        name: [len(run["answers"]) / statistics.median(run["seconds"]) for run in runs]
        for name, runs in found.items()
    }
    delays = {
        name: sorted(x for run in runs for x in run["latencies"]) for name, runs in found.items()
    }
    first = next(name for name in ("regard", *found) if name in found)
    peers = [name for name in found if name != "regard"]
    head = ["system", "sentences/s", *(f"× {peer}" for peer in peers), "alone p50 ms", "p95 ms"]
    head += ["BLEU", f"same as {first}", "alone as in a batch"]
    rows = []
    for name, runs in found.items():
        answers, delay = runs[-1]["answers"], delays[name]
        same = [a == b for a, b in zip(answers, found[first][-1]["answers"], strict=True)]
        cells = [name, f"{statistics.median(speeds[name]):.1f}"]
        cells += [f"{ratio(speeds[name], speeds[peer]):.2f}" for peer in peers]
        cells += [f"{1e3 * _share(delay, 0.5):.1f}", f"{1e3 * _share(delay, 0.95):.1f}"]
        cells.append(f"{sacrebleu.corpus_bleu(list(answers), [list(targets)]).score:.2f}")
        cells += [f"{statistics.mean(same):.1%}", f"{runs[-1]['same_alone']:.1%}"]
        rows.append(cells)
    return markdown(head, rows)


def _share(values: Sequence[float], share: float) -> float:
    return values[int(share * (len(values) - 1))] if values else float("nan")


if __name__ == "__main__":
    main()
