"""The commands of docs/how-to/captioning.md, on small files in the formats of Flickr8k and COCO."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from regard.components.data.cell_values import CellParser
from regard.pipeline import config

PAGE = Path(__file__).resolve().parent.parent / "docs/how-to/captioning.md"
EXPECTED = [
    {"image": "1_a.jpg", "caption": ["A dog , running .", "Two dogs, one \u201cred\u201d"]},
    {"image": "2_b.jpg", "caption": ["A child"]},
]
PAIRS = [(one["image"], text) for one in EXPECTED for text in one["caption"]]
COCO = {
    "images": [{"id": 7, "file_name": "1_a.jpg"}, {"id": 3, "file_name": "2_b.jpg"}],
    "annotations": [
        {"id": i, "image_id": 7 if name == "1_a.jpg" else 3, "caption": f"{text}\n"}
        for i, (name, text) in enumerate(PAIRS)
    ],
}
FILES = {
    "Flickr8k.token.txt": "".join(f"{name}#{i}\t{text}\n" for i, (name, text) in enumerate(PAIRS)),
    "captions.txt": "image,caption\n" + "".join(f'{name},"{text}"\n' for name, text in PAIRS),
    "captions_val2017.json": json.dumps(COCO),
}


def block(language):
    text = PAGE.read_text(encoding="utf-8")
    return re.search(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1]


@pytest.mark.parametrize("name", FILES)
def test_the_script_reads_the_annotations(name, tmp_path):
    (tmp_path / "captions.py").write_text(block("python"), encoding="utf-8")
    (tmp_path / name).write_text(FILES[name], encoding="utf-8")
    command = [sys.executable, "captions.py", name]
    output = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True).stdout
    rows = [json.loads(line) for line in output.decode("utf-8").splitlines()]
    assert rows == EXPECTED
    (tmp_path / "captioning.yaml").write_text(block("yaml"), encoding="utf-8")
    features = config.load(tmp_path / "captioning.yaml").features[:2]
    assert CellParser(features)([rows[0]["image"], rows[0]["caption"]])[1] == rows[0]["caption"]
