"""The Dockerfile follows best practices and matches the repository."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from regard.pipeline.doctor import machine

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def instructions():
    """The instructions with their arguments on one line, without comments."""
    lines = [line for line in TEXT.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [tuple(line.split(" ", 1)) for line in joined.splitlines() if line.strip()]


def instruction_arguments(name):
    return [value for instruction, value in instructions() if instruction == name]


DEFAULTS = dict(value.split("=", 1) for value in instruction_arguments("ARG") if "=" in value)


def test_base_images_have_versions():
    for value in instruction_arguments("FROM"):
        image = re.sub(r"\$\{(\w+)\}", lambda match: DEFAULTS[match[1]], value.split()[0])
        _, _, tag = image.partition(":")
        assert tag
        assert tag != "latest"


def test_versions_match_the_lock_file():
    lock = (ROOT / "requirements" / "lock.txt").read_text(encoding="utf-8")
    assert f"apache-beam=={DEFAULTS['BEAM']} " in lock
    assert DEFAULTS["PYTHON"] == "3.11"
    glibc = {"bookworm": (2, 36), "trixie": (2, 41)}[DEFAULTS["DEBIAN"]]
    assert machine.install_way(glibc) == "lock"


def test_the_installer_finds_its_modules(tmp_path):
    """Before the packages are installed, the image contains the first files only."""
    text = "\n".join(" ".join(instruction) for instruction in instructions())
    before = text[: text.index("RUN python requirements/install.py")]
    for line in re.findall(r"^COPY (?!--from)(.+) \S+$", before, re.MULTILINE):
        for name in line.split():
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, tmp_path / name, symlinks=True)
            else:
                (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, tmp_path / name)
    code = "import sys; sys.path.insert(0, '.'); import regard.pipeline.doctor.machine as machine"
    command = [sys.executable, "-S", "-c", f"{code}; print(machine.facts()['cores'])"]
    result = subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True)
    assert int(result.stdout or 0) > 0, result.stderr


def test_packages_are_verified_by_hash():
    runs = " ".join(instruction_arguments("RUN"))
    # Packages, optional features, and Regard
    assert runs.count("requirements/install.py") == 3
    assert runs.count("requirements/install.py --way lock") == 3
    assert "pip install" not in runs


def test_apt_lists_are_removed():
    for run in instruction_arguments("RUN"):
        if "apt-get install" in run:
            assert "--no-install-recommends" in run
            assert run.rstrip().endswith("rm -rf /var/lib/apt/lists/*")


def test_image_does_not_run_as_root():
    users = [value for name, value in instructions() if name in ("USER", "FROM")]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1])


def test_caches_are_outside_of_the_home_folder():
    """The home folder is read-only under readOnlyRootFilesystem."""
    (values,) = [value for value in instruction_arguments("ENV") if "REGARD_HOME" in value]
    assert {"REGARD_HOME=/regard", "MPLCONFIGDIR=/tmp"} <= set(values.split())


def test_copied_files_exist_and_are_not_ignored():
    patterns = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for value in instruction_arguments("COPY"):
        if value.startswith("--from"):
            continue
        for source in value.split()[:-1]:
            assert (ROOT / source).exists(), source
            assert f"!{source.split('/')[0]}" in patterns, source


def test_every_package_is_copied():
    copied = {source for value in instruction_arguments("COPY") for source in value.split()[:-1]}
    assert {"components", "core", "models", "pipeline", "serving"} <= copied


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["python", "-m", "pipeline", "a b"], ["python", "-m", "pipeline", "a b"]),
        (["regard", "--help"], ["regard", "--help"]),
        (["--id=1", "--x=a b"], ["/opt/apache/beam/boot", "--id=1", "--x=a b"]),
    ],
)
def test_entry_point_runs_commands_and_beam_workers(arguments, command):
    (entry,) = instruction_arguments("ENTRYPOINT")
    entry = json.loads(entry)
    entry[-1] = entry[-1].replace("exec ", "printf '%s\\n' ")
    result = subprocess.run([*entry, *arguments], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines() == command


def test_beam_workers_start_in_a_writable_folder():
    """`boot` writes pipeline_options.json to its working folder."""
    (entry,) = instruction_arguments("ENTRYPOINT")
    entry = json.loads(entry)
    entry[-1] = entry[-1].replace("exec /opt/apache/beam/boot", "pwd; true")
    result = subprocess.run([*entry, "--worker_pool"], capture_output=True, text=True, check=True)
    assert result.stdout == "/tmp\n"
