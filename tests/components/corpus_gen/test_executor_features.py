"""CorpusGen with images, numbers, points and several references."""

from __future__ import annotations

import pytest

from regard.components.common.errors import UserError
from tests.components.corpora import CAPTIONED, picture, table


@pytest.fixture
def captions(tmp_path):
    """Forty images with three captions each, far apart in the table."""
    (tmp_path / "photos").mkdir()
    for i in range(40):
        (tmp_path / "photos" / f"{i}.png").write_bytes(picture(shade=i))
    rows = [(f"{i}.png", f"caption {j} of {i}") for j in range(3) for i in range(40)]
    (tmp_path / "captions.tsv").write_text(table(*rows))
    return {"features": CAPTIONED, "train": "captions.tsv", "images": "photos"}


def test_all_captions_of_an_image_are_in_one_split(generate, captions):
    out = generate(**captions, split={"eval": 0.2, "test": 0.2})
    captions_by_image = {}
    for split in ("train", "eval", "test"):
        for feature in out.records(split):
            name = feature["image_file"].bytes_list.value[0].decode()
            assert name not in captions_by_image
            captions_by_image[name] = [
                text.decode() for text in feature["caption"].bytes_list.value
            ]
            shade = int(name.removesuffix(".png"))
            assert feature["image"].bytes_list.value[0] == picture(shade=shade)
            assert feature["line"].int64_list.value[0] == shade + 1
    assert captions_by_image == {
        f"{i}.png": [f"caption {j} of {i}" for j in range(3)] for i in range(40)
    }
    assert sum(out.findings["rows"].values()) == 40
    assert min(out.findings["rows"].values()) > 2


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.unlink(), "photos/7.png: no such file"),
        (
            lambda path: path.write_bytes(path.read_bytes()[:-20]),
            "photos/7.png is truncated or damaged",
        ),
        (lambda path: path.write_text("x"), "photos/7.png is not an image (JPEG, PNG, GIF or BMP)"),
    ],
)
def test_unusable_images(tmp_path, generate, captions, damage, message):
    damage(tmp_path / "photos" / "7.png")
    with pytest.raises(UserError) as caught:
        generate(**captions)
    assert caught.value.where == f"{tmp_path}/captions.tsv:8"
    assert caught.value.message == f"{message} (3 invalid rows in total)"
    out = generate(**captions, bad_rows="skip", split={"eval": 0.2, "test": 0.2})
    assert sum(out.findings["rows"].values()) == 39
    assert out.findings["skipped"] == 3
    assert out.findings["problems"]["row/skip"]["examples"][0]["text"] == message
