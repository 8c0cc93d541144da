"""Images that are there and images that are not, by their first bytes and decoded."""

from __future__ import annotations

import os

import pytest

from components.corpus_gen.images import Images
from components.corpus_gen.problems import Broken
from tests.components.corpus_gen.corpora import picture

KINDS = ("png", "jpeg", "gif", "bmp")


@pytest.fixture
def look(tmp_path):
    """What is wrong with a file ``images/a`` of this content: by its first bytes, and decoded."""
    folder = tmp_path / "images"
    folder.mkdir()

    def wrong(content: bytes | None, path: str = "a") -> tuple[str | None, str | None]:
        if content is not None:
            (folder / "a").write_bytes(content)
        data = {"root": str(tmp_path), "images": "images"}
        return Images(data).wrong(path), Images(data, decode=True).wrong(path)

    return wrong


@pytest.mark.parametrize("kind", KINDS)
def test_whole_images_are_fine(look, kind):
    assert look(picture(kind)) == (None, None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_an_image_that_is_cut_off_shows_when_it_is_decoded(look, kind, share):
    content = picture(kind, size=(64, 64))
    assert look(content[: int(share * len(content))]) == (None, "images/a is cut off")


@pytest.mark.parametrize("kind", ["png", "jpeg"])
def test_an_image_that_is_damaged_inside(look, kind):
    content = bytearray(picture(kind, size=(64, 64)))
    content[20:60] = bytes(40)
    assert look(bytes(content)) == (None, "images/a is damaged")


def test_bytes_behind_the_end_do_no_harm(look):
    assert look(picture("jpeg") + bytes(1000)) == (None, None)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "images/a is empty"),
        (b"a web page\n", "images/a is no image (JPEG, PNG, GIF or BMP)"),
        (b"RIFF\x24\0\0\0WEBPVP8 ", "images/a is no image (JPEG, PNG, GIF or BMP)"),
        (None, "images/a: no such file"),
    ],
)
def test_what_is_no_image_needs_no_decoding(look, content, told):
    assert look(content) == (told, told)


def test_a_folder_is_no_image(look, tmp_path):
    (tmp_path / "images" / "a").mkdir()
    assert look(None)[0] == "images/a is a folder"
    (tmp_path / "images" / "b").write_bytes(b"")
    assert look(None, "b/c.jpg")[0] == "images/b/c.jpg cannot be read: Not a directory"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_image_that_may_not_be_read(look, tmp_path):
    (tmp_path / "images" / "a").touch(mode=0)
    assert look(None)[0] == "images/a cannot be read: Permission denied"


def test_paths_are_relative_to_the_folder_of_images_or_to_the_root(tmp_path):
    (tmp_path / "a.png").write_bytes(picture())
    images = Images({"root": str(tmp_path)})
    assert images.place("a.png") == str(tmp_path / "a.png")
    assert images.wrong("a.png") is None
    assert images.wrong("b.png") == "b.png: no such file"
    assert Images({"root": "/data", "images": "/photos"}).place("a.png") == "/photos/a.png"
    assert images.wrong(str(tmp_path / "a.png")) is None


def test_an_image_is_looked_at_once(tmp_path, monkeypatch):
    (tmp_path / "a.png").write_bytes(picture())
    images = Images({"root": str(tmp_path)})
    assert images.wrong("a.png") is None
    (tmp_path / "a.png").unlink()
    assert images.wrong("a.png") is None


def test_an_image_that_went_away_is_named(tmp_path):
    with pytest.raises(Broken, match="the image cannot be read: No such file") as caught:
        Images({"root": str(tmp_path)}).content("a.png")
    assert caught.value.problem.file == str(tmp_path / "a.png")
