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
        ("error: Failed to fetch: `https://example.org/simple/tfx/`", "HTTPS_PROXY"),
        ("error: Failed to extract archive: No space left on device (os error 28)", "Free disk"),
        ("  x Hash mismatch for `tfx==1.21.0`", "uv cache clean"),
        ("  x Failed to build `pyfarmhash==0.3.2`", "apt-get install g++"),
        ("  x No solution found when resolving dependencies:", "PIP_INDEX_URL"),
        ("ERROR: No matching distribution found for tfx==1.21.0", "PIP_INDEX_URL"),
        ("something nobody has seen before", "Fix the problem"),
    ],
)
def test_failure_shows_the_end_of_the_log_and_a_remedy(
    install, monkeypatch, tmp_path, capsys, output, text
):
    program = f"print({output!r}); raise SystemExit(1)"

    def create(installation):
        installation.run([sys.executable, "-c", program])

    monkeypatch.setattr(install.Installation, "create", create)
    monkeypatch.setattr(install, "choose", lambda requested: ("lock", "for a test"))
    monkeypatch.setattr(sys, "argv", ["install.py", str(tmp_path / "venv")])
    with pytest.raises(SystemExit, match=text.replace("+", r"\+")):
        install.main()
    assert output in capsys.readouterr().err
    assert output in (tmp_path / "venv.log").read_text(encoding="utf-8")


def test_finished_phases_are_shown(install, tmp_path, capsys):
    installation = install.Installation(tmp_path / "venv", tmp_path / "log")
    program = "print('Resolved 2 packages'); print('Prepared 2 packages in 3s')"
    installation.run([sys.executable, "-c", program])
    assert capsys.readouterr().out == "  Prepared 2 packages in 3s\n"


def test_uv_has_the_settings_of_pip(install):
    config = """:env:.cert='/etc/ours.pem'
:env:.no-cache-dir='1'
global.cert='/etc/other.pem'
global.index-url='https://index.example.org/simple'
global.find-links='\\n/wheels\\nhttps://files.example.org'
global.trusted-host='one.example.org two.example.org'
install.index-url='https://ours.example.org/simple'
list.format='json'
"""
    assert install.uv_variables(config) == {
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "SSL_CERT_FILE": "/etc/ours.pem",
        "UV_NO_CACHE": "1",
        "UV_DEFAULT_INDEX": "https://ours.example.org/simple",
        "UV_FIND_LINKS": "/wheels,https://files.example.org",
        "UV_INSECURE_HOST": "one.example.org two.example.org",
    }


@pytest.mark.parametrize(
    ("requested", "present", "has_gpu", "expected"),
    [
        ("auto", {}, False, "cpu"),
        ("auto", {}, True, "cuda"),
        ("auto", {"accelerator": "jax-cuda"}, False, "jax-cuda"),
        ("cpu", {"accelerator": "cuda"}, True, "cpu"),
    ],
)
def test_accelerator(install, monkeypatch, requested, present, has_gpu, expected):
    monkeypatch.setattr(machine, "has_gpu", lambda: has_gpu)
    assert install.choose_accelerator(requested, present) == expected


def test_lock_files_of_accelerators_exist(install):
    names = {name for files in install.LOCKS.values() for name in files}
    assert [name for name in names if not (SCRIPT.parent / name).is_file()] == []


class FakeCommands:
    """Records the commands of uv, pip and venv instead of running them."""

    def __init__(self, monkeypatch, install, environment):
        self.calls = []  # without flags and paths
        self.programs = []
        self.uv_error = None  # the output of pip if it cannot install uv
        self.download_error = None  # the output of uv if it cannot install packages
        self.way = "lock"
        self.error = install.InstallError
        monkeypatch.setattr(install.Installation, "run", lambda _, command, __=None: self(command))
        monkeypatch.setattr(install, "choose", lambda requested: (self.way, "for a test"))
        monkeypatch.setattr(install, "choose_accelerator", lambda requested, present: "cpu")
        monkeypatch.setattr(sys, "argv", ["install.py", str(environment)])
        self.environment = environment

    def __call__(self, command):
        if "venv" in command:
            (self.environment / "bin").mkdir(parents=True, exist_ok=True)
            (self.environment / "bin" / "python").symlink_to(sys.executable)
            self.calls.append("venv")
            return
        names = [Path(part).name for part in command if part.endswith(".txt")]
        if names == ["uv.txt"]:
            if self.uv_error:
                raise self.error(self.uv_error)
            (self.environment / "bin" / "uv").touch()
        self.programs.append("uv" if Path(command[0]).name == "uv" else "pip")
        if self.programs[-1] == "uv" and self.download_error:
            raise self.error(self.download_error)
        self.calls.append(" ".join(names) or next(part for part in command if part[0] == "."))


