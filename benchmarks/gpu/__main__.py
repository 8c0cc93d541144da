"""Train, search and compare on a GPU, on JAX and without TensorFlow; see README.md next to it.

    python -m benchmarks.gpu prepare FOLDER     # with TensorFlow and REGARD_DATA
    python -m benchmarks.gpu run FOLDER --out result.json --torch     # on the GPU, no network
    python -m benchmarks.gpu score FOLDER result.weights.npz          # with TensorFlow, on the CPU

With ``prepare --small``, everything is so small that a CPU runs it in seconds; ``run`` uses the
size that the folder was prepared in.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path

from benchmarks.gpu.run import PARTS


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command."""
    options = parse(arguments)
    commands = {"prepare": prepare, "run": run, "part": part, "score": score}
    commands[options.command](options)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("prepare", help="write the folder that a run reads")
    command.add_argument("folder", type=Path)
    command.add_argument("--small", action="store_true", help="tiny models and corpora")
    command = commands.add_parser("run", help="run the benchmark")
    command.add_argument("folder", type=Path)
    command.add_argument("--out", type=Path, required=True, help="JSON file for the results")
    command.add_argument(
        "--small", action="store_true", help="require a folder that was prepared with --small"
    )
    command.add_argument("--torch", action="store_true", help="also run PyTorch")
    command.add_argument("--minutes", type=float, default=8.0, help="limit on the whole run")
    command.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="parts to run")
    command = commands.add_parser("part", help="compute one part; `run` starts it")
    command.add_argument("part", choices=PARTS)
    command.add_argument("folder", type=Path)
    command.add_argument("--rows", type=Path, required=True, help="file for the rows")
    command.add_argument("--weights", type=Path, required=True, help="file for the weights")
    command.add_argument("--seconds", type=float, required=True, help="limit on the process")
    command.add_argument("--backend", default="jax", help="backend of the part numerics")
    command.add_argument("--model", default="", help="model of the parts training and torch")
    command = commands.add_parser("score", help="compute BLEU of the weights of a run")
    command.add_argument("folder", type=Path)
    command.add_argument("weights", type=Path)
    return parser.parse_args(arguments)


def prepare(options: argparse.Namespace) -> None:
    """Write the folder."""
    os.environ["KERAS_BACKEND"] = "tensorflow"
    from benchmarks.gpu.prepare import prepare as prepare_folder
    from benchmarks.gpu.sizes import FULL, SMALL
    from regard.pipeline.workspace import Workspace

    size = SMALL if options.small else FULL
    prepare_folder(options.folder, Workspace.from_environment().data_root(), size)


def run(options: argparse.Namespace) -> None:
    """Run the parts, and end with status 1 if one has failed."""
    from benchmarks.gpu.run import run as run_parts
    from benchmarks.gpu.sizes import SIZES

    settings = json.loads((options.folder / "settings.json").read_text("utf-8"))
    if options.small and settings["size"] != "small":
        raise SystemExit("--small needs a folder that `prepare --small` has written.")
    result = run_parts(
        options.folder,
        options.out,
        SIZES[settings["size"]],
        options.minutes,
        options.only,
        options.torch,
    )
    if any(process["status"] != "finished" for process in result["processes"]):
        raise SystemExit(1)


def part(options: argparse.Namespace) -> None:
    """Compute one part."""
    from benchmarks.gpu.part import run_part

    run_part(
        options.part,
        options.folder,
        options.rows,
        options.weights,
        options.seconds,
        options.backend,
        options.model,
    )


def score(options: argparse.Namespace) -> None:
    """Print BLEU as JSON."""
    os.environ["KERAS_BACKEND"] = "tensorflow"
    from benchmarks.gpu.score import score as score_weights

    print(json.dumps(score_weights(options.folder, options.weights)))


if __name__ == "__main__":
    main()
