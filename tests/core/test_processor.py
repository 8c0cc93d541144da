"""Features of made-up processors."""

import pytest

from regard.core import processor


def test_features(monkeypatch, tmp_path):
    file = tmp_path / "cpuinfo"
    monkeypatch.setattr(processor, "Path", lambda _: file)
    assert processor.read_features() == set()
    file.write_text("processor : 0\n")
    assert processor.read_features() == set()
    file.write_text("processor : 0\nflags\t\t: fpu avx2 avx512_bf16\nflags : other\n")
    assert processor.read_features() == {"fpu", "avx2", "avx512_bf16"}


@pytest.mark.parametrize(
    ("precision", "features", "is_slow"),
    [
        ("mixed_bfloat16", {"avx2"}, True),
        ("mixed_bfloat16", {"avx2", "avx512_bf16"}, False),
        ("mixed_bfloat16", {"avx2", "amx_bf16"}, False),
        ("mixed_bfloat16", set(), False),  # unknown
        ("float32", {"avx2"}, False),
        ("auto", {"avx2"}, False),
    ],
)
def test_bfloat16_is_slow_without_instructions_for_it(precision, features, is_slow):
    text = processor.describe_slow_precision(precision, features)
    assert bool(text) == is_slow
    assert not is_slow or text.startswith("training.precision: ")
