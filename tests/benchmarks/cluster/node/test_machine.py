import os
import shutil
import subprocess
from pathlib import Path

import psutil
import pytest

from benchmarks.cluster.node.machine import CGROUP, CGROUPS, machines, make_cgroups

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0
        or not all(map(shutil.which, ("ip", "nsenter", "setpriv", "unshare")))
        or not (CGROUPS / "memory" / "cgroup.procs").exists(),
        reason="needs root, iproute2, util-linux and cgroup v1",
    ),
]


def remaining_cgroups():
    return [path for path in CGROUPS.iterdir() if (path / CGROUP).exists()]


def test_machines_reach_each_other_and_nothing_else(tmp_path):
    with machines(tmp_path, ["a", "b"]) as (a, b):
        server = "import socket; s = socket.create_server(('', 80)); s.accept()[0].send(b'hello')"
        a.start("server", "python3", "-c", server)
        client = "import socket, sys; print(socket.create_connection((sys.argv[1], 80)).recv(9))"
        command = f"until python3 -c {client!r} {a.address} 2>&1; do sleep 0.1; done"
        assert b"hello" in b.run("timeout", "20", "sh", "-c", command).encode()
        for machine in (a, b):
            addresses = machine.run("ip", "-4", "-oneline", "address").split()
            assert f"{machine.address}/24" in addresses
            assert len([word for word in addresses if "/" in word]) == 2  # and the loopback's


@pytest.mark.parametrize("error", [None, RuntimeError])
def test_nothing_remains_of_machines(tmp_path, error):
    setting = Path("/proc/sys/kernel/panic")
    mounts, value = Path("/proc/self/mounts").read_text(), setting.read_text()
    devices = subprocess.check_output(["ip", "-oneline", "link"])
    pids = []
    try:
        with machines(tmp_path, ["a"]) as (machine,):
            group = make_cgroups("a")
            sleeper = f"sleep 1000 & echo $! > {CGROUPS}/memory{group}/cgroup.procs; wait"
            machine.start("sleeper", "sh", "-c", sleeper)
            machine.run("sh", "-c", "setsid sleep 1000 > /dev/null 2>&1 &")
            machine.run("mount", "-t", "tmpfs", "tmpfs", str(tmp_path / "a" / "settings"))
            assert machine.run("cat", str(setting)) == "10\n"
            pids = psutil.Process(machine.pid).children(recursive=True)
            assert pids
            if error is not None:
                raise error
    except RuntimeError:
        pass
    assert not any(process.is_running() for process in pids)
    assert not remaining_cgroups()
    assert Path("/proc/self/mounts").read_text() == mounts
    assert setting.read_text() == value
    assert subprocess.check_output(["ip", "-oneline", "link"]) == devices


def test_control_groups_of_other_processes_remain_until_these_have_ended(tmp_path):
    with subprocess.Popen(["sleep", "1000"]) as other:
        group = CGROUPS / "pids" / f"regard-node-{other.pid}"
        group.mkdir()
        (group / "cgroup.procs").write_text(str(other.pid))
        with machines(tmp_path / "1", ["a"]):
            pass
        assert group.exists()
        assert other.poll() is None
        other.kill()
    with machines(tmp_path / "2", ["a"]):
        assert not group.exists()
