"""The checks of ``regard doctor``: each function turns facts about the machine into a `Check`."""

import platform
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from packaging.requirements import Requirement

from regard.core.files import is_writable
from regard.core.processor import has_fast_bfloat16
from regard.core.provenance import package_version as installed_version
from regard.pipeline.doctor.machine import GIB

SHIM = "tfx-bsl-sql-util"


@dataclass(frozen=True)
class Check:
    """The result of one check, and how to fix a problem."""

    name: str
    status: Literal["ok", "warn", "fail"]
    detail: str
    remedy: str | None = None


def check_installation(libc: tuple[int, int] | None, way: str, shim: str | None) -> Check:
    """Report whether packages come from the lock file or from the package index.

    The lock file needs the module that TFDV 1.16.1 imports and tfx-bsl 1.21 removed.
    """
    name = "installation"
    if way == "none" or libc is None:
        system = f"{platform.system()} {platform.machine()}{', no glibc' if libc is None else ''}"
        remedy = "Use a container on x86_64, such as debian:13. TFX has no wheels for this system."
        return Check(name, "fail", system, remedy)
    if way == "lock" and shim is None:
        return Check(name, "fail", f"{SHIM} is not installed", "Run: make install")
    text = f"requirements/lock.txt with {SHIM} {shim}" if way == "lock" else "package index"
    return Check(name, "ok", f"glibc {libc[0]}.{libc[1]}: {text}")


def check_python(version: tuple[int, ...]) -> Check:
    """Require Python 3.10 to 3.13."""
    text = ".".join(map(str, version))
    if (3, 10) <= version[:2] <= (3, 13):
        return Check("python", "ok", text)
    return Check("python", "fail", text, "Use Python 3.10 to 3.13: make PYTHON=python3.11")


def check_packages(lines: Iterable[str]) -> list[Check]:
    """Compare the installed packages with requirements: a summary, and a check per problem."""
    requirements = [
        requirement
        for requirement in map(Requirement, lines)
        if requirement.marker is None or requirement.marker.evaluate({"extra": "pipeline"})
    ]
    problems = []
    for requirement in requirements:
        name, version = requirement.name, installed_version(requirement.name)
        if version is None:
            problems.append(Check(name, "fail", "not installed", "Run: make install"))
        elif not requirement.specifier.contains(version, prereleases=True):
            remedy = f'If you see errors, run: pip install "{requirement}"'
            detail = f"{version} (supported: {requirement.specifier})"
            problems.append(Check(name, "warn", detail, remedy))
    count = len(requirements) - len(problems)
    summary = f"{count} of {len(requirements)} packages have a supported version"
    return [Check("packages", "ok", summary), *problems]


def check_memory(total: int, available: int) -> Check:
    """Recommend 4 GiB of free memory; the quickstart needs about 3 GiB."""
    text = f"{available / GIB:.1f} GiB free of {total / GIB:.1f}" if total else "unknown"
    if total == 0 or available >= 4 * GIB:
        return Check("memory", "ok", text)
    remedy = "Close other programs, or reduce training.batch_tokens and evaluation.batch_size."
    return Check("memory", "warn", text, remedy)


def check_processor(cores: int, features: set[str]) -> Check:
    """Require AVX for TensorFlow's wheels, recommend AVX2, and report whether bfloat16 is fast."""
    if features and "avx" not in features:
        return Check("processor", "fail", "no AVX", "TensorFlow's wheels need AVX.")
    if features and "avx2" not in features:
        return Check("processor", "warn", "no AVX2", "Regard works, but several times slower.")
    text = f"{cores} {'core' if cores == 1 else 'cores'}"
    if has_fast_bfloat16(features):
        text += ", fast bfloat16: training.precision mixed_bfloat16 is faster than float32"
    elif features:
        text += ", no AVX512-BF16: training.precision mixed_bfloat16 is slower than float32"
    return Check("processor", "ok", text)


def check_home(home: Path, free: int) -> Check:
    """Require a writable workspace and 1 GiB of free disk space; recommend 5 GiB."""
    if not is_writable(home):
        remedy = "Set REGARD_HOME to a writable folder."
        return Check("REGARD_HOME", "fail", f"{home} is not writable", remedy)
    text = f"{home}, {free / GIB:.1f} GiB free"
    if free >= 5 * GIB:
        return Check("REGARD_HOME", "ok", text)
    remedy = "Free some space, or set REGARD_HOME to a folder with 5 GiB."
    return Check("REGARD_HOME", "warn" if free >= GIB else "fail", text, remedy)


def check_environment(environ: Mapping[str, str]) -> list[Check]:
    """Find environment variables that would break a run."""
    backend, data = environ.get("KERAS_BACKEND") or "tensorflow", environ.get("REGARD_DATA")
    checks = []
    if backend != "tensorflow":
        remedy = "Unset it, and use training.backend. The pipeline exports with TensorFlow."
        checks.append(Check("KERAS_BACKEND", "fail", backend, remedy))
    if environ.get("TF_USE_LEGACY_KERAS", "").lower() in {"1", "true"}:
        remedy = "Unset it: it replaces Keras 3 with Keras 2."
        checks.append(Check("TF_USE_LEGACY_KERAS", "fail", "set", remedy))
    if data and not Path(data).is_dir():
        detail = f"{data} is not a folder"
        checks.append(Check("REGARD_DATA", "warn", detail, "Correct or unset it."))
    encoding = (sys.stdout.encoding or "utf-8").lower()
    if encoding.replace("-", "") != "utf8":
        remedy = "Set PYTHONUTF8=1, or LANG to a UTF-8 locale."
        checks.append(Check("encoding", "warn", f"standard output is {encoding}", remedy))
    return checks
