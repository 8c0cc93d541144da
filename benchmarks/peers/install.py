"""Makes the environment of the peers that cannot share Regard's: JoeyNMT 2.3 with PyTorch.

    python -m benchmarks.peers.install
    python -m benchmarks.peers.install FOLDER

Without a folder it is benchmarks/peers/.venv, where the benchmarks look for it. CTranslate2 and
Keras are in Regard's own environment. PyTorch for processors alone suffices: where pip knows an
index with such a build, it is taken.
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
    """Installs, unless it is there already."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    folder = parser.parse_args().folder.resolve()
    done = folder / "installed"
    if done.is_file():
        print(f"{folder} is there")
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    for wanted in (["-r", str(HERE / "requirements.txt")], ["--no-deps", JOEYNMT]):
        subprocess.run([*pip, *wanted], check=True)
    check = [str(folder / "bin" / "python"), "-c", "import joeynmt.training"]
    subprocess.run(check, check=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"})
    done.touch()
    print(f"installed in {folder}")


if __name__ == "__main__":
    main()
