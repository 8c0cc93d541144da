"""Checks of images, by their first bytes and by decoding."""

import os

import pytest

from regard.components.data.images import Images
from regard.components.data.read_problems import UnreadableFile
from tests.components.corpora import picture

KINDS = ("png", "jpeg", "gif", "bmp")


@pytest.fixture
def problems(tmp_path):
    """Returns the problems of a file ``images/a``: by its first bytes, and by decoding."""
    folder = tmp_path / "images"
    folder.mkdir()

    def check(content: bytes | None, path: str = "a") -> tuple[str | None, str | None]:
        if content is not None:
            (folder / "a").write_bytes(content)
        root = str(tmp_path)
        return Images(root, "images").problem(path), Images(root, "images", True).problem(path)

    return check


@pytest.mark.parametrize("kind", KINDS)
def test_whole_images(problems, kind):
    assert problems(picture(kind)) == (None, None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_damaged_images(problems, kind, share):
    content = picture(kind, size=(64, 64))
    cut = content[: int(share * len(content))]
    assert problems(cut) == (None, "images/a is truncated or damaged")


def test_trailing_bytes_are_ignored(problems):
    assert problems(picture("jpeg") + bytes(1000)) == (None, None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "images/a is empty"),
        (b"a web page\n", "images/a is not an image (JPEG, PNG, GIF or BMP)"),
        (b"RIFF\x24\0\0\0WEBPVP8 ", "images/a is not an image (JPEG, PNG, GIF or BMP)"),
        (None, "images/a: no such file"),
    ],
)
def test_other_files(problems, content, message):
    assert problems(content) == (message, message)


def test_folders(problems, tmp_path):
    (tmp_path / "images" / "a").mkdir()
    assert problems(None)[0] == "images/a is a folder"
    (tmp_path / "images" / "b").write_bytes(b"")
    assert problems(None, "b/c.jpg")[0] == "images/b/c.jpg cannot be read: Not a directory"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_permission_denied(problems, tmp_path):
    (tmp_path / "images" / "a").touch(mode=0)
    assert problems(None)[0] == "images/a cannot be read: Permission denied"


def test_paths_and_cache(tmp_path):
    (tmp_path / "a.png").write_bytes(picture())
    images = Images(str(tmp_path))
    assert images.path_of("a.png") == str(tmp_path / "a.png")
    assert images.problem("b.png") == "b.png: no such file"
    assert Images("/data", "/photos").path_of("a.png") == "/photos/a.png"
    assert images.problem(str(tmp_path / "a.png")) is None
    assert images.problem("a.png") is None
    (tmp_path / "a.png").unlink()
    assert images.problem("a.png") is None  # checked once
    with pytest.raises(UnreadableFile, match="the image cannot be read: No such file") as caught:
        images.read("a.png")
    assert caught.value.problem.file == str(tmp_path / "a.png")
