"""Create the virtual environment of the Makefile; run by `make install`.

Needs only the standard library. Packages come from the package index (glibc >= 2.39), or from
lock.txt with hashes and a shim (older glibc, Python 3.11). A stamp file is written last: without
it, the environment is incomplete and is created again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
STAMP = "regard-install.json"
MARK = ".regard-environment"  # in every environment that this script has created

# Messages of pip and remedies; the first match counts.
REMEDIES = [
    (
        r"No space left",
        "Free disk space: the environment needs 4 GB, and TMPDIR 2 GB during the installation.",
    ),
    (r"ensurepip is not\s+available", "Install venv: apt-get install python3-venv"),
    (
        r"g\+\+|gcc.*failed|Python\.h|wheel for pyfarmhash",
        "Install a compiler and Python headers: apt-get install g++ python3-dev",
    ),
    (
        r"DO NOT MATCH THE HASHES",
        "The package index serves different files than the lock file expects. Run `pip cache purge`"
        " and try again.",
    ),
    (
        r"ConnectionError|NewConnectionError|Read timed out|ProxyError|SSLError|"
        r"Temporary failure in name resolution",
        "The package index is unreachable. Check the network, HTTPS_PROXY and PIP_INDEX_URL.",
    ),
    (
        r"No matching distribution|Could not find a version",
        "The package index has no file for this Python and this system. Check PIP_INDEX_URL.",
    ),
]


def fail(message: str, remedy: str) -> None:
    """Exit with a message and a remedy."""
    sys.exit(f"make install: {message}\n  {remedy}")


def choose(requested: str) -> tuple[str, str]:
    """Choose how to install, and return it with the reason; exit if there is no way."""
    if sys.version_info < (3, 10) or sys.version_info >= (3, 14):
        version = ".".join(map(str, sys.version_info[:3]))
        fail(
            f"Python {version} is not supported.",
            "Use 3.10 to 3.13: make install PYTHON=python3.11",
        )
    sys.path.insert(0, str(ROOT))
    from regard.pipeline.doctor import machine  # requires a supported Python

    libc = machine.glibc()
    way = machine.install_way(libc)
    if way == "none" or libc is None:
        fail(
            "TFX has wheels for Linux with glibc on x86_64 only.",
            "Use a container, such as debian:13 or ubuntu:24.04.",
        )
    release = ".".join(map(str, libc or ()))
    reason = (
        f"glibc {release} {'is older than 2.39' if way == 'lock' else 'is supported by all wheels'}"
    )
    if requested != "auto":
        way, reason = requested, f"WAY={requested}"
    if way == "lock" and sys.version_info[:2] != (3, 11):
        version = ".".join(map(str, sys.version_info[:3]))
        fail(
            f"{reason}, so the lock file is used, which requires Python 3.11, not {version}.",
            "apt-get install python3.11 python3.11-venv, then: make install PYTHON=python3.11",
        )
    return way, reason


def expected_stamp(way: str) -> dict[str, str]:
    """The content of the stamp of an up-to-date environment."""
    sources = [HERE / "lock.txt", *sorted((HERE / "tfx-bsl-sql-util").rglob("*.py"))]
    if way == "index":
        sources = [ROOT / "setup.py"]
    digest = hashlib.sha256()
    for path in sources:
        digest.update(path.read_bytes())
    python = ".".join(map(str, sys.version_info[:2]))
    return {"way": way, "python": python, "root": str(ROOT), "packages": digest.hexdigest()}


class Installation:
    """The installation of one environment; the output of pip goes to a log file."""

    def __init__(self, environment: Path, log: Path):
        self.environment = environment
        self.python = environment / "bin" / "python"
        self.log = log
        log.write_bytes(b"")

    def run(self, command: list[str], total: int = 0) -> None:
        """Run a command, and show the progress of pip in a terminal."""
        variables = {
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_INPUT": "1",
            "PIP_ROOT_USER_ACTION": "ignore",
            "PIP_PROGRESS_BAR": "off",
            "PYTHONUNBUFFERED": "1",
        }
        count = 0
        with open(self.log, "a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(command)}\n")
            log.flush()
            with subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
            ) as process:
                for line in process.stdout or ():
                    log.write(line)
                    log.flush()
                    if line.startswith(("Collecting ", "Installing collected")):
                        count += 1
                        self.show(line, count, total)
        self.show("", 0, 0)
        if process.returncode != 0:
            self.explain()

    def pip(self, *arguments: str, total: int = 0) -> None:
        """Run pip in the environment."""
        self.run([str(self.python), "-m", "pip", *arguments], total)

    def show(self, line: str, count: int, total: int) -> None:
        """Overwrite the progress line in a terminal."""
        if not sys.stdout.isatty():
            return
        text = ""
        if line.startswith("Collecting "):
            name = re.split(r"[=<>~! \[(]", line.split()[1])[0]
            text = f"  {count}{f'/{total}' if total else ''} {name}"
        elif line:
            text = "  unpacking and compiling"
        print(f"\r\033[K{text}", end="", flush=True)

    def explain(self) -> None:
        """Exit with the last lines of the log and, for known causes, a remedy."""
        text = self.log.read_text(encoding="utf-8", errors="replace")
        lines = [line for line in text.splitlines() if not line.startswith("WARNING: Location")]
        print("\n".join(lines[-15:]), file=sys.stderr)
        remedies = (remedy for pattern, remedy in REMEDIES if re.search(pattern, text))
        fail(f"failed; see {self.log}", next(remedies, "Fix the problem and try again."))

    def create(self) -> None:
        """Replace the environment with an empty one, unless it was created by something else."""
        mark, folder = self.environment / MARK, self.environment
        is_empty = not os.path.lexists(folder) or (folder.is_dir() and not any(folder.iterdir()))
        is_own = mark.is_file() or (folder / STAMP).is_file()
        if folder.is_symlink() or not (is_own or is_empty):
            fail(f"{folder} was not created by make install", "Move it to another place.")
        if not is_empty:
            mark.touch()  # earlier versions wrote no mark
            (folder / STAMP).unlink(missing_ok=True)  # in case this is killed
            for path in folder.iterdir():
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                elif path != mark:
                    path.unlink()
        folder.mkdir(parents=True, exist_ok=True)
        mark.touch()
        self.run([sys.executable, "-m", "venv", str(folder)])

    def install_all(self, way: str) -> None:
        """Install all packages and Regard."""
        if way == "index":
            self.pip("install", "--editable", ".[pipeline,dev]")
            return
        lock = HERE / "lock.txt"
        total = len(re.findall(r"^[\w.-]+==", lock.read_text(encoding="utf-8"), re.MULTILINE))
        self.pip("install", "--no-deps", "--require-hashes", "-r", str(lock), total=total)
        # From a copy, because the build writes files to the source folder.
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "shim"
            shutil.copytree(HERE / "tfx-bsl-sql-util", copy)
            self.pip("install", "--no-deps", "--no-build-isolation", "--use-pep517", str(copy))
        self.install_project()

    def install_extra(self, way: str, extra: str) -> None:
        """Install the packages of an extra."""
        if way == "index":
            self.pip("install", "--editable", f".[{extra}]")
        else:
            pins = str(HERE / f"{extra}.txt")
            self.pip("install", "--no-deps", "--require-hashes", "-r", pins)

    def install_project(self) -> None:
        """Install Regard in editable mode."""
        flags = ["--no-deps", "--no-build-isolation", "--use-pep517"]
        self.pip("install", *flags, "--editable", ".")


def main() -> None:
    """Create or refresh the environment."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("environment", type=Path, help="folder of the virtual environment")
    parser.add_argument("--way", choices=["auto", "lock", "index"], default="auto")
    parser.add_argument("--extra", choices=["docs"], help="add an extra to the environment")
    arguments = parser.parse_args()
    way, reason = choose(arguments.way)
    environment = arguments.environment.absolute()
    stamp = environment / STAMP
    present = json.loads(stamp.read_text(encoding="utf-8")) if stamp.exists() else None
    installation = Installation(environment, environment.with_name(f"{environment.name}.log"))
    started = time.monotonic()
    if arguments.extra:
        print(f"make install: adding the packages of {arguments.extra}", flush=True)
        installation.install_extra(way, arguments.extra)
        return
    if present is not None and present == expected_stamp(way):
        print("make install: refreshing the installation of Regard", flush=True)
        installation.install_project()
    else:
        where = "requirements/lock.txt" if way == "lock" else "the package index"
        replaced = " (replacing an outdated one)" if environment.exists() else ""
        print(
            f"make install: {reason}, so packages are installed from {where} into "
            f"{environment.name}{replaced}.\n  This takes some minutes and 4 GB. The output of pip "
            f"is in {installation.log.name}.",
            flush=True,
        )
        installation.create()
        installation.install_all(way)
    temporary = stamp.with_suffix(".tmp")
    temporary.write_text(json.dumps(expected_stamp(way), indent=2) + "\n", encoding="utf-8")
    os.replace(temporary, stamp)
    print(f"make install: done in {time.monotonic() - started:.0f} s.", flush=True)
    print(f"next: source {environment.name}/bin/activate && regard doctor", flush=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\nmake install: interrupted. Run it again to start over.")
