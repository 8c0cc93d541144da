"""What Beam's workers import: not all of TFX, which takes each of them seconds and memory."""

import subprocess
import sys

MODULES = (
    "regard.components.corpus_gen.group_conversion",
    "regard.components.example_validator.row_checks",
    "regard.components.tokenizer_trainer.sampling",
    "regard.components.preprocess.transform_graph",
    "regard.components.predictor.decode",
)


def test_a_worker_imports_no_tfx():
    code = f"import sys, {', '.join(MODULES)}\nprint([m for m in sys.modules if m[:4] == 'tfx.'])"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert completed.stdout.strip() == "[]", completed.stderr
