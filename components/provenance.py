"""What made a model, as far as the installed code can tell: its own version, and its libraries'."""

from __future__ import annotations

import os
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

DISTRIBUTION = "regard"
STACK = (
    "tensorflow",
    "keras",
    "tensorflow-text",
    "tensorflow-transform",
    "tfx",
    "sentencepiece",
    "sacrebleu",
    "numpy",
)
PACKAGES = ("pipeline", "components", "models", "serving")
_ROOT = Path(__file__).resolve().parents[1]
_GIT_SECONDS = 5.0


def stack_versions() -> dict[str, str]:
    """The versions of the packages that a model depends on, as far as they are installed."""
    found = {package: package_version(package) for package in STACK}
    return {package: number for package, number in found.items() if number is not None}


def package_version(package: str = DISTRIBUTION) -> str | None:
    """The version of an installed distribution, by default our own; None where it is not there."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def code_version(root: Path = _ROOT) -> dict[str, str]:
    """Our ``version``, and the ``commit`` where the code runs from a git checkout.

    A commit ends in ``+dirty`` where a file of the packages differs from it. Never fails: what
    cannot be found out is left out.

    Args:
        root: the folder that holds the packages.
    """
    told = {"version": package_version(), "commit": _commit(root)}
    return {key: value for key, value in told.items() if value is not None}


def _commit(root: Path) -> str | None:
    found = (_git(root, "rev-parse", "--show-toplevel", "HEAD") or "").splitlines()
    # An environment inside of some other project's checkout is no checkout of ours.
    if len(found) != 2 or Path(found[0]).resolve() != root.resolve():
        return None
    there = [name for name in PACKAGES if (root / name).is_dir()]
    changes = _git(root, "status", "--porcelain", "--", *there)
    return found[1] + ("+dirty" if changes else "")


def _git(root: Path, *arguments: str) -> str | None:
    # Variables such as GIT_DIR, which hooks set, would name another repository.
    environment = {key: text for key, text in os.environ.items() if not key.startswith("GIT_")}
    environment["GIT_OPTIONAL_LOCKS"] = "0"
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_GIT_SECONDS,
            check=True,
            text=True,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
