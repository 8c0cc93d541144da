"""Cores within limits, and features of made-up processors."""

import pytest

from regard.core import processor


@pytest.fixture
def cgroups(monkeypatch, tmp_path):
    """Write control groups, and return the number of cores in them; the affinity allows 16."""
    monkeypatch.setattr(processor.os, "sched_getaffinity", lambda _: set(range(16)), raising=False)

    def count(membership, files):
        for name, text in files.items():
            file = tmp_path / "cgroup" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        (tmp_path / "membership").write_text(membership)
        return processor.count_cores(tmp_path / "cgroup", tmp_path / "membership")

    return count


@pytest.mark.parametrize(
    ("membership", "files", "cores"),
    [
        ("0::/\n", {"cpu.max": "200000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "5000 100000\n"}, 1),
        ("0::/\n", {"cpu.max": "max 100000\n"}, 16),
        ("0::/\n", {"cpu.max": "6400000 100000\n"}, 16),
        ("0::/\n", {"cpu.max": "200000\n"}, 16),
        ("0::/\n", {}, 16),
        # A systemd unit and its slice: the lowest limit counts.
        ("0::/a.slice/b.service\n", {"a.slice/b.service/cpu.max": "300000 100000"}, 3),
        (
            "0::/a.slice/b.service\n",
            {"a.slice/b.service/cpu.max": "300000 100000", "a.slice/cpu.max": "200000 100000"},
            2,
        ),
        ("0::/host/path/of/a/container\n", {"cpu.max": "400000 100000"}, 4),
        (
            "4:memory:/x\n2:cpu,cpuacct:/x\n0::/\n",
            {
                "cpu,cpuacct/x/cpu.cfs_quota_us": "250000\n",
                "cpu,cpuacct/x/cpu.cfs_period_us": "100000\n",
                "cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
                "cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            },
            3,
        ),
        ("2:cpuset:/\n", {"cpuset/cpu.cfs_quota_us": "1", "cpuset/cpu.cfs_period_us": "1"}, 16),
        ("", {"cpu.max": "100000 100000"}, 16),
    ],
)
def test_cores_respect_limits(cgroups, membership, files, cores):
    assert cgroups(membership, files) == cores


def test_cores_without_control_groups(monkeypatch, tmp_path):
    monkeypatch.delattr(processor.os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(processor.os, "cpu_count", lambda: None)
    assert processor.count_cores(tmp_path, tmp_path / "missing") == 1


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
