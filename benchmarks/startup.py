"""What one waits for beside the work itself: the quickstart's overhead, the command, the server.

    python benchmarks/startup.py                                     # as in benchmarks/startup.md
    python benchmarks/startup.py --only serve --model registry/multi30k "A man sleeps."

Each measure is of new processes, in a workspace of its own. The quickstart is made and run once;
its overhead is the wall time of both commands less what the run itself records of training and of
decoding. The others run several times, after a first time that does not count, and the median
does. Prints a table.
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
ASKED = "Friday, 20 November 2026"
MEASURES = ("commands", "quickstart", "serve")
REPEATS = 5
_PATIENCE = 120.0  # seconds until a server counts as one that will not answer


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        what: that took the time.
        seconds: of the wall, each time.
        bar: the most that is allowed; None where there is none.
    """

    what: str
    seconds: list[float]
    bar: float | None = None

    def told(self) -> str:
        """As a row of Markdown."""
        median = statistics.median(self.seconds)
        spread = f"{min(self.seconds):.2f} to {max(self.seconds):.2f}" * (len(self.seconds) > 1)
        bar = "" if self.bar is None else f"≤ {self.bar:g}"
        met = "" if self.bar is None else ("yes" if median <= self.bar else "no")
        return f"| {self.what} | {median:.2f} | {spread} | {bar} | {met} |"


def main() -> None:
    """Measures, and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=MEASURES)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument(
        "--model",
        nargs=2,
        action="append",
        default=[],
        metavar=("FOLDER", "TEXT"),
        help="one more model to serve, and what it is asked",
    )
    arguments = parser.parse_args()
    print("| | median, s | from to | bar | met |\n|---|---:|---:|---:|---|")
    with tempfile.TemporaryDirectory() as folder:
        for row in measured(Path(folder), arguments):
            print(row.told(), flush=True)


def measured(home: Path, arguments: argparse.Namespace) -> Iterator[Row]:
    """The rows of the table, one after another."""
    wanted, repeats = arguments.only, arguments.repeats
    models = [(Path(model).absolute(), text) for model, text in arguments.model]
    made = regard(home, "data", "generate", "quickstart")
    if "commands" in wanted:
        yield Row("regard --help", repeated(lambda: regard(home, "--help"), repeats), 0.4)
        once = repeated(lambda: regard(home, "validate", str(QUICKSTART)), repeats)
        yield Row("regard validate", once, 1.0)
    if "quickstart" in wanted:
        yield from quickstart(home, made)
        models.insert(0, (home / "registry" / "quickstart", ASKED))
    if "serve" in wanted:
        for model, text in models:
            times = repeated(lambda model=model, text=text: served(home, model, text), repeats)
            yield Row(f"regard serve {model.name}, to its first answer over REST", times, 8.0)


def quickstart(home: Path, made: float) -> Iterator[Row]:
    """The quickstart's rows: its overhead, and of what that consists.

    Args:
        home: the workspace, with the data.
        made: the seconds that making the data took.
    """
    from pipeline import progress

    ran = regard(home, "run", str(QUICKSTART))
    (log,) = home.glob("pipelines/quickstart/runs/*/events.jsonl")
    state = progress.read(log)
    training = _seconds(state.outputs("Trainer")["model_run"], "training.json")
    decoding = _seconds(state.outputs("Predictor")["predictions"], "predictions.json")
    nodes = {name: node.seconds or 0.0 for name, node in state.nodes.items()}
    yield Row("quickstart, outside training and decoding", [made + ran - training - decoding], 25.0)
    yield Row("its data", [made])
    yield Row("its start and its end", [ran - sum(nodes.values())])
    beside = {"Trainer": training, "Predictor": decoding}
    for name, seconds in nodes.items():
        told = " beside its work" if name in beside else ""
        yield Row(f"{name}{told}", [seconds - beside.get(name, 0.0)])
    yield Row("training", [training])
    yield Row("decoding", [decoding])


def _seconds(folder: str, file: str) -> float:
    return float(json.loads(Path(folder, file).read_text(encoding="utf-8"))["seconds"])


def regard(home: Path, *arguments: str) -> float:
    """Runs the command to its end; the seconds that it took."""
    began = time.monotonic()
    done = subprocess.run(
        _command(*arguments), env=_environment(home), capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"regard {' '.join(arguments)}:\n{done.stdout}{done.stderr}")
    return time.monotonic() - began


def served(home: Path, model: Path, text: str) -> float:
    """Starts a server, asks it until it answers, and ends it; the seconds to its first answer."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    url = f"http://127.0.0.1:{port}/v1/models/{model.name}:predict"
    body = json.dumps({"instances": [text]}).encode()
    command = _command("serve", str(model), "--port", "0", "--rest-api-port", str(port))
    began = time.monotonic()
    with subprocess.Popen(
        command, env=_environment(home), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            while not _answers(url, body):
                if server.poll() is not None or time.monotonic() - began > _PATIENCE:
                    sys.exit(f"the server of {model} does not answer")
                time.sleep(0.02)
            return time.monotonic() - began
        finally:
            server.terminate()


def _answers(url: str, body: bytes) -> bool:
    try:
        with urllib.request.urlopen(url, body, timeout=_PATIENCE) as answer:
            return "predictions" in json.load(answer)
    except urllib.error.HTTPError:
        raise  # it is there, and cannot answer this
    except OSError:
        return False


def repeated(step: Callable[[], float], times: int) -> list[float]:
    """The seconds of a step, without its first time: that reads files from the disk."""
    step()
    return [step() for _ in range(times)]


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pipeline.cli", *arguments]


def _environment(home: Path) -> dict[str, str]:
    return {**os.environ, "REGARD_HOME": str(home), "PYTHONPATH": str(ROOT)}


if __name__ == "__main__":
    main()
