"""Features of the processor, and the number formats that it computes fast.

It uses only the standard library.
"""

from pathlib import Path

# Features with products of bfloat16, as the kernel names them.
_BFLOAT16 = frozenset({"avx512_bf16", "amx_bf16"})


def read_features() -> set[str]:
    """Return the features as the kernel names them, such as ``avx512_bf16``; none if unknown."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    for line in text.splitlines():
        if line.startswith("flags"):
            return set(line.partition(":")[2].split())
    return set()


def has_fast_bfloat16(features: set[str]) -> bool:
    """Return whether products of bfloat16 are faster than those of float32."""
    return bool(features & _BFLOAT16)


def describe_slow_precision(precision: str, features: set[str]) -> str:
    """Explain that a precision is slower than float32 on a processor.

    Args:
        precision: ``training.precision``.
        features: the features of the processor.

    Returns:
        An empty text if it is not slower, or if the features are unknown.
    """
    if precision != "mixed_bfloat16" or not features or has_fast_bfloat16(features):
        return ""
    return (
        f"training.precision: {precision} is slower than float32 on this processor, which has"
        " neither AVX512-BF16 nor AMX. Use auto or float32, or train on a GPU."
    )
