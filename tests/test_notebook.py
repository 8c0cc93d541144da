"""The code of the notebook docs/attention_layers.ipynb runs."""

import base64
import json
from pathlib import Path

import matplotlib
import numpy as np
import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"


@pytest.fixture
def namespace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: None)
    matplotlib.use("Agg")
    return {"__name__": "__main__"}


def test_the_decoders_of_the_notebook_learn_to_reverse(namespace):
    cells = json.loads((DOCS / "attention_layers.ipynb").read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    for each in (text for text in code if "class " in text):
        assert len(each.splitlines()) <= 31  # "about thirty lines"
    for each in code:
        exec(each, namespace)
    assert set(namespace["accuracies"]) == {"Bahdanau", "Luong"}
    assert min(namespace["accuracies"].values()) > 0.95
    _, alignment = namespace["reverse"](namespace["models"]["Luong"], namespace["row"])
    np.testing.assert_array_equal(np.argmax(alignment[0, :6], axis=-1), np.arange(6)[::-1])


def test_the_notebook_is_committed_with_its_outputs():
    cells = json.loads((DOCS / "attention_layers.ipynb").read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output["output_type"] == "error"]
    (image,) = (output["data"]["image/png"] for output in outputs if "data" in output)
    assert 1_000 < len(base64.b64decode(image)) < 50_000
