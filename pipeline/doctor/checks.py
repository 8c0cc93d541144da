"""The checks of ``regard doctor``: each function turns facts about the machine into a `Check`."""

from __future__ import annotations

import platform
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from regard.pipeline.doctor import machine

Status = Literal["ok", "warn", "fail"]

# The versions that were tested together. tests/test_setup.py compares them with the lock file.
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
# An installation from the package index (glibc >= 2.39) has these versions instead.
KNOWN_GOOD_INDEX = {"ml-metadata": "1.21.0", "tensorflow-data-validation": "1.21.0"}
# Packages whose minor releases are compatible; for others, a different minor version is a warning.
STABLE = {"apache-beam", "keras", "numpy", "protobuf", "pydantic", "rich", "tensorboard", "typer"}
SHIM = "tfx-bsl-sql-util"


@dataclass(frozen=True)
class Check:
    """The result of one check, and how to fix a problem."""

    name: str
    status: Status
    detail: str
    remedy: str | None = None


def installed_version(name: str) -> str | None:
    """The version of an installed distribution, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def check_way(libc: tuple[int, int] | None, way: str) -> Check:
    """Report whether packages come from the lock file or from the package index."""
    if way == "none":
        system = f"{platform.system()} {platform.machine()}, no glibc" if libc is None else ""
        return Check(
            "installation",
            "fail",
            system or f"{platform.system()} {platform.machine()}",
            "TFX has wheels for Linux with glibc on x86_64 only. "
            "Use a container, such as debian:13 or ubuntu:24.04.",
        )
    text = "requirements/lock.txt with the shim" if way == "lock" else "package index"
    return Check("installation", "ok", f"glibc {libc[0]}.{libc[1]}: {text}" if libc else text)


def check_python(version: tuple[int, ...], way: str) -> Check:
    """Require Python 3.10 to 3.13, or 3.11 with the lock file."""
    version_text = ".".join(map(str, version))
    if not (3, 10) <= version[:2] <= (3, 13):
        return Check(
            "python", "fail", version_text, "Use Python 3.10 to 3.13: make PYTHON=python3.11"
        )
    if way == "lock" and version[:2] != (3, 11):
        return Check(
            "python",
            "fail",
            f"{version_text}, but the lock file requires 3.11",
            "Install with Python 3.11: make clean install PYTHON=python3.11",
        )
    return Check("python", "ok", version_text)


def check_package(name: str, version: str | None, way: str) -> Check:
    """Compare the version of a key package with the tested version."""
    good = (KNOWN_GOOD_INDEX if way == "index" else {}).get(name, KNOWN_GOOD[name])
    if version is None:
        return Check(name, "fail", "not installed", "Run: make install")
    if version == good:
        return Check(name, "ok", version)
    numbers = 1 if name in STABLE else 2
    text = f"{version} (tested: {good})"
    if version.split(".")[:numbers] == good.split(".")[:numbers]:
        return Check(name, "ok", text)
    return Check(name, "warn", text, f'If you see errors, run: pip install "{name}=={good}"')


def check_shim(version: str | None) -> Check:
    """Require the module that TFDV 1.16.1 imports and tfx-bsl 1.21 removed."""
    if version:
        return Check("shim", "ok", f"{SHIM} {version}")
    return Check(
        "shim",
        "fail",
        f"{SHIM} is not installed",
        "Run: make install (or: pip install --no-deps requirements/tfx-bsl-sql-util)",
    )


def check_compiler(compiler: str | None, headers: bool) -> Check:
    """Require a C++ compiler for pyfarmhash, which has no wheels."""
    missing = [] if compiler else ["g++"]
    missing += [] if headers else ["python3-dev"]
    if not missing:
        return Check("compiler", "ok", f"{compiler}, with Python headers")
    return Check(
        "compiler",
        "fail",
        f"{' and '.join(missing)} missing. pyfarmhash is built from source.",
        f"Install them: apt-get install {' '.join(missing)}",
    )


def check_cores(count: int) -> Check:
    """Recommend two cores or more."""
    if count > 1:
        return Check("cores", "ok", str(count))
    return Check("cores", "warn", "1", "Use at least two cores for faster training.")


def check_memory(total: int, available: int) -> Check:
    """Recommend 4 GiB of free memory; the quickstart needs about 3 GiB."""
    text = f"{available / machine.GIB:.1f} GiB free of {total / machine.GIB:.1f}"
    if total == 0 or available >= 4 * machine.GIB:
        return Check("memory", "ok", text if total else "unknown")
    return Check(
        "memory",
        "warn",
        text,
        "Close other programs, or reduce training.batch_tokens and evaluation.batch_size.",
    )


def check_cpu(flags: set[str]) -> Check:
    """Require AVX for TensorFlow's wheels, and recommend AVX2."""
    labels = {"avx2": "AVX2", "avx512f": "AVX-512", "avx512_bf16": "AVX512-BF16"}
    text = ", ".join([label for flag, label in labels.items() if flag in flags])
    if flags and "avx" not in flags:
        return Check("processor", "fail", "no AVX", "TensorFlow's wheels need AVX.")
    if flags and "avx2" not in flags:
        return Check("processor", "warn", "no AVX2", "Regard works, but several times slower.")
    if "avx512_bf16" in flags:
        text += ": training.precision mixed_bfloat16 is faster"
    return Check("processor", "ok", text or "unknown")


def check_disk(home: Path, free: int) -> Check:
    """Require 1 GiB of free disk space for data, runs and models; recommend 5 GiB."""
    text = f"{free / machine.GIB:.1f} GiB free at {home}"
    if free >= 5 * machine.GIB:
        return Check("disk", "ok", text)
    status: Status = "warn" if free >= machine.GIB else "fail"
    return Check(
        "disk", status, text, "Free some space, or set REGARD_HOME to a folder with 5 GiB."
    )


def check_home(home: Path) -> Check:
    """Require a writable workspace."""
    folder = machine.existing_parent(home)
    try:
        with tempfile.NamedTemporaryFile(dir=folder):
            return Check("REGARD_HOME", "ok", str(home))
    except OSError as error:
        reason = error.strerror or str(error)
        return Check(
            "REGARD_HOME",
            "fail",
            f"{folder} is not writable: {reason}",
            "Set REGARD_HOME to a writable folder.",
        )


def check_data(folder: str | None) -> Check:
    """Check the folder of datasets that configurations may refer to."""
    if not folder:
        return Check("REGARD_DATA", "ok", "not set: $REGARD_HOME/data")
    if Path(folder).is_dir():
        return Check("REGARD_DATA", "ok", folder)
    return Check("REGARD_DATA", "warn", f"{folder} is not a folder", "Correct or unset it.")


def check_environment(environ: Mapping[str, str]) -> list[Check]:
    """Find environment variables that would break a run."""
    checks = []
    backend = environ.get("KERAS_BACKEND") or "tensorflow"
    if backend != "tensorflow":
        remedy = "Unset it. The pipeline trains and exports with TensorFlow."
        checks.append(Check("KERAS_BACKEND", "fail", backend, remedy))
    if environ.get("TF_USE_LEGACY_KERAS", "").lower() in {"1", "true"}:
        remedy = "Unset it: it replaces Keras 3 with Keras 2."
        checks.append(Check("TF_USE_LEGACY_KERAS", "fail", "set", remedy))
    encoding = (sys.stdout.encoding or "utf-8").lower()
    if encoding.replace("-", "") != "utf8":
        remedy = "Set PYTHONUTF8=1, or LANG to a UTF-8 locale."
        checks.append(Check("encoding", "warn", f"standard output is {encoding}", remedy))
    return checks
