"""Checks of images, by their first bytes and by decoding."""

import os

import pytest

from regard.components.data.images import Images
from regard.components.data.unreadable_file import UnreadableFile
from regard.components.settings.data import DataConfig
from tests.components.corpora import picture
from tests.models.tasks.test_image_decoding import BITMAPS, BOMBS, saved, with_size

KINDS = ("png", "jpeg", "bmp")


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
        (b"a web page\n", "images/a is not an image (JPEG, PNG or BMP)"),
        (b"GIF89a\1\0\1\0", "images/a is a GIF image; convert it to PNG or JPEG"),
        (b"RIFF\x24\0\0\0WEBPVP8 ", "images/a is a WebP image; convert it to PNG or JPEG"),
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


def test_images_with_too_many_pixels(problems):
    for content in (with_size("png", 23_000, 23_000), with_size("jpeg", 23_000, 23_000)):
        assert problems(content) == (None, "images/a has more than 64,000,000 pixels")


@pytest.mark.parametrize("name", BOMBS)
def test_images_with_much_work(problems, name):
    content, message = BOMBS[name]
    by_magic, by_decoding = problems(content)
    assert by_magic is None
    assert message in by_decoding


def test_bitmaps(problems):
    assert problems(BITMAPS["adaptive palette"]) == (None, None)
    assert "is a BMP with 1 bit a pixel" in problems(saved("bmp", "1"))[1]


def test_special_files_are_not_opened(problems, tmp_path):
    os.mkfifo(tmp_path / "images" / "fifo")
    message = "images/fifo cannot be read: it is a FIFO, not a regular file"
    assert problems(None, "fifo") == (message, message)
    assert "it is a device" in problems(None, "/dev/zero")[0]


def test_images_of_a_corpus_stay_in_their_folder(tmp_path):
    (tmp_path / "images" / "sub").mkdir(parents=True)
    for path in ("secret.png", "images/a.png", "images/sub/b.png"):
        (tmp_path / path).write_bytes(picture())
    (tmp_path / "images" / "out.png").symlink_to(tmp_path / "secret.png")
    (tmp_path / "images" / "in.png").symlink_to(tmp_path / "images" / "sub" / "b.png")
    config = DataConfig.model_validate({"root": str(tmp_path), "images": "images", "train": "a"})
    images = Images.of(config)
    for name in ("a.png", "sub/b.png", "sub/../a.png", "in.png"):
        assert images.problem(name) is None
    for name in ("../secret.png", str(tmp_path / "secret.png"), "out.png", "../images.png", ".."):
        assert "leads out of the folder of the images" in images.problem(name)
    assert images.problem("a\0b") == "'images/a\\x00b' is not a path"


def test_images_in_a_linked_folder(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.png").write_bytes(picture())
    (tmp_path / "link").symlink_to(tmp_path / "real")
    config = DataConfig.model_validate({"root": str(tmp_path), "images": "link", "train": "a"})
    assert Images.of(config).problem("a.png") is None
