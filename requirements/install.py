"""Create the virtual environment of the Makefile; run by `make install`.

Needs only the standard library. Packages come from the package index (glibc >= 2.39), or from
lock.txt with hashes and a shim (older glibc, Python 3.11). uv installs them, with the settings of
pip, and pip where the index has no uv. A stamp file is written last: without it, the environment
is incomplete and is created again.
"""

from __future__ import annotations

import argparse
import ast
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

# What is installed for each accelerator: lock files, and extras of setup.py.
LOCKS = {
    "cpu": ["lock.txt", "cpu.txt"],
    "cuda": ["lock.txt", "cuda.txt"],
    "jax-cuda": ["lock.txt", "cpu.txt", "jax-cuda.txt"],
}
EXTRAS = {"cpu": "pipeline", "cuda": "pipeline,gpu", "jax-cuda": "pipeline,jax-cuda"}

# Settings of pip, and the variables with which uv reads the same.
UV_VARIABLES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "proxy": "ALL_PROXY",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "no-cache-dir": "UV_NO_CACHE",
}

# Lines of uv and pip that are shown, because they end what takes seconds.
PHASES = ("Prepared ", "Installed ", "Bytecode compiled ", "Installing collected packages")

UNREACHABLE = "The package index is unreachable. Check the network, HTTPS_PROXY and PIP_INDEX_URL."
NO_FILE = "The package index has no file for this Python and this system. Check PIP_INDEX_URL."
# Messages of uv and pip, and remedies; the first match counts.
REMEDIES = [
    (
        r"No space left",
        "Free disk space: the environment needs 3 GB (for cuda 8 GB), and the caches of uv and pip,"
        " in ~/.cache or TMPDIR, as much during the installation.",
    ),
    (r"ensurepip is not\s+available", "Install venv: apt-get install python3-venv"),
    (
        r"g\+\+|gcc.*failed|Python\.h|wheel for pyfarmhash|Failed to build .pyfarmhash",
        "Install a compiler and Python headers: apt-get install g++ python3-dev",
    ),
    (
        r"DO NOT MATCH THE HASHES|Hash mismatch",
        "The package index serves different files than the lock file expects. Clear the caches with"
        " `.venv/bin/uv cache clean` and `pip cache purge`, and try again.",
    ),
    (
        r"ConnectionError|NewConnectionError|Read timed out|ProxyError|SSLError|"
        r"Temporary failure in name resolution|Failed to fetch|error sending request",
        UNREACHABLE,
    ),
    (r"No matching distribution|Could not find a version|No solution found", NO_FILE),
]


def fail(message: str, remedy: str) -> None:
    """Exit with a message and a remedy."""
    sys.exit(f"make install: {message}\n  {remedy}")


class InstallError(Exception):
    """A command has failed; the text is its output."""


def find_remedy(output: str) -> str:
    """The remedy for a failure, by its output."""
    remedies = (remedy for pattern, remedy in REMEDIES if re.search(pattern, output))
    return next(remedies, "Fix the problem and try again.")


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


def choose_accelerator(requested: str, present: dict[str, str]) -> str:
    """The requested accelerator, else that of the environment, else what the machine has."""
    from regard.pipeline.doctor import machine

    if requested != "auto":
        return requested
    return present.get("accelerator") or ("cuda" if machine.has_gpu() else "cpu")


def expected_stamp(way: str, accelerator: str) -> dict[str, str]:
    """The content of the stamp of an up-to-date environment."""
    sources = [ROOT / "setup.py"]
    if way == "lock":
        sources = [HERE / name for name in LOCKS[accelerator]]
        sources += sorted((HERE / "tfx-bsl-sql-util").rglob("*.py"))
    digest = hashlib.sha256()
    for path in sources:
        digest.update(path.read_bytes())
    return {
        "way": way,
        "accelerator": accelerator,
        "python": ".".join(map(str, sys.version_info[:2])),
        "root": str(ROOT),
        "packages": digest.hexdigest(),
    }


