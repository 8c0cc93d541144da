"""CorpusGen with images, points and several references."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regard.core.errors import UserError
from tests.components.corpora import CAPTIONED, POINTED, picture, table, write_files

SPLIT = {"eval": 0.2, "test": 0.2}


@pytest.fixture
def section(tmp_path):
    """Forty images with three captions each, far apart in the table."""
    write_files(tmp_path, {f"photos/{i}.png": picture(shade=i) for i in range(40)})
    rows = [(f"{i}.png", f"caption {j} of {i}") for j in range(3) for i in range(40)]
    (tmp_path / "captions.tsv").write_text(table(*rows))
    return {"features": CAPTIONED, "train": "captions.tsv", "images": "photos"}


def test_all_captions_of_an_image_are_in_one_split(generate, section):
    out = generate(**section, split=SPLIT)
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
    assert min(out.findings["rows"].values()) > 2


def test_unusable_images(tmp_path, generate, section):
    """Only the node decodes images; ``test_plan_agreement`` has a missing one."""
    (tmp_path / "photos" / "7.png").write_bytes(picture()[:-20])
    with pytest.raises(UserError) as caught:
        generate(**section)
    assert caught.value.where == f"{tmp_path}/captions.tsv:8"
    message = "photos/7.png is truncated or damaged"
    assert caught.value.message == f"{message} (3 invalid rows in total)"
    out = generate(**section, bad_rows="skip", split=SPLIT)
    assert sum(out.findings["rows"].values()) == 39
    assert out.findings["problems"]["row/skipped"]["examples"][0]["text"] == message


def test_parquet_split_by_points(tmp_path, generate):
    points = [[[0.0, 0.0], [0.0, i % 60], [i % 60, 1.0]] for i in range(120)]
    pq.write_table(
        pa.table({"points": points, "answer": [[2, 1, 0]] * 120}), tmp_path / "a.parquet"
    )
    out = generate(features=POINTED, train="a.parquet", split=SPLIT)
    records = {split: out.records(split) for split in ("train", "eval", "test")}
    distinct = [{tuple(r["points"].float_list.value) for r in rows} for rows in records.values()]
    assert sum(map(len, distinct)) == len(set.union(*distinct)) == 60
    assert sum(map(len, records.values())) == 120
    assert records["train"][0]["answer"].int64_list.value == [2, 1, 0]
