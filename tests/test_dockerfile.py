"""The image's recipe, by what a linter would say of it and by what the repository has."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from pipeline import machine

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def instructions():
    """The instructions with their arguments on one line, comments left out."""
    lines = [line for line in TEXT.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [tuple(line.split(" ", 1)) for line in joined.splitlines() if line.strip()]


def arguments(name):
    return [value for instruction, value in instructions() if instruction == name]


DEFAULTS = dict(value.split("=", 1) for value in arguments("ARG") if "=" in value)


def test_every_base_has_a_version():
    for value in arguments("FROM"):
        image = re.sub(r"\$\{(\w+)\}", lambda match: DEFAULTS[match[1]], value.split()[0])
        _, _, tag = image.partition(":")
        assert tag
        assert tag != "latest"


def test_the_versions_are_those_of_the_lock():
    lock = (ROOT / "requirements" / "lock.txt").read_text(encoding="utf-8")
    assert f"apache-beam=={DEFAULTS['BEAM']} " in lock
    assert DEFAULTS["PYTHON"] == "3.11"
    glibc = {"bookworm": (2, 36), "trixie": (2, 41)}[DEFAULTS["DEBIAN"]]
    assert machine.install_way(glibc) == "lock"


def test_packages_come_by_their_hash_and_from_the_installer():
    runs = " ".join(arguments("RUN"))
    assert runs.count("python requirements/install.py --way lock .venv") == 2
    for call in re.findall(r"pip install [^;&]*", runs):
        assert "--require-hashes" in call
        assert "--no-deps" in call
        (file,) = re.findall(r"-r (\S+)", call)
        assert (ROOT / file).is_file()


def test_apt_leaves_nothing_behind():
    for run in arguments("RUN"):
        if "apt-get install" in run:
            assert "--no-install-recommends" in run
            assert run.rstrip().endswith("rm -rf /var/lib/apt/lists/*")


def test_it_does_not_run_as_root():
    users = [value for name, value in instructions() if name in ("USER", "FROM")]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1])


def test_what_is_copied_is_there_and_not_kept_out():
    allowed = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for value in arguments("COPY"):
        if value.startswith("--from"):
            continue
        for source in value.split()[:-1]:
            assert (ROOT / source).exists(), source
            assert f"!{source.split('/')[0]}" in allowed, source


def test_every_package_is_copied():
    copied = {source for value in arguments("COPY") for source in value.split()[:-1]}
    assert {"components", "models", "pipeline", "serving"} <= copied


@pytest.mark.parametrize(
    ("given", "started"),
    [
        (["python", "-m", "pipeline", "a b"], ["python", "-m", "pipeline", "a b"]),
        (["regard", "--help"], ["regard", "--help"]),
        (["--id=1", "--x=a b"], ["/opt/apache/beam/boot", "--id=1", "--x=a b"]),
    ],
)
def test_a_command_is_run_and_options_are_for_beam_s_worker(given, started):
    (entry,) = arguments("ENTRYPOINT")
    entry = json.loads(entry)
    entry[-1] = entry[-1].replace("exec ", "printf '%s\\n' ")
    done = subprocess.run([*entry, *given], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == started