@pytest.fixture
def commands(monkeypatch, install, tmp_path):
    return FakeCommands(monkeypatch, install, tmp_path / "venv")


FULL_INSTALLATION = ["venv", "uv.txt", "lock.txt cpu.txt", "."]


def test_stamp_is_written_last(install, commands):
    install.main()
    assert commands.calls == FULL_INSTALLATION
    assert commands.programs == ["pip", "uv", "uv"]
    stamp = json.loads((commands.environment / install.STAMP).read_text(encoding="utf-8"))
    assert stamp == install.expected_stamp("lock", "cpu")


def test_pip_takes_the_place_of_uv_if_the_index_has_none(install, commands, capsys):
    commands.uv_error = "ERROR: No matching distribution found for uv==0.13.9"
    install.main()
    assert commands.calls == [FULL_INSTALLATION[0], *FULL_INSTALLATION[2:]]
    assert commands.programs == ["pip", "pip"]
    assert "no uv" in capsys.readouterr().out


def test_no_packages_are_installed_if_the_index_is_unreachable(install, commands):
    commands.uv_error = "NewConnectionError\nERROR: No matching distribution found for uv"
    with pytest.raises(SystemExit, match="unreachable"):
        install.main()
    assert commands.calls == ["venv"]


def test_pip_takes_the_place_of_uv_that_cannot_download(install, commands, capsys):
    commands.download_error = "error: Failed to fetch: `https://example.org/simple/tfx/`"
    install.main()
    assert commands.calls == FULL_INSTALLATION
    assert commands.programs == ["pip", "uv", "pip", "pip"]
    assert "uv cannot reach the index" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("way", "error", "message"),
    [
        ("lock", "Hash mismatch for `tfx`", "different files"),
        ("index", "Failed to fetch", "unreach"),
    ],
)
def test_pip_does_not_repeat_other_failures_of_uv(install, commands, way, error, message):
    commands.way, commands.download_error = way, error
    with pytest.raises(SystemExit, match=message):
        install.main()
    assert commands.programs == ["pip", "uv"]


def test_pip_can_be_chosen(install, commands, monkeypatch):
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--installer", "pip"])
    install.main()
    assert commands.programs == ["pip", "pip"]


def test_an_installation_from_the_index_takes_the_extras_of_setup(install, commands, monkeypatch):
    commands.way = "index"
    install.main()
    assert commands.calls[-1] == "excludes-tensorflow.txt"
    monkeypatch.setattr(install, "choose_accelerator", lambda requested, present: "cuda")
    install.main()
    assert commands.calls[-1] == ".[pipeline,gpu]"


@pytest.mark.parametrize("accelerator", ["cuda", "jax-cuda"])
def test_another_accelerator_replaces_the_environment(install, commands, monkeypatch, accelerator):
    install.main()
    commands.calls.clear()
    monkeypatch.setattr(install, "choose_accelerator", lambda requested, present: accelerator)
    install.main()
    assert commands.calls == ["venv", "uv.txt", " ".join(install.LOCKS[accelerator]), "."]


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
    assert commands.calls == ["."]


def test_an_extra_is_added_to_the_environment(install, commands, monkeypatch):
    install.main()
    stamp = (commands.environment / install.STAMP).read_bytes()
    commands.calls.clear()
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--add", "docs"])
    install.main()
    assert commands.calls == ["docs.txt"]
    install.main()  # nothing is left to do
    assert commands.calls == ["docs.txt"]
    assert (commands.environment / install.STAMP).read_bytes() == stamp


def test_another_lock_file_replaces_the_environment(install, commands, monkeypatch):
    install.main()
    commands.calls.clear()
    monkeypatch.setattr(install, "expected_stamp", lambda *_: {"packages": "others"})
    install.main()
    assert commands.calls == FULL_INSTALLATION


def test_failure_leaves_no_stamp(install, commands, monkeypatch):
    install.main()
    monkeypatch.setattr(install, "expected_stamp", lambda *_: {"packages": "others"})

    def refuse(*_):
        raise SystemExit("no network")

    monkeypatch.setattr(install.Installation, "install_all", refuse)
    with pytest.raises(SystemExit, match="no network"):
        install.main()
    assert not (commands.environment / install.STAMP).exists()
