"""The versions of Regard and its libraries that make a model."""

import os
import subprocess
from importlib import metadata
from pathlib import Path

import regard

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
PACKAGES = ("regard", "pipeline", "components", "models", "serving")
_ROOT = Path(regard.__file__).resolve().parents[1]
_GIT_SECONDS = 5.0


def stack_versions() -> dict[str, str]:
    """Return the installed versions of the packages that a model depends on."""
    versions = {package: package_version(package) for package in STACK}
    return {package: number for package, number in versions.items() if number is not None}


def package_version(package: str = DISTRIBUTION) -> str | None:
    """Return the version of a distribution, by default Regard; None if it is not installed.

    That of ``tensorflow`` is also the one of ``tensorflow-cpu``: the same code without GPUs.
    """
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return package_version("tensorflow-cpu") if package == "tensorflow" else None


def code_version(root: Path = _ROOT) -> dict[str, str]:
    """Return Regard's ``version``, and the ``commit`` if the code runs from a git checkout.

    The commit ends in ``+dirty`` if a file of the packages differs from it. Unknown values are left
    out; nothing is raised.

    Args:
        root: the folder that holds the packages.
    """
    values = {"version": package_version(), "commit": _commit(root)}
    return {key: value for key, value in values.items() if value is not None}


def _commit(root: Path) -> str | None:
    lines = (_git(root, "rev-parse", "--show-toplevel", "HEAD") or "").splitlines()
    # An environment inside another project's checkout is not a checkout of Regard.
    if len(lines) != 2 or Path(lines[0]).resolve() != root.resolve():
        return None
    folders = [name for name in PACKAGES if (root / name).is_dir()]
    changes = _git(root, "status", "--porcelain", "--", *folders)
    return lines[1] + ("+dirty" if changes else "")


def _git(root: Path, *arguments: str) -> str | None:
    # Hooks set variables such as GIT_DIR, which would select another repository.
    environment = {key: text for key, text in os.environ.items() if not key.startswith("GIT_")}
    environment["GIT_OPTIONAL_LOCKS"] = "0"
    try:
        process = subprocess.run(
            ["git", "-C", str(root), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=True,
            text=True,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return process.stdout.strip()
