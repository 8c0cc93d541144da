"""CorpusGen with images and several references."""

from __future__ import annotations

from tests.components.corpora import CAPTIONED, picture, table, write_files


def test_all_captions_of_an_image_are_in_one_split(tmp_path, generate):
    captions = {f"{i}.png": [f"caption {j} of {i}" for j in range(3)] for i in range(40)}
    write_files(tmp_path, {f"photos/{i}.png": picture(shade=i) for i in range(40)})
    rows = [(name, texts[j]) for j in range(3) for name, texts in captions.items()]
    (tmp_path / "captions.tsv").write_text(table(*rows))
    section = {"train": "captions.tsv", "images": "photos", "split": {"eval": 0.2, "test": 0.2}}
    out = generate(features=CAPTIONED, **section)
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
    assert captions_by_image == captions
    assert min(out.findings["rows"].values()) > 2
