"""The numeric tests on emulated processors, each in a process of its own."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = ["attention", "decoders", "encoders", "layers", "search", "test_layers.py"]
LAYERS = [f"tests/models/{name}" for name in LAYERS]
# TensorFlow lets oneDNN multiply bfloat16 if the processor has AVX-512, whatever the variable says,
# and crashes if the variable forbids AVX-512. Tests with both 16-bit formats have "precision" in
# their names.
LAYERS_IN_FLOAT32 = [*LAYERS, "-k", "not bfloat16 and not precision"]
CONVERSION = ["tests/serving/export/test_ctranslate2.py"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the variables are for x86-64"),
]


@pytest.mark.parametrize(
    ("variables", "selection"),
    [
        ({"ONEDNN_MAX_CPU_ISA": "SSE41"}, LAYERS_IN_FLOAT32),
        ({"ONEDNN_MAX_CPU_ISA": "AVX2"}, LAYERS_IN_FLOAT32),
        ({"TF_ENABLE_ONEDNN_OPTS": "0"}, LAYERS),
        # CTranslate2 uses oneDNN on AMD's processors and MKL on Intel's.
        ({"CT2_USE_MKL": "0", "ONEDNN_MAX_CPU_ISA": "SSE41"}, CONVERSION),
        ({"CT2_USE_MKL": "0", "ONEDNN_MAX_CPU_ISA": "AVX2"}, CONVERSION),
        ({"CT2_USE_MKL": "1"}, CONVERSION),
        ({"CT2_FORCE_CPU_ISA": "GENERIC"}, CONVERSION),
        ({"CT2_FORCE_CPU_ISA": "AVX"}, CONVERSION),
    ],
    ids=str,
)
def test_numeric_tests_pass(variables, selection):
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
    completed = subprocess.run(
        [*command, *selection],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout[-4000:] + completed.stderr[:4000]
