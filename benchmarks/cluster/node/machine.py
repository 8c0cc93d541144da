"""A machine of the cluster: namespaces of its own for processes, mounts and the network.

The first process of the namespaces ends with this one, and its end kills every other process in
them, so that no process, mount or network device remains. Only control groups do; `remove_cgroups`
removes them.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

CGROUPS = Path("/sys/fs/cgroup")
_PREFIX = "regard-node-"
# Of all pods of the clusters of this process, in every hierarchy.
CGROUP = f"{_PREFIX}{os.getpid()}"
_BRIDGE = "machines"
_NETWORK = "10.231.8"
# kubelet sets these for the whole computer, unless they have the expected values. The machine sees
# files with these values instead.
_SETTINGS = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/keys/root_maxbytes": 25_000_000,
}
# Fixed paths that containerd, kubelet and CNI plug-ins write to.
_FOLDERS = ("/var/lib", "/var/log")
_START_SECONDS = 20


class Machine:
    """A machine with one network address.

    Args:
        name: its name, also as a node of the cluster.
        number: the last part of its address.
        folder: for its files and logs.

    Attributes:
        address: the address in the network of the machines.
        pods: the network of its pods, such as ``10.244.11.0/24``.
    """

    def __init__(self, name: str, number: int, folder: Path):
        self.name, self.folder = name, folder
        self.address = f"{_NETWORK}.{number}"
        self.pods = f"10.244.{number}.0/24"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._commands: dict[str, tuple[str | Path, ...]] = {}
        self._unshare: subprocess.Popen[bytes] | None = None
        self.pid = 0  # of the first process in the namespaces

    def open(self) -> None:
        """Create the namespaces."""
        logs, settings = self.folder / "logs", self.folder / "settings"
        for folder in (logs, settings):
            folder.mkdir(parents=True, exist_ok=True)
        script = [
            "set -e",
            "mount --make-rshared /",
            "mount -t tmpfs tmpfs /run",
            "sysctl -q -w net.ipv4.ip_forward=1 net.bridge.bridge-nf-call-iptables=1",
            "ip link set lo up",
        ]
        for target in _FOLDERS:
            source = self.folder / target.removeprefix("/").replace("/", "-")
            source.mkdir(exist_ok=True)
            script.append(shlex.join(["mount", "--bind", str(source), target]))
        for name, value in _SETTINGS.items():
            source = settings / name.replace("/", "-")
            source.write_text(f"{value}\n")
            script.append(shlex.join(["mount", "--bind", str(source), f"/proc/sys/{name}"]))
        # A shell that waits removes the processes whose parents have ended.
        script += [f"echo > {shlex.quote(str(self.folder / 'opened'))}", "sleep infinity & wait"]
        (self.folder / "opened").unlink(missing_ok=True)
        command = ["setpriv", "--pdeathsig=KILL", "unshare", "--mount", "--net", "--pid", "--fork"]
        command += ["--kill-child=KILL", "--mount-proc", "--propagation=private"]
        with (logs / "machine.log").open("w") as log:
            self._unshare = subprocess.Popen(
                [*command, "sh", "-c", "\n".join(script)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        end = time.monotonic() + _START_SECONDS
        while not (self.folder / "opened").exists():
            if self._unshare.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{self.name}: {(logs / 'machine.log').read_text()}")
            time.sleep(0.05)
        children = Path(f"/proc/{self._unshare.pid}/task/{self._unshare.pid}/children")
        self.pid = int(children.read_text().split()[0])

    def close(self) -> None:
        """End all processes in the namespaces, and with them the namespaces."""
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        for process in (*self._processes.values(), self._unshare):
            if process is not None:
                process.wait()
        self._processes.clear()
        self.pid = 0

    def enter(self, *command: str | Path) -> list[str]:
        """Return the command line that runs a command on the machine."""
        namespaces = ["--mount", "--net", "--pid"]
        return ["nsenter", f"--target={self.pid}", *namespaces, "--", *map(str, command)]

    def start(self, name: str, *command: str | Path, environment: Mapping[str, str] = {}) -> None:
        """Start a program that runs until the machine ends; its output is in ``logs/NAME.log``."""
        self._commands[name] = command
        with (self.folder / "logs" / f"{name}.log").open("a") as log:
            self._processes[name] = subprocess.Popen(
                self.enter(*command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **environment},
                start_new_session=True,
            )

    def restart(self, name: str) -> None:
        """Kill a program with SIGKILL, and start it again."""
        process = self._processes[name]
        # nsenter waits for its child, the program.
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for pid in map(int, children):
            os.kill(pid, signal.SIGKILL)
        process.wait()
        self.start(name, *self._commands[name])

    def run(self, *command: str | Path, **options: Any) -> str:
        """Run a command, and return its standard output.

        Raises:
            RuntimeError: the command fails.
        """
        result = subprocess.run(
            self.enter(*command), capture_output=True, text=True, check=False, **options
        )
        if result.returncode != 0:
            text = f"{result.stdout}{result.stderr}".strip()
            raise RuntimeError(f"{self.name}: {shlex.join(map(str, command))}: {text}")
        return result.stdout

    def check(self) -> None:
        """Raise ``RuntimeError`` if a program has ended, with the end of its log."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                raise RuntimeError(f"{name} on {self.name} has ended:\n{self.log(name)}")

    def log(self, name: str, lines: int = 15) -> str:
        """Return the last lines of a program's log."""
        text = (self.folder / "logs" / f"{name}.log").read_text(errors="replace")
        return "\n".join(text.splitlines()[-lines:])


