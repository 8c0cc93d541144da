"""The whole report, its exit status and the two ways it is shown."""

import io
import json
import subprocess
import sys

import pytest
from rich.console import Console

from pipeline import checkups, doctor
from pipeline.doctor import Check


def drawn(checks):
    console = Console(file=io.StringIO(), width=100, color_system=None)
    doctor.render(checks, console)
    return console.file.getvalue()


def test_report_looks_at_everything(tmp_path):
    names = [check.name for check in doctor.report({"REGARD_HOME": str(tmp_path)})]
    assert len(names) == len(set(names))
    expected = {"installation", "python", "cores", "memory", "processor", "gpu", "disk"}
    assert {*expected, "REGARD_HOME", "REGARD_DATA", *doctor.KNOWN_GOOD} <= set(names)


def test_report_asks_for_a_compiler_only_where_pyfarmhash_is_missing(monkeypatch):
    def without(*names):
        return lambda name: None if name in names else "1.21.0"

    monkeypatch.setattr(doctor, "installed", without())
    assert "compiler" not in [check.name for check in doctor.report({})]
    monkeypatch.setattr(doctor, "installed", without("pyfarmhash"))
    assert "compiler" in [check.name for check in doctor.report({})]


@pytest.mark.parametrize(
    ("libc", "shim", "expected"),
    [
        ((2, 36), "1.21.0", "lock"),
        ((2, 36), None, "lock"),
        ((2, 41), None, "index"),
        ((2, 41), "1.21.0", "lock"),  # `make install WAY=lock` works there too
    ],
)
def test_way_follows_the_c_library_and_what_is_installed(monkeypatch, libc, shim, expected):
    monkeypatch.setattr(doctor.machine, "glibc", lambda: libc)
    monkeypatch.setattr(doctor.machine.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(doctor, "installed", lambda name: shim if name == doctor.SHIM else "0")
    first = doctor.report({})[0]
    assert ("index" in first.found) == (expected == "index")
    assert first.status == "ok"


def test_exit_status_and_json_follow_the_worst_check():
    well, odd, ill = Check("a", "ok", "1"), Check("b", "warn", "2", "x"), Check("c", "fail", "3")
    assert doctor.exit_status([well, odd]) == 0
    assert doctor.exit_status([well, ill, odd]) == 2
    assert doctor.as_json([well, odd])["status"] == "warn"
    answer = json.loads(json.dumps(doctor.as_json([odd, ill, well])))
    assert answer["status"] == "fail"
    assert answer["checks"][0] == {"name": "b", "status": "warn", "found": "2", "remedy": "x"}


def test_render_folds_the_packages_that_are_well_and_puts_failures_first():
    good = checkups.KNOWN_GOOD
    checks = [checkups.check_package(name, release, "lock") for name, release in good.items()]
    checks[1] = checkups.check_package("tensorflow", "2.30.0", "lock")
    checks.append(Check("disk", "fail", "[no] space", "Make room."))
    text = drawn(checks)
    assert f"{len(good) - 1} of {len(good)} key packages" in text
    assert text.count("tensorflow==2.21.0") == 1
    assert "[no] space" in text  # square brackets are not markup
    assert text.index("Make room.") < text.index("tensorflow==2.21.0")


def test_render_says_so_when_all_is_well():
    assert "Everything that Regard needs is here." in drawn([Check("cores", "ok", "2")])


def test_the_doctor_imports_nothing_heavy():
    code = (
        "import sys; from pipeline import doctor; doctor.report();"
        "print([m for m in ('tensorflow', 'keras', 'tfx', 'numpy') if m in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (answer.returncode, answer.stdout.strip()) == (0, "[]"), answer.stderr
