"""Attack Regard and measure what it promises: `python -m benchmarks.trust PART --help`.

The parts are the modules of this folder, each with a function `main`.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path


def main() -> int:
    """Run the part that the first argument names, and return its exit status."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        print(f"Usage: python -m benchmarks.trust {{{','.join(names)}}} ...", file=sys.stderr)
        return 2
    status: int = importlib.import_module(f"benchmarks.trust.{sys.argv[1]}").main(sys.argv[2:])
    return status


if __name__ == "__main__":
    sys.exit(main())
