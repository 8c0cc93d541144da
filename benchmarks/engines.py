"""Compare `regard serve` with each engine, over gRPC, with CTranslate2 called directly.

    python -m benchmarks.engines benchmark-transformer --rows sources.txt --references targets.txt

Each system translates the rows in requests of 64, two at a time, sorted by length, and then some of
them one by one. The server and the process that calls CTranslate2 directly have the same cores, two
threads, and the same weights and search. Of a model that CTranslate2 does not support, only the
other two engines are measured. Prints a table; ratios compare values of the same round. The start
of a server includes the conversion and the verification; its memory is that after all requests.
"""

import argparse
import dataclasses
import json
import math
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.markdown_table import format_table, median_ratio

ROOT = Path(__file__).resolve().parents[1]
BATCH, THREADS = 64, 2
SYSTEMS = ["ctranslate2", "served-ctranslate2", "served-tensorflow"]
SYSTEMS += ["served-jax", "ctranslate2-int8", "served-ctranslate2-int8"]
_WARM_UP_SECONDS = 10.0  # the server runs all signatures once in the background
Translate = Callable[[Sequence[str]], list[str]]


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="model of the registry")
    parser.add_argument("--rows", type=Path, required=True, help="file with one text per line")
    parser.add_argument("--references", type=Path, required=True, help="their translations")
    parser.add_argument("--registry", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--single", type=int, default=60, help="rows to translate one by one")
    parser.add_argument("--only", nargs="+", choices=SYSTEMS)
    arguments = parser.parse_args()
    if not arguments.only:
        systems = SYSTEMS if _is_convertible(arguments) else ["served-tensorflow", "served-jax"]
        arguments.only = systems
    columns = (arguments.rows, arguments.references)
    pairs = list(zip(*(file.read_text("utf-8").splitlines() for file in columns), strict=True))
    pairs.sort(key=lambda pair: len(pair[0]), reverse=True)
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in arguments.only}
    for _ in range(arguments.rounds):
        for name in arguments.only:
            print(f"{name} ...", file=sys.stderr, flush=True)
            with _open(name, arguments) as system:
                texts = [source for source, _ in pairs]
                measured = _measure(system.translate, texts, arguments.single)
                results[name].append({**measured, **system.describe_server()})
    print(_format(results, [target for _, target in pairs]))


@dataclasses.dataclass(frozen=True)
class _System:
    """What translates, and of a server its start in seconds and its process."""

    translate: Translate
    start_seconds: float = 0.0
    pid: int = 0

    def describe_server(self) -> dict[str, float]:
        """Return the start in seconds and the memory in MB of a server."""
        if not self.pid:
            return {}
        status = Path(f"/proc/{self.pid}/status").read_text("utf-8")
        (kilobytes,) = (line.split()[1] for line in status.splitlines() if "VmRSS" in line)
        return {"start": self.start_seconds, "memory": int(kilobytes) / 1000}


def _is_convertible(arguments: argparse.Namespace) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        command = ["export", arguments.model, "--out", f"{folder}/out", *_registry(arguments)]
        return _regard(*command).wait() == 0


def _registry(arguments: argparse.Namespace) -> list[str]:
    return ["--registry", str(arguments.registry)] if arguments.registry else []


@contextmanager
def _open(name: str, arguments: argparse.Namespace) -> Iterator[_System]:
    kind = "int8" if name.endswith("int8") else "float32"
    registry = _registry(arguments)
    if name.startswith("ctranslate2"):
        with tempfile.TemporaryDirectory() as folder:
            command = ["export", arguments.model, "--out", f"{folder}/out", "--quantization", kind]
            _regard(*command, *registry).wait()
            yield _System(_direct(Path(folder, "out")))
        return
    engine = ["--engine", "jax"] if name == "served-jax" else []
    if "ctranslate2" in name:
        engine = ["--engine", "ctranslate2", "--quantization", kind]
    port = _free_port()
    command = ["serve", arguments.model, "--port", str(port), "--rest-api-port", "0", *registry]
    started = time.monotonic()
    server = _regard(*command, *engine)
    try:
        assert server.stdout is not None
        server.stdout.readline()
        seconds = time.monotonic() - started
        time.sleep(_WARM_UP_SECONDS)
        model = Path(arguments.model).name.partition("@")[0]
        yield _System(_served(f"127.0.0.1:{port}", model), seconds, server.pid)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)


