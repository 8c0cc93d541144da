"""Each check with made-up facts."""

from pathlib import Path

import pytest

from regard.pipeline.doctor import checks
from regard.pipeline.doctor.machine import GIB


@pytest.mark.parametrize(
    ("libc", "way", "status", "words"),
    [
        ((2, 36), "lock", "ok", "glibc 2.36: requirements/lock.txt"),
        ((2, 41), "index", "ok", "glibc 2.41: package index"),
        (None, "none", "fail", "no glibc"),
    ],
)
def test_way(libc, way, status, words):
    check = checks.check_way(libc, way)
    assert check.status == status
    assert words in check.detail


@pytest.mark.parametrize(
    ("version", "way", "status"),
    [
        ((3, 9, 18), "index", "fail"),
        ((3, 10, 0), "index", "ok"),
        ((3, 13, 5), "index", "ok"),
        ((3, 14, 0), "index", "fail"),
        ((3, 11, 7), "lock", "ok"),
        ((3, 12, 1), "lock", "fail"),
    ],
)
def test_python(version, way, status):
    assert checks.check_python(version, way).status == status


def test_package_of_the_tested_version():
    assert checks.check_package("tfx", "1.21.0", "lock").status == "ok"


def test_missing_package_fails_with_a_remedy():
    check = checks.check_package("tfx", None, "lock")
    assert check.status == "fail"
    assert "make install" in check.remedy


def test_untested_version_is_a_warning_with_the_tested_one():
    check = checks.check_package("tensorflow", "2.22.0", "index")
    assert check.status == "warn"
    assert "tensorflow==2.21.0" in check.remedy


def test_minor_versions_of_stable_packages_may_differ():
    assert checks.check_package("numpy", "2.2.6", "index").status == "ok"
    assert checks.check_package("numpy", "1.26.4", "index").status == "warn"


def test_ml_metadata_differs_between_lock_and_index():
    assert checks.check_package("ml-metadata", "1.17.1", "lock").status == "ok"
    assert checks.check_package("ml-metadata", "1.21.0", "index").status == "ok"
    assert checks.check_package("ml-metadata", "1.17.1", "index").status == "warn"


def test_shim():
    assert checks.check_shim("1.21.0").status == "ok"
    assert checks.check_shim(None).status == "fail"


def test_compiler_remedy_lists_only_missing_packages():
    assert checks.check_compiler("/usr/bin/g++", True).status == "ok"
    check = checks.check_compiler(None, True)
    assert check.status == "fail"
    assert check.remedy.endswith("apt-get install g++")
    assert checks.check_compiler(None, False).remedy.endswith("g++ python3-dev")


def test_cores_and_memory():
    assert checks.check_cores(1).status == "warn"
    assert checks.check_cores(2).status == "ok"
    assert checks.check_memory(16 * GIB, 8 * GIB).status == "ok"
    assert checks.check_memory(16 * GIB, 1 * GIB).status == "warn"
    assert checks.check_memory(0, 0).detail == "unknown"


def test_processor():
    assert checks.check_cpu({"sse2"}).status == "fail"
    assert checks.check_cpu({"avx"}).status == "warn"
    assert checks.check_cpu({"avx", "avx2"}).detail == "AVX2"
    assert "bfloat16" in checks.check_cpu({"avx", "avx2", "avx512_bf16"}).detail
    assert checks.check_cpu(set()).status == "ok"  # some systems have no /proc/cpuinfo


@pytest.mark.parametrize(("free", "status"), [(9, "ok"), (3, "warn"), (0.2, "fail")])
def test_disk(free, status):
    assert checks.check_disk(Path("workspace"), int(free * GIB)).status == status


def test_missing_home_is_checked_by_its_parent(tmp_path):
    assert checks.check_home(tmp_path / "new" / "workspace").status == "ok"
    assert list(tmp_path.iterdir()) == []


def test_unwritable_home(tmp_path, monkeypatch):
    def refuse(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(checks.tempfile, "NamedTemporaryFile", refuse)
    check = checks.check_home(tmp_path)
    assert check.status == "fail"
    assert "Permission denied" in check.detail


def test_data(tmp_path):
    assert checks.check_data(None).status == "ok"
    assert checks.check_data(str(tmp_path)).status == "ok"
    assert checks.check_data(str(tmp_path / "gone")).status == "warn"


def test_environment_variables_that_break_a_run():
    results = checks.check_environment({"KERAS_BACKEND": "jax", "TF_USE_LEGACY_KERAS": "1"})
    assert [check.name for check in results if check.status == "fail"] == [
        "KERAS_BACKEND",
        "TF_USE_LEGACY_KERAS",
    ]
    assert all(check.status != "fail" for check in checks.check_environment({}))
