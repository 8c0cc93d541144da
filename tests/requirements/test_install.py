"""The installer: which way, what it says when pip fails, and a half-made environment."""

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from pipeline import machine

SCRIPT = Path(__file__).resolve().parents[2] / "requirements" / "install.py"


@pytest.fixture
def install():
    spec = spec_from_file_location("regard_install", SCRIPT)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def on(monkeypatch):
    def pretend(libc, python):
        monkeypatch.setattr(machine, "glibc", lambda: libc)
        monkeypatch.setattr(machine.platform, "machine", lambda: "x86_64")
        monkeypatch.setattr(sys, "version_info", (*python, 1))

    return pretend


@pytest.mark.parametrize(
    ("libc", "python", "requested", "way"),
    [
        ((2, 36), (3, 11), "auto", "lock"),
        ((2, 39), (3, 11), "auto", "index"),
        ((2, 41), (3, 13), "auto", "index"),
        ((2, 41), (3, 11), "lock", "lock"),
    ],
)
def test_way(install, on, libc, python, requested, way):
    on(libc, python)
    assert install.choose(requested)[0] == way


def test_the_reason_names_the_release_of_glibc(install, on):
    on((2, 36), (3, 11))
    assert install.choose("auto")[1] == "glibc 2.36 is older than 2.39"
    on((2, 41), (3, 12))
    assert install.choose("auto")[1] == "glibc 2.41 has every wheel"


@pytest.mark.parametrize(
    ("libc", "python", "words"),
    [
        ((2, 36), (3, 12), "python3.11"),
        ((2, 41), (3, 9), "3.10 to 3.13"),
        ((2, 41), (3, 14), "3.10 to 3.13"),
        (None, (3, 11), "container"),
    ],
)
def test_no_way_ends_with_a_remedy(install, on, libc, python, words):
    on(libc, python)
    with pytest.raises(SystemExit, match=words):
        install.choose("auto")


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("OSError: [Errno 28] No space left on device", "Make room"),
        ("error: command 'x86_64-linux-gnu-g++' failed: No such file", "apt-get install g++"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM", "pip cache purge"),
        ("NewConnectionError: Temporary failure in name resolution", "HTTPS_PROXY"),
        ("ERROR: No matching distribution found for tfx==1.21.0", "PIP_INDEX_URL"),
        ("something nobody has seen before", "Mend that"),
    ],
)
def test_a_failure_shows_the_end_of_the_log_and_a_remedy(install, tmp_path, capsys, output, words):
    installation = install.Installation(tmp_path / "venv", tmp_path / "log")
    with pytest.raises(SystemExit, match=words.replace("+", r"\+")):
        installation.run([sys.executable, "-c", f"print({output!r}); raise SystemExit(1)"])
    assert output in capsys.readouterr().err
    assert output in (tmp_path / "log").read_text(encoding="utf-8")


class Recorded:
    """Stands in for pip and venv: writes down what would be done."""

    def __init__(self, monkeypatch, install, environment):
        self.done = []
        monkeypatch.setattr(install.Installation, "run", lambda _, command, total=0: self(command))
        monkeypatch.setattr(install, "choose", lambda requested: ("lock", "for a test"))
        monkeypatch.setattr(sys, "argv", ["install.py", str(environment)])
        self.environment = environment

    def __call__(self, command):
        if "venv" in command:
            self.environment.mkdir()
        self.done.append(
            next(name for name in ("venv", "-r", "-e", "--editable", "pip") if name in command)
        )


@pytest.fixture
def recorded(monkeypatch, install, tmp_path):
    return Recorded(monkeypatch, install, tmp_path / "venv")


WHOLE = ["venv", "-r", "pip", "--editable"]


def test_the_stamp_is_written_after_everything_else(install, recorded):
    install.main()
    assert recorded.done == WHOLE
    stamp = json.loads((recorded.environment / install.STAMP).read_text(encoding="utf-8"))
    assert stamp == install.wanted("lock")


def test_an_environment_without_a_stamp_is_made_anew(install, recorded, capsys):
    recorded.environment.mkdir()
    (recorded.environment / "half").write_text("made")
    install.main()
    assert recorded.done == WHOLE
    assert not (recorded.environment / "half").exists()
    assert "half made" in capsys.readouterr().out


def test_an_environment_that_is_up_to_date_only_gets_the_project_again(install, recorded):
    install.main()
    recorded.done.clear()
    install.main()
    assert recorded.done == ["--editable"]


def test_another_lock_makes_the_environment_anew(install, recorded, monkeypatch):
    install.main()
    recorded.done.clear()
    monkeypatch.setattr(install, "wanted", lambda way: {"packages": "others"})
    install.main()
    assert recorded.done == WHOLE


def test_a_failure_leaves_no_stamp(install, recorded, monkeypatch):
    install.main()
    monkeypatch.setattr(install, "wanted", lambda way: {"packages": "others"})

    def refuse(*_):
        raise SystemExit("no network")

    monkeypatch.setattr(install.Installation, "everything", refuse)
    with pytest.raises(SystemExit, match="no network"):
        install.main()
    assert not (recorded.environment / install.STAMP).exists()
