"""A new training reports the checkpoints that it does not resume."""

import pytest

from regard.components.trainer.other_checkpoints import report_other_checkpoints
from regard.core import owned_folders


@pytest.fixture
def reports(tmp_path, monkeypatch):
    path = tmp_path / "events"
    monkeypatch.setenv("REGARD_EVENTS", str(path))

    def report(folder):
        report_other_checkpoints(folder)
        return path.read_text() if path.exists() else ""

    return report


def test_a_checkpoint_of_unknown_settings_is_reported(tmp_path, reports):
    (tmp_path / "fixed").mkdir()
    (tmp_path / "fixed" / "last.npz").write_bytes(b"state")
    folder = tmp_path / "fixed" / "k3y"
    text = reports(folder)
    assert '"warning"' in text
    assert str(folder) in text


def test_checkpoints_of_other_settings_are_reported(tmp_path, reports):
    other = tmp_path / "fixed" / "0ther"
    owned_folders.create(other, owned_folders.CHECKPOINTS)
    assert reports(tmp_path / "fixed" / "k3y") == ""
    (other / "last.npz").write_bytes(b"state")
    assert str(tmp_path / "fixed") in reports(tmp_path / "fixed" / "k3y")


def test_a_training_that_resumes_reports_nothing(tmp_path, reports):
    for name in ("k3y", "0ther"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "last.npz").write_bytes(b"state")
    assert reports(tmp_path / "k3y") == ""
