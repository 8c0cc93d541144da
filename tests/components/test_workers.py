"""What Beam's workers import: not all of TFX, which takes each of them seconds and memory."""

import subprocess
import sys

MODULES = (
    "components.corpus_gen.passes",
    "components.example_validator.scan",
    "components.tokenizer_trainer.sampling",
    "components.preprocess.transforming",
    "components.predictor.asking",
)


def test_a_worker_imports_no_tfx():
    code = f"import sys, {', '.join(MODULES)}\nprint([m for m in sys.modules if m[:4] == 'tfx.'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
