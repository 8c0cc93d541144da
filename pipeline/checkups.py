"""The doctor's examinations: one function a thing it looks at, each giving a `Check`.

They judge what they are handed and look up nothing themselves, so that every case can be tested;
`pipeline.machine` and `installed` do the looking.
"""

from __future__ import annotations

import platform
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from pipeline import machine

Status = Literal["ok", "warn", "fail"]

# The releases that were run together, end to end. tests/test_setup.py holds them to the lock.
KNOWN_GOOD = {
    "tfx": "1.21.0",
    "tensorflow": "2.21.0",
    "tensorflow-text": "2.21.1",
    "keras": "3.15.1",
    "tensorflow-transform": "1.21.0",
    "tfx-bsl": "1.21.0",
    "tensorflow-metadata": "1.21.0",
    "ml-metadata": "1.17.1",
    "tensorflow-data-validation": "1.16.1",
    "tensorflow-model-analysis": "0.52.0",
    "apache-beam": "2.77.0",
    "tensorboard": "2.21.0",
    "sentencepiece": "0.2.3",
    "sacrebleu": "2.6.0",
    "ftfy": "6.3.1",
    "rensa": "0.5.0",
    "numpy": "2.4.6",
    "protobuf": "6.33.6",
    "pyarrow": "18.1.0",
    "pydantic": "2.14.3",
    "typer": "0.29.1",
    "rich": "15.0.0",
}
# Where they come from the index (glibc >= 2.39), these two are of TFX's own release.
KNOWN_GOOD_INDEX = {"ml-metadata": "1.21.0", "tensorflow-data-validation": "1.21.0"}
# Packages whose minor releases keep their promises; a change in the others' is worth a warning.
STEADY = {"apache-beam", "keras", "numpy", "protobuf", "pydantic", "rich", "tensorboard", "typer"}
SHIM = "tfx-bsl-sql-util"


@dataclass(frozen=True)
class Check:
    """One thing looked at: what was found and, where it is not well, what to do."""

    name: str
    status: Status
    found: str
    remedy: str | None = None


def installed(name: str) -> str | None:
    """The version of an installed distribution, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def check_way(libc: tuple[int, int] | None, way: str) -> Check:
    """Which of the two installations this is."""
    if way == "none":
        system = f"{platform.system()} {platform.machine()}, no glibc" if libc is None else ""
        return Check(
            "installation",
            "fail",
            system or f"{platform.system()} {platform.machine()}",
            "TFX has wheels for Linux with glibc on x86_64 only. "
            "Use a container, such as debian:13 or ubuntu:24.04.",
        )
    text = "from requirements/lock.txt with the shim" if way == "lock" else "from the index"
    return Check("installation", "ok", f"glibc {libc[0]}.{libc[1]}: {text}" if libc else text)


def check_python(version: tuple[int, ...], way: str) -> Check:
    """The interpreter: 3.10 to 3.13 from the index, 3.11 from the lock."""
    found = ".".join(map(str, version))
    if not (3, 10) <= version[:2] <= (3, 13):
        return Check("python", "fail", found, "Use Python 3.10 to 3.13: make PYTHON=python3.11")
    if way == "lock" and version[:2] != (3, 11):
        return Check(
            "python",
            "fail",
            f"{found}, but the lock is for 3.11",
            "Install with Python 3.11: make clean install PYTHON=python3.11",
        )
    return Check("python", "ok", found)


def check_package(name: str, found: str | None, way: str) -> Check:
    """One key package's version against the release that is known to work."""
    good = (KNOWN_GOOD_INDEX if way == "index" else {}).get(name, KNOWN_GOOD[name])
    if found is None:
        return Check(name, "fail", "not installed", "Run: make install")
    if found == good:
        return Check(name, "ok", found)
    figures = 1 if name in STEADY else 2
    same = found.split(".")[:figures] == good.split(".")[:figures]
    text = f"{found} (known good: {good})"
    if same:
        return Check(name, "ok", text)
    return Check(name, "warn", text, f'If something breaks: pip install "{name}=={good}"')


def check_shim(found: str | None) -> Check:
    """The module that TFDV 1.16.1 imports and tfx-bsl 1.21 dropped."""
    if found:
        return Check("shim", "ok", f"{SHIM} {found}")
    return Check(
        "shim",
        "fail",
        f"{SHIM} is not installed",
        "Run: make install (or: pip install --no-deps requirements/tfx-bsl-sql-util)",
    )


