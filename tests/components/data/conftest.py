import pytest

from regard.components.data.sources import FileGroup


@pytest.fixture
def single(tmp_path):
    """Writes a file of any format, and returns its group."""

    def write(kind: str, content: str | bytes) -> FileGroup:
        path = tmp_path / f"a.{kind}"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return FileGroup("train", kind, (str(path),))

    return write
