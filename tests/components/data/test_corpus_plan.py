"""Reading of corpora without TensorFlow; ``test_plan_agreement`` compares it with CorpusGen."""

import json
import subprocess
import sys

from regard.components.data.corpus_plan import CorpusPlan, survey_corpus
from tests.components.corpora import CAPTIONED, resolved, write_files


def test_rows_and_progress(tmp_path):
    (tmp_path / "a.tsv").write_text("one\teins\n" * 6000)
    (tmp_path / "b.tsv").write_text("a\tb\n")
    progress = []
    plan = CorpusPlan(resolved(tmp_path, train="a.tsv", eval="a.tsv", test="b.tsv"))
    assert survey_corpus(plan, progress.append).rows == {"train": 6000, "eval": 6000, "test": 1}
    assert progress == ["a.tsv: 4,096 lines"] * 2


def test_images_are_checked_without_tensorflow(tmp_path):
    image = b"\x89PNG\r\n\x1a\n and no more"
    write_files(tmp_path, {"photos/a.png": image, "a.tsv": "a.png\tone\na.png\ttwo\n"})
    files = dict.fromkeys(("train", "eval", "test"), "a.tsv")
    corpus = resolved(tmp_path, CAPTIONED, **files, images="photos")
    code = (
        "import json, sys; from regard.components.data.corpus_plan import *; "
        "plan = CorpusPlan(Corpus.from_json(json.loads(sys.argv[1]))); "
        "print(survey_corpus(plan).rows, {'tensorflow', 'tfx'} & {*sys.modules})"
    )
    command = [sys.executable, "-c", code, json.dumps(corpus.to_json())]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    assert process.stdout == "{'train': 1, 'eval': 1, 'test': 1} set()\n"