def uv_variables(pip_config: str) -> dict[str, str]:
    """The variables that give uv the settings of pip.

    Args:
        pip_config: the output of `pip config list`, one `section.key='value'` a line.
    """
    # pip takes the first index that has a version, too; hashes and ranges say which one it must be.
    variables = {"UV_INDEX_STRATEGY": "unsafe-best-match"}
    lines = re.findall(r"^(global|install|:env:)\.([\w-]+)=(.+)$", pip_config, re.MULTILINE)
    order = ["global", "install", ":env:"]  # later ones override earlier ones
    for _, name, value in sorted(lines, key=lambda line: order.index(line[0])):
        if name in UV_VARIABLES:
            separator = "," if name == "find-links" else " "
            variables[UV_VARIABLES[name]] = separator.join(ast.literal_eval(value).split())
    return variables


class Installation:
    """The installation of one environment; the output of uv and pip goes to a log file."""

    def __init__(self, environment: Path, log: Path, installer: str = "uv", steps: int = 3):
        self.environment = environment
        self.python = environment / "bin" / "python"
        self.uv = environment / "bin" / "uv"
        self.installer = installer
        self.log = log
        self.steps, self.step_count = steps, 0
        log.write_bytes(b"")

    def step(self, text: str) -> None:
        """Print the number of a step, and what it does."""
        self.step_count += 1
        print(f"make install: {self.step_count} of {self.steps}: {text}", flush=True)

    def run(self, command: list[str], variables: dict[str, str] | None = None) -> None:
        """Run a command, and show what it has finished; raise InstallError if it fails."""
        pip = {
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_INPUT": "1",
            "PIP_ROOT_USER_ACTION": "ignore",
            "PIP_PROGRESS_BAR": "off",
            "PIP_USE_PEP517": "1",
            "PYTHONUNBUFFERED": "1",
        }
        output = []
        with open(self.log, "a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(command)}\n")
            log.flush()
            with subprocess.Popen(
                command,
                cwd=ROOT,
                env={**(variables or {}), **os.environ, **pip},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
            ) as process:
                for line in process.stdout or ():
                    log.write(line)
                    log.flush()
                    output.append(line)
                    if line.startswith(PHASES):
                        print(f"  {line[:100].strip()}", flush=True)
        if process.returncode != 0:
            raise InstallError("".join(output))

    def install(self, *arguments: str) -> None:
        """Install packages with uv, or with pip if there is no uv or it cannot download."""
        if self.installer == "uv" and self.uv.exists():
            try:
                self.install_with_uv(*arguments)
            except InstallError as error:
                # Pip may know a proxy or a certificate, but it cannot exclude packages.
                if find_remedy(str(error)) != UNREACHABLE or "--excludes" in arguments:
                    raise
                print("  uv cannot reach the index. pip takes its place, and takes longer.")
                self.installer = "pip"
            else:
                return
        self.run([str(self.python), "-m", "pip", "install", *arguments])

    def install_with_uv(self, *arguments: str) -> None:
        """Install packages with uv and the settings of pip."""
        config = [str(self.python), "-m", "pip", "config", "list"]
        settings = subprocess.run(config, capture_output=True, text=True, check=False).stdout
        command = [str(self.uv), "pip", "install", "--compile-bytecode"]
        if re.search(r"[.]no-index='(1|true|yes|on)'", settings):  # uv has no variable for it
            command.append("--no-index")
        self.run([*command, "--python", str(self.python), *arguments], uv_variables(settings))

    def create(self) -> None:
        """Replace the environment with an empty one, unless it was created by something else."""
        mark, folder = self.environment / MARK, self.environment
        is_empty = not os.path.lexists(folder) or (folder.is_dir() and not any(folder.iterdir()))
        is_own = mark.is_file() or (folder / STAMP).is_file()
        if folder.is_symlink() or not (is_own or is_empty):
            fail(f"{folder} was not created by make install", "Move it to another place.")
        self.step(f"creating {folder.name} with {self.installer}")
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

    def install_uv(self) -> None:
        """Install uv, which installs the packages in parallel, if the index has it."""
        if self.installer == "pip":
            return
        try:
            self.install("--no-deps", "--require-hashes", "-r", str(HERE / "uv.txt"))
        except InstallError as error:
            if find_remedy(str(error)) != NO_FILE:
                raise
            print("  The index has no uv for this system. pip takes its place, and takes longer.")

    def install_all(self, way: str, accelerator: str) -> None:
        """Install all packages and Regard."""
        self.install_uv()
        if way == "index":
            self.step(f"downloading and compiling the packages for {accelerator}, and Regard")
            arguments = ["--editable", f".[{EXTRAS[accelerator]}]"]
            if accelerator != "cuda" and self.uv.exists():
                setup = (ROOT / "setup.py").read_text(encoding="utf-8")
                versions = re.findall(r'"tensorflow([<>=][^"]+)"', setup)[0]
                excludes = str(HERE / "excludes-tensorflow.txt")
                arguments += [f"tensorflow-cpu{versions}", "--excludes", excludes]
            self.install(*arguments)
            return
        pins = [part for name in LOCKS[accelerator] for part in ("-r", str(HERE / name))]
        text = "".join((HERE / name).read_text(encoding="utf-8") for name in LOCKS[accelerator])
        count = len(re.findall(r"^[\w.-]+==", text, re.MULTILINE))
        self.step(f"downloading and compiling {count} packages for {accelerator}")
        self.install("--no-deps", "--require-hashes", *pins)
        self.step("installing Regard")
        # From a copy, because the build writes files to the source folder.
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "shim"
            shutil.copytree(HERE / "tfx-bsl-sql-util", copy)
            self.install_project(str(copy))

    def add(self, way: str, name: str) -> None:
        """Install the packages of an extra, unless a copy of their list is in the environment."""
        source = ROOT / "setup.py" if way == "index" else HERE / f"{name}.txt"
        copy = self.environment / f"regard-{name}.txt"
        if not copy.exists() or copy.read_bytes() != source.read_bytes():
            print(f"make install: adding the packages of {name}", flush=True)
            if way == "index":
                self.install("--editable", f".[{name}]")
            else:  # again, as a killed installation leaves packages with half of their files
                flags = ["--no-deps", "--require-hashes", "--force-reinstall"]
                self.install(*flags, "-r", str(source))
        copy.write_bytes(source.read_bytes())

    def install_project(self, *others: str) -> None:
        """Install Regard in editable mode, and other sources."""
        flags = ["--no-deps", "--no-build-isolation", "--force-reinstall"]
        self.install(*flags, *others, "--editable", ".")


