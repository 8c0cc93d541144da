import logging
import time

import pytest

from regard.core.errors import NotFoundError, UserError
from regard.serving.server import file_watch
from regard.serving.server.file_watch import FileWatch, read_file


class Setting:
    """A value in a file.

    Attributes:
        used: the values that were used, in their order.
    """

    def __init__(self, file):
        self.file, self.used = file, []
        self.watch = FileWatch("values", file.read_text(), file.read_text, self.use)

    def use(self, text: str) -> str:
        int(text)
        self.used.append(text)
        return text


@pytest.fixture
def setting(tmp_path) -> Setting:
    file = tmp_path / "value"
    file.write_text("1")
    return Setting(file)


def test_a_changed_file_is_used_when_two_checks_agree(setting, caplog):
    caplog.set_level(logging.INFO, "regard.serve")
    for text, expected in (
        ("1", []),
        ("2", []),
        ("3", []),
        ("3", ["3"]),
        ("3", ["3"]),
        ("1", ["3"]),
        ("1", ["3", "1"]),
    ):
        setting.file.write_text(text)
        setting.watch.check()
        assert setting.used == expected
    assert [record.getMessage() for record in caplog.records] == [
        "The changed values are in use."
    ] * 2


def test_a_file_that_cannot_be_used_is_logged_once(setting, caplog):
    setting.file.write_text("one")
    for _ in range(5):
        setting.watch.check()
    (record,) = caplog.records
    assert "earlier values" in record.getMessage()
    assert "'one'" in record.getMessage()
    setting.file.write_text("2")
    for _ in range(2):
        setting.watch.check()
    assert setting.used == ["2"]


def test_a_check_that_begins_during_a_replacement_logs_nothing(setting, caplog):
    setting.file.unlink()
    setting.watch.check()
    setting.file.write_text("2")
    for _ in range(2):
        setting.watch.check()
    assert setting.used == ["2"]
    assert not caplog.records


def test_the_checks_go_on_in_a_thread_until_they_are_ended(setting, monkeypatch):
    monkeypatch.setattr(file_watch, "_CHECK_SECONDS", 0.01)
    setting.watch.start()
    for number in ("2", "3"):
        setting.file.write_text(number)
        end = time.monotonic() + 60
        while setting.used[-1:] != [number]:
            assert time.monotonic() < end
            time.sleep(0.01)
    setting.watch.close()


def test_files_that_cannot_be_read(tmp_path):
    file = tmp_path / "value"
    with pytest.raises(NotFoundError):
        read_file(file, 3)
    file.write_bytes(b"1234")
    assert read_file(file, 4) == b"1234"
    for unreadable, message in ((file, "more than 3 bytes"), (tmp_path, "folder")):
        with pytest.raises(UserError, match=message) as caught:
            read_file(unreadable, 3)
        assert caught.value.where == str(unreadable)
