"""The installer: its choice of packages, remedies for failures, incomplete environments."""

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from regard.pipeline.doctor import machine

SCRIPT = Path(__file__).resolve().parents[2] / "requirements" / "install.py"


@pytest.fixture
def install():
    spec = spec_from_file_location("regard_install", SCRIPT)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def simulate(monkeypatch):
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
def test_way(install, simulate, libc, python, requested, way):
    simulate(libc, python)
    assert install.choose(requested)[0] == way


def test_reason_names_the_glibc_version(install, simulate):
    simulate((2, 36), (3, 11))
    assert install.choose("auto")[1] == "glibc 2.36 is older than 2.39"
    simulate((2, 41), (3, 12))
    assert install.choose("auto")[1] == "glibc 2.41 is supported by all wheels"


@pytest.mark.parametrize(
    ("libc", "python", "text"),
    [
        ((2, 36), (3, 12), "python3.11"),
        ((2, 41), (3, 9), "3.10 to 3.13"),
        ((2, 41), (3, 14), "3.10 to 3.13"),
        (None, (3, 11), "container"),
    ],
)
def test_unsupported_system_has_a_remedy(install, simulate, libc, python, text):
    simulate(libc, python)
    with pytest.raises(SystemExit, match=text):
        install.choose("auto")


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("OSError: [Errno 28] No space left on device", "Free disk space"),
        ("error: command 'x86_64-linux-gnu-g++' failed: No such file", "apt-get install g++"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM", "pip cache purge"),
        ("NewConnectionError: Temporary failure in name resolution", "HTTPS_PROXY"),
        ("ERROR: No matching distribution found for tfx==1.21.0", "PIP_INDEX_URL"),
        ("something nobody has seen before", "Fix the problem"),
    ],
)
def test_failure_shows_the_end_of_the_log_and_a_remedy(install, tmp_path, capsys, output, text):
    installation = install.Installation(tmp_path / "venv", tmp_path / "log")
    with pytest.raises(SystemExit, match=text.replace("+", r"\+")):
        installation.run([sys.executable, "-c", f"print({output!r}); raise SystemExit(1)"])
    assert output in capsys.readouterr().err
    assert output in (tmp_path / "log").read_text(encoding="utf-8")


class FakeCommands:
    """Records the commands of pip and venv instead of running them."""

    def __init__(self, monkeypatch, install, environment):
        self.calls = []
        monkeypatch.setattr(install.Installation, "run", lambda _, command, total=0: self(command))
        monkeypatch.setattr(install, "choose", lambda requested: ("lock", "for a test"))
        monkeypatch.setattr(sys, "argv", ["install.py", str(environment)])
        self.environment = environment

    def __call__(self, command):
        if "venv" in command:
            self.environment.mkdir(exist_ok=True)
        self.calls.append(
            next(name for name in ("venv", "-r", "-e", "--editable", "pip") if name in command)
        )


@pytest.fixture
def commands(monkeypatch, install, tmp_path):
    return FakeCommands(monkeypatch, install, tmp_path / "venv")


FULL_INSTALLATION = ["venv", "-r", "pip", "--editable"]


def test_stamp_is_written_last(install, commands):
    install.main()
    assert commands.calls == FULL_INSTALLATION
    stamp = json.loads((commands.environment / install.STAMP).read_text(encoding="utf-8"))
    assert stamp == install.expected_stamp("lock")


def test_environment_without_a_stamp_is_replaced(install, commands, capsys):
    commands.environment.mkdir()
    (commands.environment / install.MARK).touch()  # as the first step of an installation does
    (commands.environment / "half").mkdir()
    install.main()
    assert commands.calls == FULL_INSTALLATION
    assert not (commands.environment / "half").exists()
    assert "outdated" in capsys.readouterr().out


def test_an_environment_of_something_else_is_kept(install, commands, tmp_path):
    commands.environment.mkdir()
    (commands.environment / "mine").write_text("made")
    with pytest.raises(SystemExit, match="was not created by make install"):
        install.main()
    mine = commands.environment.rename(tmp_path / "mine")
    commands.environment.symlink_to(mine)
    with pytest.raises(SystemExit, match="was not created by make install"):
        install.main()
    assert commands.calls == []
    assert (mine / "mine").exists()


def test_current_environment_only_gets_the_project(install, commands):
    install.main()
    commands.calls.clear()
    install.main()
    assert commands.calls == ["--editable"]


def test_an_extra_is_added_to_the_environment(install, commands, monkeypatch):
    install.main()
    stamp = (commands.environment / install.STAMP).read_bytes()
    commands.calls.clear()
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--extra", "docs"])
    install.main()
    assert commands.calls == ["-r"]
    assert (commands.environment / install.STAMP).read_bytes() == stamp


def test_another_lock_file_replaces_the_environment(install, commands, monkeypatch):
    install.main()
    commands.calls.clear()
    monkeypatch.setattr(install, "expected_stamp", lambda way: {"packages": "others"})
    install.main()
    assert commands.calls == FULL_INSTALLATION


def test_failure_leaves_no_stamp(install, commands, monkeypatch):
    install.main()
    monkeypatch.setattr(install, "expected_stamp", lambda way: {"packages": "others"})

    def refuse(*_):
        raise SystemExit("no network")

    monkeypatch.setattr(install.Installation, "install_all", refuse)
    with pytest.raises(SystemExit, match="no network"):
        install.main()
    assert not (commands.environment / install.STAMP).exists()
