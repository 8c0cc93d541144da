"""`make lock`: its command for uv and its list of changes."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "requirements" / "relock.py"


@pytest.fixture
def relock():
    spec = spec_from_file_location("regard_relock", SCRIPT)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_changes_lists_added_removed_and_updated_packages(relock):
    old = "a==1.0 \\\n    --hash=sha256:0\nb==2\nc==3\n    # via a\n"
    new = "a==1.1 \\\n    --hash=sha256:1\nc==3\nd==4\n"
    assert relock.changes(old, new) == ["a: 1.0 -> 1.1", "b: 2 -> absent", "d: absent -> 4"]
    assert relock.changes(new, new) == []


def test_command_names_every_source(relock, monkeypatch, tmp_path):
    monkeypatch.setattr(relock.shutil, "which", lambda name, path: "uv")
    command = relock.command(tmp_path / "lock.txt", ["--upgrade"])
    assert command[:3] == ["uv", "pip", "compile"]
    assert "--generate-hashes" in command
    for name in ("overrides.txt", "excludes.txt", "excludes-run.txt", "requirements.in"):
        assert name in command
        assert (SCRIPT.parent / name).exists()


def test_documentation_uses_the_versions_of_the_new_lock(relock, monkeypatch, tmp_path):
    monkeypatch.setattr(relock.shutil, "which", lambda name, path: "uv")
    command = relock.command(tmp_path / "docs.txt", [])
    assert command[-1] == "docs.in"
    assert command[command.index("--constraint") + 1] == str(tmp_path / "lock.txt")
    assert relock.LOCKS.index("docs.txt") > relock.LOCKS.index("lock.txt")


def test_every_lock_file_has_a_source(relock, monkeypatch):
    monkeypatch.setattr(relock.shutil, "which", lambda name, path: "uv")
    for name in relock.LOCKS:
        assert (SCRIPT.parent / name).is_file()
        assert (SCRIPT.parent / relock.command(SCRIPT.parent / name, [])[-1]).is_file()


def test_packages_of_another_lock_file_are_left_out(relock):
    text = "# head\na==1 \\\n    --hash=sha256:0\nb==2 \\\n    --hash=sha256:1\n"
    other = "# head\na==1 \\\n    --hash=sha256:0\nb==3 \\\n    --hash=sha256:2\n"
    assert relock.without_pins(text, other) == "# head\nb==2 \\\n    --hash=sha256:1\n"


def test_missing_uv_has_a_remedy(relock, monkeypatch, tmp_path):
    monkeypatch.setattr(relock.shutil, "which", lambda name, path: None)
    with pytest.raises(SystemExit, match="make lock"):
        relock.command(tmp_path / "lock.txt", [])


def test_failed_resolution_keeps_the_lock_file(relock, monkeypatch):
    lock = SCRIPT.parent / "lock.txt"
    content = lock.read_bytes()
    monkeypatch.setattr(relock, "command", lambda *_: [sys.executable, "-c", "raise SystemExit(3)"])
    monkeypatch.setattr(sys, "argv", ["relock.py"])
    with pytest.raises(SystemExit, match="unchanged"):
        relock.main()
    assert lock.read_bytes() == content
    assert not list(SCRIPT.parent.glob(".relock-*"))
