"""The report of the doctor: its checks, exit status, JSON and table."""

import io
import json
import subprocess
import sys

import pytest
from rich.console import Console

from regard.pipeline.doctor import report
from regard.pipeline.doctor.report import Check


def render(results):
    console = Console(file=io.StringIO(), width=100, color_system=None)
    report.render(results, console)
    return console.file.getvalue()


def test_every_check_runs_once(tmp_path):
    names = [check.name for check in report.run_checks({"REGARD_HOME": str(tmp_path)})]
    assert len(names) == len(set(names))
    expected = {"installation", "python", "packages", "processor", "memory", "gpu", "REGARD_HOME"}
    assert expected <= set(names)


def test_a_source_tree_that_is_not_installed(monkeypatch):
    def missing(name):
        raise report.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(report.metadata, "requires", missing)
    monkeypatch.setattr(report.metadata, "version", missing)
    checks = {check.name: check for check in report.run_checks({})}
    assert (checks["regard"].status, checks["regard"].remedy) == ("fail", "Run: make install")


@pytest.mark.parametrize(
    ("libc", "shim", "expected"),
    [
        ((2, 36), "1.21.0", "lock"),
        ((2, 41), None, "index"),
        ((2, 41), "1.21.0", "lock"),  # `make install WAY=lock` works there too
    ],
)
def test_way_depends_on_glibc_and_the_shim(monkeypatch, libc, shim, expected):
    monkeypatch.setattr(report.machine, "glibc", lambda: libc)
    monkeypatch.setattr(report.machine.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(report, "installed_version", lambda _: shim)
    first = report.run_checks({})[0]
    assert ("index" in first.detail) == (expected == "index")
    assert first.status == "ok"


def test_exit_status_and_json_follow_the_worst_check():
    good, failure = Check("a", "ok", "1"), Check("c", "fail", "3")
    warning = Check("b", "warn", "2", "x")
    assert report.exit_status([good, warning]) == 0
    assert report.exit_status([good, failure, warning]) == 2
    assert report.to_json([good, warning])["status"] == "warn"
    content = json.loads(json.dumps(report.to_json([warning, failure, good])))
    assert content["status"] == "fail"
    assert content["checks"][0] == {"name": "b", "status": "warn", "detail": "2", "remedy": "x"}


def test_render_puts_failures_first():
    warning = Check("tensorflow", "warn", "2.30.0", "Downgrade it.")
    text = render([warning, Check("disk", "fail", "[no] space", "Make room.")])
    assert "[no] space" in text  # square brackets are not markup
    assert text.index("Make room.") < text.index("Downgrade it.")


def test_render_without_problems():
    assert "This machine meets all requirements." in render([Check("cores", "ok", "2")])


def test_doctor_does_not_import_tensorflow():
    code = (
        "import sys; from regard.pipeline.doctor import report; report.run_checks();"
        "print([m for m in ('tensorflow', 'keras', 'tfx', 'numpy') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.returncode, result.stdout.strip()) == (0, "[]"), result.stderr
