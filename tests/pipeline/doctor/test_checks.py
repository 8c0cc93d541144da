"""Each check with made-up facts."""

from pathlib import Path

import pytest

from regard.pipeline.doctor import checks
from regard.pipeline.doctor.machine import GIB


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (((2, 36), "lock", "1.21.0"), "ok", "glibc 2.36: requirements/lock.txt"),
        (((2, 41), "index", None), "ok", "glibc 2.41: package index"),
        ((None, "none", None), "fail", "no glibc"),
        (((2, 36), "lock", None), "fail", "tfx-bsl-sql-util is not installed"),
    ],
)
def test_installation(arguments, status, words):
    check = checks.check_installation(*arguments)
    assert check.status == status
    assert words in check.detail


@pytest.mark.parametrize(
    ("version", "status"),
    [((3, 9, 18), "fail"), ((3, 10, 0), "ok"), ((3, 13, 5), "ok"), ((3, 14, 0), "fail")],
)
def test_python(version, status):
    assert checks.check_python(version).status == status


def test_packages(monkeypatch):
    versions = {"tfx": "1.21.0", "numpy": "1.25.0"}
    monkeypatch.setattr(checks, "installed_version", versions.get)
    lines = ["tfx<1.22,>=1.21", "numpy>=1.26", "keras<4", 'torch>=2.6; extra == "bench"']
    summary, numpy, keras = checks.check_packages(lines)
    assert (summary.status, summary.detail) == ("ok", "1 of 3 packages have a supported version")
    assert (numpy.name, numpy.status) == ("numpy", "warn")
    assert 'pip install "numpy>=1.26"' in numpy.remedy
    assert (keras.name, keras.status, keras.remedy) == ("keras", "fail", "Run: make install")


def test_memory():
    assert checks.check_memory(16 * GIB, 8 * GIB).status == "ok"
    assert checks.check_memory(16 * GIB, 1 * GIB).status == "warn"
    assert checks.check_memory(0, 0).detail == "unknown"


@pytest.mark.parametrize(
    ("flags", "status", "detail"),
    [
        ({"sse2"}, "fail", "no AVX"),
        ({"avx"}, "warn", "no AVX2"),
        ({"avx", "avx2"}, "ok", "mixed_bfloat16 is slower"),
        ({"avx", "avx2", "avx512_bf16"}, "ok", "mixed_bfloat16 is faster"),
        ({"avx", "avx2", "amx_bf16"}, "ok", "mixed_bfloat16 is faster"),
        (set(), "ok", "2 cores"),  # some systems have no /proc/cpuinfo
    ],
)
def test_processor(flags, status, detail):
    check = checks.check_processor(2, flags)
    assert check.status == status
    assert detail in check.detail


@pytest.mark.parametrize(("free", "status"), [(9, "ok"), (3, "warn"), (0.2, "fail")])
def test_free_space_of_the_home(tmp_path, free, status):
    assert checks.check_home(tmp_path / "new" / "home", int(free * GIB)).status == status
    assert list(tmp_path.iterdir()) == []


def test_unwritable_home(monkeypatch):
    monkeypatch.setattr(checks, "is_writable", lambda _: False)
    check = checks.check_home(Path("home"), 9 * GIB)
    assert (check.status, check.detail) == ("fail", "home is not writable")


def test_environment_variables_that_break_a_run(tmp_path):
    environ = {"KERAS_BACKEND": "jax", "TF_USE_LEGACY_KERAS": "1"}
    results = checks.check_environment({**environ, "REGARD_DATA": str(tmp_path / "gone")})
    assert [(check.name, check.status) for check in results if check.name != "encoding"] == [
        ("KERAS_BACKEND", "fail"),
        ("TF_USE_LEGACY_KERAS", "fail"),
        ("REGARD_DATA", "warn"),
    ]
    results = checks.check_environment({"REGARD_DATA": str(tmp_path)})
    assert [check for check in results if check.name != "encoding"] == []
