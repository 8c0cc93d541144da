"""Create the virtual environment of JoeyNMT 2.3 with PyTorch, which cannot share Regard's.

    python -m benchmarks.peers.install
    python -m benchmarks.peers.install FOLDER

The default folder is benchmarks/peers/.venv, which the benchmarks use. CTranslate2 and Keras are in
Regard's environment. A CPU build of PyTorch is sufficient; pip installs it if it knows an index
with a CPU build.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE / ".venv"
JOEYNMT = "joeynmt==2.3.0"


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
    for requirement in (["-r", str(HERE / "requirements.txt")], ["--no-deps", JOEYNMT]):
        subprocess.run([*pip, *requirement], check=True)
    check = [str(folder / "bin" / "python"), "-c", "import joeynmt.training"]
    subprocess.run(check, check=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"})
    marker.touch()
    print(f"installed in {folder}")


if __name__ == "__main__":
    main()