def _direct(folder: Path) -> Translate:
    import ctranslate2
    import sentencepiece

    source, target = (
        sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.model"))
        for side in ("source", "target")
    )
    translator = ctranslate2.Translator(str(folder), inter_threads=THREADS, intra_threads=1)
    arguments = json.loads((folder / "regard.json").read_text("utf-8"))["translate_batch"]

    def translate(texts: Sequence[str]) -> list[str]:
        tokens = source.encode(list(texts), out_type=str)
        arguments["max_decoding_length"] = 2 * max(map(len, tokens)) + 11
        size = -(-len(tokens) // THREADS)
        results = translator.translate_batch(tokens, max_batch_size=size, **arguments)
        return target.decode([result.hypotheses[0] for result in results])

    return translate


def _served(address: str, model: str) -> Translate:
    import grpc
    import numpy as np

    from regard.serving.protobuf import message_class, read_tensor, write_tensor

    call = grpc.insecure_channel(address).unary_unary(
        "/tensorflow.serving.PredictionService/Predict"
    )

    def translate(texts: Sequence[str]) -> list[str]:
        request = message_class("PredictRequest")(output_filter=["translation"])
        request.model_spec.name = model
        array = np.array([text.encode() for text in texts], object)
        write_tensor(request.inputs.add(key="source").value, array)
        response = message_class("PredictResponse").FromString(call(request.SerializeToString()))
        return [text.decode() for text in read_tensor(response.outputs[0].value)]

    return translate


def _measure(translate: Translate, texts: Sequence[str], single: int) -> dict[str, Any]:
    batches = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(translate, batches[:4]))
        started = time.perf_counter()
        outputs = [text for batch in pool.map(translate, batches) for text in batch]
        seconds = time.perf_counter() - started
    latencies, same = [], []
    for row in range(0, len(texts), max(len(texts) // single, 1)):
        started = time.perf_counter()
        output = translate([texts[row]])
        latencies.append(time.perf_counter() - started)
        same.append(output == outputs[row : row + 1])
    return {
        "speed": len(texts) / seconds,
        "p50": 1e3 * statistics.median(latencies),
        "p95": 1e3 * sorted(latencies)[int(0.95 * len(latencies))],
        "outputs": outputs,
        "same": statistics.mean(same),
    }


def _format(results: dict[str, list[dict[str, Any]]], references: Sequence[str]) -> str:
    import sacrebleu

    base = "ctranslate2" if "ctranslate2" in results else "served-tensorflow"
    header = ["system", "sentences/s", f"× {base}", "p50, ms", f"× {base}", "p95, ms"]
    header += ["start, s", "memory, MB", "BLEU", "single same as batch"]
    header += [*(["same as served-tensorflow"] if "served-tensorflow" in results else [])]
    rows = []
    for name, runs in results.items():
        peer = results.get("ctranslate2-int8" if name.endswith("int8") else base, runs)
        outputs = runs[-1]["outputs"]
        cells = [name]
        for key in ("speed", "p50"):
            values, peers = ([run[key] for run in measured] for measured in (runs, peer))
            cells += [f"{statistics.median(values):.1f}", f"{median_ratio(values, peers):.2f}"]
        cells.append(f"{statistics.median(run['p95'] for run in runs):.1f}")
        for key in ("start", "memory"):
            cells.append(f"{statistics.median(run.get(key, math.nan) for run in runs):.0f}")
        cells.append(f"{sacrebleu.corpus_bleu(outputs, [list(references)]).score:.2f}")
        cells.append(f"{runs[-1]['same']:.1%}")
        if "served-tensorflow" in results:
            other = results["served-tensorflow"][-1]["outputs"]
            same = sum(a == b for a, b in zip(outputs, other, strict=True)) / len(outputs)
            cells.append(f"{same:.1%}")
        rows.append(cells)
    return format_table(header, rows)


def _regard(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "regard.pipeline.cli", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


if __name__ == "__main__":
    main()
