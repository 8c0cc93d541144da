from __future__ import annotations

import io

import pytest
from PIL import Image

from components.reporter import images


def config(folder):
    return {"data": {"root": str(folder)}}


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "L", "CMYK"])
def test_images_become_small(tmp_path, mode):
    kind = "JPEG" if mode == "CMYK" else "PNG"
    Image.new(mode, (1200, 600)).save(tmp_path / "a", kind)
    with Image.open(io.BytesIO(images.jpeg("a", config(tmp_path)))) as found:
        assert found.size == (480, 240)
    assert images.address("a", config(tmp_path)).startswith("data:image/jpeg;base64,")


def test_what_is_no_image_is_left_out(tmp_path):
    (tmp_path / "text").write_text("no image")
    (tmp_path / "cut").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    (tmp_path / "folder").mkdir()
    for name in ("text", "cut", "folder", "gone"):
        assert images.address(name, config(tmp_path)) is None


def test_an_image_that_would_fill_the_memory_is_left_out(tmp_path, monkeypatch):
    Image.new("1", (4000, 4000)).save(tmp_path / "a.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    assert images.address("a.png", config(tmp_path)) is None
