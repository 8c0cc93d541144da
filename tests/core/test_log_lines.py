"""Logs that grow while they are read."""

from regard.core.log_lines import LogLines


def test_each_line_is_read_once_and_whole(tmp_path):
    path = tmp_path / "log.txt"
    lines = LogLines(path)
    assert list(lines.new()) == []  # there is no log yet
    path.write_bytes(b"one\ntw")
    assert list(lines.new()) == ["one"]
    with path.open("ab") as file:
        file.write(b"o \n\xff\nend")
    assert list(lines.new()) == ["two", "�"]
    assert list(lines.new()) == []
    assert list(lines.new(to_end=True)) == ["end"]
    assert list(lines.new(to_end=True)) == []
