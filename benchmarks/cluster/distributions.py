"""Flink, Spark and Beam's job servers from the public registries, in a cache folder.

Flink's jars and scripts are two packages of PyPI, Spark is one, and the job servers are artifacts
of Maven Central. Never install ``apache-flink`` itself: it requires an old version of Beam.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

CACHE = Path("~/.cache/regard/clusters").expanduser()
FLINK_VERSION = "1.19.3"
SPARK_VERSION = "3.5.7"
# The newest version of which Maven Central serves the runners with all that they need.
BEAM_VERSION = "2.62.0"
FLINK_RUNNER, SPARK_RUNNER = "flink-1.19", "spark-3"
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>regard</groupId><artifactId>job-server</artifactId><version>1</version>
<dependencies><dependency><groupId>org.apache.beam</groupId><artifactId>{artifact}</artifactId>
<version>{version}</version></dependency></dependencies></project>
"""


class Unavailable(Exception):
    """A tool is missing, or a registry refused an artifact."""


def flink(version: str = FLINK_VERSION) -> Path:
    """Return a folder with Flink's ``bin``, ``lib`` and ``plugins``."""
    return _cached(f"flink-{version}", lambda folder: _unpack_flink(version, folder))


def spark(version: str = SPARK_VERSION) -> Path:
    """Return a folder with Spark's ``bin`` and ``jars``."""
    return _cached(f"spark-{version}", lambda folder: _unpack_spark(version, folder))


def job_server(runner: str, version: str = BEAM_VERSION) -> Path:
    """Return a folder with the jars of a job server.

    Args:
        runner: the end of the artifact's name: ``flink-1.19`` or ``spark-3``.
        version: the version of Beam.
    """
    artifact = f"beam-runners-{runner}"
    return _cached(f"{artifact}-{version}", lambda folder: _copy_jars(artifact, version, folder))


def fetch(engine: str) -> None:
    """Download all that a cluster needs, ``flink`` or ``spark``.

    Raises:
        Unavailable: a tool is missing, or a registry refused an artifact.
    """
    if engine == "flink":
        flink()
        job_server(FLINK_RUNNER)
    else:
        spark()
        job_server(SPARK_RUNNER)


def _cached(name: str, fill: Callable[[Path], None]) -> Path:
    """Return a folder of the cache; it appears when it is complete."""
    final = CACHE / name
    if not final.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as temporary:
            content = Path(temporary, name)
            content.mkdir()
            fill(content)
            content.rename(final)
    return final


def _unpack_flink(version: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=CACHE) as temporary:
        _extract(_download(f"apache-flink-libraries=={version}", temporary), temporary)
        _extract(_download(f"apache-flink=={version}", temporary), temporary)
        (jars,) = Path(temporary).glob("apache*flink*libraries*/deps")
        for name in ("lib", "plugins"):
            shutil.move(jars / name, folder / name)
        shutil.move(Path(temporary, "pyflink/bin"), folder / "bin")
        shutil.move(Path(temporary, "pyflink/conf"), folder / "conf")
        for jar in (jars / "bin").iterdir():
            shutil.move(jar, folder / "bin")
        for script in (folder / "bin").glob("*.sh"):
            script.chmod(0o755)


def _unpack_spark(version: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=CACHE) as temporary:
        _extract(_download(f"pyspark=={version}", temporary), temporary)
        (content,) = Path(temporary).glob("pyspark-*/deps")
        for name in ("bin", "jars"):
            shutil.move(content / name, folder / name)


def _copy_jars(artifact: str, version: str, folder: Path) -> None:
    (folder / "pom.xml").write_text(_POM.format(artifact=artifact, version=version))
    _call(
        ["mvn", "--batch-mode", "dependency:copy-dependencies", f"-DoutputDirectory={folder}"],
        f"org.apache.beam:{artifact}:{version}",
        folder,
    )


def _download(requirement: str, folder: str) -> Path:
    """Download one package; Flink's wheel is for fewer versions of Python than Regard."""
    before = set(Path(folder).iterdir())
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
    _call([*command, requirement], requirement, Path(folder))
    (file,) = set(Path(folder).iterdir()) - before
    return file


def _extract(archive: Path, folder: str) -> None:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(folder)
    else:
        with tarfile.open(archive) as package:
            package.extractall(folder, filter="data")
    archive.unlink()


def _call(command: list[str], what: str, folder: Path) -> None:
    try:
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise Unavailable(f"{command[0]} is not installed") from None
    if result.returncode:
        lines = [line for line in (result.stdout + result.stderr).splitlines() if "ERROR" in line]
        raise Unavailable(f"{what} is not available: {lines[0] if lines else result.stderr}")