def main() -> None:
    """Create or refresh the environment."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("environment", type=Path, help="folder of the virtual environment")
    parser.add_argument("--way", choices=["auto", "lock", "index"], default="auto")
    parser.add_argument("--accelerator", choices=["auto", *LOCKS], default="auto")
    parser.add_argument("--installer", choices=["uv", "pip"], default="uv")
    parser.add_argument("--add", choices=["docs", "extras", "dev"], help="add to the environment")
    arguments = parser.parse_args()
    way, reason = choose(arguments.way)
    environment = arguments.environment.absolute()
    stamp = environment / STAMP
    present = json.loads(stamp.read_text(encoding="utf-8")) if stamp.exists() else {}
    accelerator = choose_accelerator(arguments.accelerator, present)
    log = environment.with_name(f"{environment.name}.log")
    steps = 3 if way == "lock" else 2
    installation = Installation(environment, log, arguments.installer, steps)
    started = time.monotonic()
    try:
        if arguments.add:
            installation.add(way, arguments.add)
            return
        if present == expected_stamp(way, accelerator):
            print("make install: refreshing the installation of Regard", flush=True)
            installation.install_project()
        else:
            where = "requirements/lock.txt" if way == "lock" else "the package index"
            replaced = " (replacing an outdated one)" if environment.exists() else ""
            print(
                f"make install: {reason}, so packages are installed from {where} into "
                f"{environment.name}{replaced}.\n  The output of uv and pip is in {log.name}.",
                flush=True,
            )
            installation.create()
            installation.install_all(way, accelerator)
    except InstallError as error:
        lines = [line for line in str(error).splitlines() if not line.startswith("WARNING: Loc")]
        print("\n".join(lines[-15:]), file=sys.stderr)
        fail(f"failed; see {log}", find_remedy(str(error)))
    temporary = stamp.with_suffix(".tmp")
    content = json.dumps(expected_stamp(way, accelerator), indent=2) + "\n"
    temporary.write_text(content, encoding="utf-8")
    os.replace(temporary, stamp)
    print(f"make install: done in {time.monotonic() - started:.0f} s.", flush=True)
    print(f"next: source {environment.name}/bin/activate && regard doctor", flush=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\nmake install: interrupted. Run it again to start over.")
