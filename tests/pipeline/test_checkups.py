"""Each case of each examination, with made-up facts."""

from pathlib import Path

import pytest

from pipeline import checkups
from pipeline.machine import GIB


@pytest.mark.parametrize(
    ("libc", "way", "status", "words"),
    [
        ((2, 36), "lock", "ok", "glibc 2.36: from requirements/lock.txt"),
        ((2, 41), "index", "ok", "glibc 2.41: from the index"),
        (None, "none", "fail", "no glibc"),
    ],
)
def test_way(libc, way, status, words):
    check = checkups.check_way(libc, way)
    assert check.status == status
    assert words in check.found


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
    assert checkups.check_python(version, way).status == status


def test_package_at_the_known_good_release():
    assert checkups.check_package("tfx", "1.21.0", "lock").status == "ok"


def test_missing_package_fails_with_a_remedy():
    check = checkups.check_package("tfx", None, "lock")
    assert check.status == "fail"
    assert "make install" in check.remedy


def test_other_release_series_warns_and_names_the_known_good_one():
    check = checkups.check_package("tensorflow", "2.22.0", "index")
    assert check.status == "warn"
    assert "tensorflow==2.21.0" in check.remedy


def test_steady_packages_may_differ_in_the_minor_release():
    assert checkups.check_package("numpy", "2.2.6", "index").status == "ok"
    assert checkups.check_package("numpy", "1.26.4", "index").status == "warn"


def test_ml_metadata_differs_between_the_two_ways():
    assert checkups.check_package("ml-metadata", "1.17.1", "lock").status == "ok"
    assert checkups.check_package("ml-metadata", "1.21.0", "index").status == "ok"
    assert checkups.check_package("ml-metadata", "1.17.1", "index").status == "warn"


def test_shim():
    assert checkups.check_shim("1.21.0").status == "ok"
    assert checkups.check_shim(None).status == "fail"


def test_compiler_names_only_what_is_missing():
    assert checkups.check_compiler("/usr/bin/g++", True).status == "ok"
    check = checkups.check_compiler(None, True)
    assert check.status == "fail"
    assert check.remedy.endswith("apt-get install g++")
    assert checkups.check_compiler(None, False).remedy.endswith("g++ python3-dev")


def test_cores_and_memory():
    assert checkups.check_cores(1).status == "warn"
    assert checkups.check_cores(2).status == "ok"
    assert checkups.check_memory(16 * GIB, 8 * GIB).status == "ok"
    assert checkups.check_memory(16 * GIB, 1 * GIB).status == "warn"
    assert checkups.check_memory(0, 0).found == "unknown"


def test_processor():
    assert checkups.check_cpu({"sse2"}).status == "fail"
    assert checkups.check_cpu({"avx"}).status == "warn"
    assert checkups.check_cpu({"avx", "avx2"}).found == "AVX2"
    assert "bfloat16" in checkups.check_cpu({"avx", "avx2", "avx512_bf16"}).found
    assert checkups.check_cpu(set()).status == "ok"  # /proc/cpuinfo tells nothing everywhere


@pytest.mark.parametrize(("free", "status"), [(9, "ok"), (3, "warn"), (0.2, "fail")])
def test_disk(free, status):
    assert checkups.check_disk(Path("workspace"), int(free * GIB)).status == status


def test_home_that_is_not_there_yet_is_judged_by_its_parent(tmp_path):
    assert checkups.check_home(tmp_path / "new" / "workspace").status == "ok"
    assert list(tmp_path.iterdir()) == []


def test_home_that_cannot_be_written(tmp_path, monkeypatch):
    def refuse(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(checkups.tempfile, "NamedTemporaryFile", refuse)
    check = checkups.check_home(tmp_path)
    assert check.status == "fail"
    assert "Permission denied" in check.found


def test_data(tmp_path):
    assert checkups.check_data(None).status == "ok"
    assert checkups.check_data(str(tmp_path)).status == "ok"
    assert checkups.check_data(str(tmp_path / "gone")).status == "warn"


def test_environment_names_the_settings_that_break_a_run():
    found = checkups.check_environment({"KERAS_BACKEND": "jax", "TF_USE_LEGACY_KERAS": "1"})
    assert [check.name for check in found if check.status == "fail"] == [
        "KERAS_BACKEND",
        "TF_USE_LEGACY_KERAS",
    ]
    assert all(check.status != "fail" for check in checkups.check_environment({}))