@contextlib.contextmanager
def machines(folder: Path, names: Sequence[str]) -> Iterator[list[Machine]]:
    """Yield machines that reach each other and each other's pods, and nothing else.

    Args:
        folder: gets a folder for each machine.
        names: of the machines; the first one's network has the bridge.
    """
    remove_cgroups()
    opened = [Machine(name, 10 + number, folder / name) for number, name in enumerate(names)]
    with contextlib.ExitStack() as stack:
        stack.callback(remove_cgroups)
        for machine in opened:
            stack.callback(machine.close)
            machine.open()
        switch = opened[0]
        switch.run("ip", "link", "add", _BRIDGE, "type", "bridge")
        switch.run("ip", "address", "add", f"{switch.address}/24", "dev", _BRIDGE)
        switch.run("ip", "link", "set", _BRIDGE, "up")
        for number, machine in enumerate(opened[1:]):
            _connect(switch, machine, f"port{number}")
        for machine in opened:
            # Addresses of services need a route before they are translated.
            device = _BRIDGE if machine is switch else "eth0"
            machine.run("ip", "route", "add", "default", "dev", device)
            for other in opened:
                if other is not machine:
                    machine.run("ip", "route", "add", other.pods, "via", other.address)
        yield opened


def _connect(switch: Machine, machine: Machine, port: str) -> None:
    peer = ["peer", "name", "eth0", "netns", str(machine.pid)]
    switch_side = ["ip", "link", "add", port, "netns", str(switch.pid), "type", "veth", *peer]
    subprocess.run(switch_side, check=True)
    switch.run("ip", "link", "set", port, "master", _BRIDGE, "up")
    machine.run("ip", "address", "add", f"{machine.address}/24", "dev", "eth0")
    machine.run("ip", "link", "set", "eth0", "up")


def make_cgroups(name: str) -> str:
    """Create a control group for a node's pods in each hierarchy, and return its path."""
    path = f"{CGROUP}/{name}"
    for hierarchy in _hierarchies():
        (hierarchy / path).mkdir(parents=True, exist_ok=True)
        if hierarchy.name == "cpuset":
            for file in ("cpuset.cpus", "cpuset.mems"):
                value = (hierarchy / file).read_text()
                for group in (hierarchy / CGROUP, hierarchy / path):
                    (group / file).write_text(value)
    return f"/{path}"


def remove_cgroups() -> None:
    """Remove the control groups of this process and of ended ones, and kill what is in them."""
    for hierarchy in _hierarchies():
        for root in hierarchy.glob(f"{_PREFIX}*"):
            owner = root.name.removeprefix(_PREFIX)
            if root.name == CGROUP or not Path("/proc", owner).exists():
                _remove_cgroup(root)


def _remove_cgroup(root: Path) -> None:
    """Kill the processes in a control group, and remove it; this takes up to ten seconds."""
    for _ in range(100):
        for folder, _, _ in os.walk(root, topdown=False):
            with contextlib.suppress(OSError):
                for pid in Path(folder, "cgroup.procs").read_text().split():
                    os.kill(int(pid), signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        if not root.exists():
            return
        time.sleep(0.1)


def _hierarchies() -> list[Path]:
    """The folders of the hierarchies of cgroup v1, and that of v2 if it is mounted there."""
    return [path for path in CGROUPS.iterdir() if (path / "cgroup.procs").exists()]
