"""Create the virtual environment of JoeyNMT 2.3 and Sockeye 3.1, which cannot share Regard's.

    python -m benchmarks.peers.install
    python -m benchmarks.peers.install FOLDER

The default folder is benchmarks/peers/.venv, which the benchmarks use. CTranslate2 and Keras are in
Regard's environment, and KerasHub is added to it by the benchmark. A CPU build of PyTorch is
sufficient; pip installs it if it knows an index with a CPU build.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE / ".venv"
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
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    folder = parser.parse_args().folder.resolve()
    marker = folder / "installed"
    if marker.is_file():
        print(f"{folder} exists")
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    for requirement in (["-r", str(HERE / "requirements.txt")], ["--no-deps", *PEERS]):
        subprocess.run([*pip, *requirement], check=True)
    target = ["--no-deps", "--target", str(folder / KERAS_HUB)]
    subprocess.run([*pip, *target, *_KERAS_HUB_PACKAGES], check=True)
    check = [str(folder / "bin" / "python"), "-c", "import joeynmt.training, sockeye.training"]
    subprocess.run(check, check=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"})
    marker.touch()
    print(f"installed in {folder}")


if __name__ == "__main__":
    main()