def check_compiler(compiler: str | None, headers: bool) -> Check:
    """Looked at only where pyfarmhash, which has no wheels, is not installed yet."""
    missing = [] if compiler else ["g++"]
    missing += [] if headers else ["python3-dev"]
    if not missing:
        return Check("compiler", "ok", f"{compiler}, with Python's headers")
    return Check(
        "compiler",
        "fail",
        f"{' and '.join(missing)} missing; pyfarmhash is built from source",
        f"Install them: apt-get install {' '.join(missing)}",
    )


def check_cores(count: int) -> Check:
    """Cores: with one, everything works and takes its time."""
    if count > 1:
        return Check("cores", "ok", str(count))
    return Check("cores", "warn", "1", "Give it two cores or more: training takes twice as long.")


def check_memory(total: int, available: int) -> Check:
    """Memory: a run of the quickstart needs about 3 GiB."""
    found = f"{available / machine.GIB:.1f} GiB free of {total / machine.GIB:.1f}"
    if total == 0 or available >= 4 * machine.GIB:
        return Check("memory", "ok", found if total else "unknown")
    return Check(
        "memory",
        "warn",
        found,
        "Close other programs, or make training.batch_tokens and evaluation.batch_size smaller.",
    )


def check_cpu(flags: set[str]) -> Check:
    """Vector instructions: TensorFlow's wheels need AVX; bfloat16 makes training faster."""
    named = {"avx2": "AVX2", "avx512f": "AVX-512", "avx512_bf16": "AVX512-BF16"}
    found = ", ".join([text for flag, text in named.items() if flag in flags])
    if flags and "avx" not in flags:
        return Check("processor", "fail", "no AVX", "TensorFlow's wheels need AVX.")
    if flags and "avx2" not in flags:
        return Check("processor", "warn", "no AVX2", "It works, but several times slower.")
    if "avx512_bf16" in flags:
        found += ": training.precision mixed_bfloat16 pays"
    return Check("processor", "ok", found or "unknown")


def check_disk(home: Path, free: int) -> Check:
    """Free space where data, runs and models go."""
    found = f"{free / machine.GIB:.1f} GiB free at {home}"
    if free >= 5 * machine.GIB:
        return Check("disk", "ok", found)
    status: Status = "warn" if free >= machine.GIB else "fail"
    return Check("disk", status, found, "Make room, or set REGARD_HOME to a folder with 5 GiB.")


def check_home(home: Path) -> Check:
    """Whether files can be made in the workspace."""
    place = machine.existing_parent(home)
    try:
        with tempfile.NamedTemporaryFile(dir=place):
            return Check("REGARD_HOME", "ok", str(home))
    except OSError as error:
        reason = error.strerror or str(error)
        return Check(
            "REGARD_HOME",
            "fail",
            f"cannot write in {place}: {reason}",
            "Set REGARD_HOME to a folder that you may write in.",
        )


def check_data(folder: str | None) -> Check:
    """The folder of data sets that configurations may name."""
    if not folder:
        return Check("REGARD_DATA", "ok", "not set: $REGARD_HOME/data")
    if Path(folder).is_dir():
        return Check("REGARD_DATA", "ok", folder)
    return Check("REGARD_DATA", "warn", f"{folder} is not a folder", "Correct it, or unset it.")


def check_environment(environ: Mapping[str, str]) -> list[Check]:
    """Settings that would break a run; nothing where there is none."""
    checks = []
    backend = environ.get("KERAS_BACKEND") or "tensorflow"
    if backend != "tensorflow":
        remedy = "Unset it: the pipeline trains and exports with TensorFlow."
        checks.append(Check("KERAS_BACKEND", "fail", backend, remedy))
    if environ.get("TF_USE_LEGACY_KERAS", "").lower() in {"1", "true"}:
        remedy = "Unset it: it puts Keras 2 in the place of Keras 3."
        checks.append(Check("TF_USE_LEGACY_KERAS", "fail", "set", remedy))
    encoding = (sys.stdout.encoding or "utf-8").lower()
    if encoding.replace("-", "") != "utf8":
        remedy = "Set PYTHONUTF8=1, or LANG to a UTF-8 locale."
        checks.append(Check("encoding", "warn", f"standard output is {encoding}", remedy))
    return checks
