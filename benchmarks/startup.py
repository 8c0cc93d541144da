"""Measure start-up times and overhead: of the quickstart, of commands, and of the server.

    python benchmarks/startup.py                                     # as in benchmarks/startup.md
    python benchmarks/startup.py --only serve --model registry/multi30k "A man sleeps."

Each measurement starts new processes, in a workspace of its own. The quickstart runs once; its
overhead is the wall time of its two commands minus the times of training and decoding that the run
records. The others run several times after a warm-up, and the median counts. Prints a table.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

QUICKSTART = ROOT / "configs" / "quickstart.yaml"
INPUT = "Friday, 20 November 2026"
MEASURES = ("commands", "quickstart", "serve")
REPEATS = 5
_TIMEOUT = 120.0  # seconds


@dataclass(frozen=True)
class Row:
    """One row of the table.

    Attributes:
        name: the name of the measurement.
        seconds: wall times of all repeats.
        target: the maximum; None without one.
    """

    name: str
    seconds: list[float]
    target: float | None = None

    def to_markdown(self) -> str:
        """Format the row."""
        median = statistics.median(self.seconds)
        value_range = f"{min(self.seconds):.2f} to {max(self.seconds):.2f}" * (
            len(self.seconds) > 1
        )
        if self.target is None:
            return f"| {self.name} | {median:.2f} | {value_range} | | |"
        met = "yes" if median <= self.target else "no"
        return f"| {self.name} | {median:.2f} | {value_range} | ≤ {self.target:g} | {met} |"


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=MEASURES)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument(
        "--model",
        nargs=2,
        action="append",
        default=[],
        metavar=("FOLDER", "TEXT"),
        help="another model to serve, with an input",
    )
    arguments = parser.parse_args()
    print("| | median, s | range | target | met |\n|---|---:|---:|---:|---|")
    with tempfile.TemporaryDirectory() as folder:
        for row in measure(Path(folder), arguments):
            print(row.to_markdown(), flush=True)


def measure(home: Path, arguments: argparse.Namespace) -> Iterator[Row]:
    """Yield the rows of the table."""
    measures, repeats = arguments.only, arguments.repeats
    models = [(Path(model).absolute(), text) for model, text in arguments.model]
    generation = regard(home, "data", "generate", "quickstart")
    if "commands" in measures:
        yield Row("regard --help", repeat(lambda: regard(home, "--help"), repeats), 0.4)
        times = repeat(lambda: regard(home, "validate", str(QUICKSTART)), repeats)
        yield Row("regard validate", times, 1.0)
    if "quickstart" in measures:
        yield from quickstart(home, generation)
        models.insert(0, (home / "registry" / "quickstart", INPUT))
    if "serve" in measures:
        for model, text in models:
            times = repeat(
                lambda model=model, text=text: time_to_prediction(home, model, text), repeats
            )
            yield Row(f"regard serve {model.name}, to its first prediction over REST", times, 8.0)


def quickstart(home: Path, generation: float) -> Iterator[Row]:
    """Yield the rows of the quickstart: its overhead and the parts of it.

    Args:
        home: the workspace, with the data.
        generation: the seconds of the data generation.
    """
    from regard.components.common import run_progress

    total = regard(home, "run", str(QUICKSTART))
    (log,) = home.glob("pipelines/quickstart/runs/*/events.jsonl")
    state = run_progress.read(log)
    training = _seconds(state.outputs("Trainer")["model_run"], "training.json")
    decoding = _seconds(state.outputs("Predictor")["predictions"], "predictions.json")
    nodes = {name: node.seconds or 0.0 for name, node in state.nodes.items()}
    overhead = generation + total - training - decoding
    yield Row("quickstart, without training and decoding", [overhead], 25.0)
    yield Row("data generation", [generation])
    yield Row("start and end of the run", [total - sum(nodes.values())])
    work = {"Trainer": training, "Predictor": decoding}
    for name, seconds in nodes.items():
        suffix = " without its work" if name in work else ""
        yield Row(f"{name}{suffix}", [seconds - work.get(name, 0.0)])
    yield Row("training", [training])
    yield Row("decoding", [decoding])


def _seconds(folder: str, file: str) -> float:
    content = json.loads(Path(folder, file).read_text(encoding="utf-8"))
    return float(content.get("models", {}).get("candidate", content)["seconds"])


def regard(home: Path, *arguments: str) -> float:
    """Run a command, and return its seconds."""
    start = time.monotonic()
    process = subprocess.run(
        _command(*arguments), env=_environment(home), capture_output=True, text=True, check=False
    )
    if process.returncode:
        sys.exit(f"regard {' '.join(arguments)}:\n{process.stdout}{process.stderr}")
    return time.monotonic() - start


def time_to_prediction(home: Path, model: Path, text: str) -> float:
    """Start a server, and return the seconds until its first prediction."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    url = f"http://127.0.0.1:{port}/v1/models/{model.name}:predict"
    body = json.dumps({"instances": [text]}).encode()
    command = _command("serve", str(model), "--port", "0", "--rest-api-port", str(port))
    start = time.monotonic()
    with subprocess.Popen(
        command, env=_environment(home), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            while not _predicts(url, body):
                if server.poll() is not None or time.monotonic() - start > _TIMEOUT:
                    sys.exit(f"the server of {model} does not respond")
                time.sleep(0.02)
            return time.monotonic() - start
        finally:
            server.terminate()


def _predicts(url: str, body: bytes) -> bool:
    try:
        with urllib.request.urlopen(url, body, timeout=_TIMEOUT) as answer:
            return "predictions" in json.load(answer)
    except urllib.error.HTTPError:
        raise  # the server runs but rejects the request
    except OSError:
        return False


def repeat(step: Callable[[], float], times: int) -> list[float]:
    """Repeat a step after a warm-up, which reads files from disk, and return the seconds."""
    step()
    return [step() for _ in range(times)]


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "regard.pipeline.cli", *arguments]


def _environment(home: Path) -> dict[str, str]:
    return {**os.environ, "REGARD_HOME": str(home), "PYTHONPATH": str(ROOT)}


if __name__ == "__main__":
    main()
