"""Create the virtual environments of other toolkits, which cannot share Regard's.

    python -m benchmarks.peers.install
    python -m benchmarks.peers.install FOLDER
    python -m benchmarks.peers.install --huggingface

The default folder is benchmarks/peers/.venv, which the benchmarks use. CTranslate2 and Keras are in
Regard's environment, and KerasHub is added to it by the benchmark. A CPU build of PyTorch is
sufficient; pip installs it if it knows an index with a CPU build. ``--huggingface`` creates another
environment, benchmarks/peers/.venv-huggingface, with Transformers, which writes the models that
the tests of `regard import` read (`huggingface_models`).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE / ".venv"
HUGGINGFACE = HERE / ".venv-huggingface"
PEERS = ("joeynmt==2.3.0", "sockeye==3.1.34")
# KerasHub runs in Regard's environment, with these packages from a folder of their own.
KERAS_HUB = "keras_hub"
_KERAS_HUB_PACKAGES = (
    "keras-hub==0.32.0",
    "kagglehub==1.0.3",
    "kagglesdk==0.1.28",
    "tokenizers==0.23.3",
    "huggingface_hub==2.4.0",
)


def main() -> None:
    """Install, unless the environment exists."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--huggingface", action="store_true", help="Transformers instead")
    arguments = parser.parse_args()
    default = HUGGINGFACE if arguments.huggingface else FOLDER
    folder = (arguments.folder or default).resolve()
    marker = folder / "installed"
    if marker.is_file():
        print(f"{folder} exists")
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    if arguments.huggingface:
        subprocess.run([*pip, "-r", str(HERE / "requirements-huggingface.txt")], check=True)
        modules = "transformers.models.marian.modeling_marian, sentencepiece"
    else:
        install_toolkits(folder, pip)
        modules = "joeynmt.training, sockeye.training"
    check = [str(folder / "bin" / "python"), "-c", f"import {modules}"]
    subprocess.run(check, check=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"})
    marker.touch()
    print(f"installed in {folder}")


def install_toolkits(folder: Path, pip: list[str]) -> None:
    """Install JoeyNMT, Sockeye and, in a folder of its own, KerasHub."""
    for requirement in (["-r", str(HERE / "requirements.txt")], ["--no-deps", *PEERS]):
        subprocess.run([*pip, *requirement], check=True)
    target = ["--no-deps", "--target", str(folder / KERAS_HUB)]
    subprocess.run([*pip, *target, *_KERAS_HUB_PACKAGES], check=True)


if __name__ == "__main__":
    main()
