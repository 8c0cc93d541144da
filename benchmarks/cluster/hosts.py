"""Hosts of a cluster on one machine: network namespaces on a bridge, each with its own loopback.

Only root can make them. Everyone else gets hosts that share the loopback interface.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

_BRIDGE = "regard-hosts"
_NETWORK = "10.231.7"


@dataclass
class Host:
    """A host, and the processes that this module started on it.

    Attributes:
        name: the name of the network namespace; empty: none.
        address: under which other hosts reach it.
    """

    name: str
    address: str
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(
        self,
        name: str,
        command: Sequence[str | os.PathLike[str]],
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start a process in a session of its own; its output is appended to a file."""
        prefix = ["ip", "netns", "exec", self.name] if self.name else []
        with log.open("ab") as output:
            self.processes[name] = subprocess.Popen(
                [*prefix, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )

    def kill(self, name: str) -> None:
        """Kill a process with SIGKILL, but not its children."""
        self.processes.pop(name).kill()

    def children(self, text: str) -> list[psutil.Process]:
        """The processes below those of this host whose command line contains a text."""
        matches = []
        for process in self.processes.values():
            with contextlib.suppress(psutil.Error):
                parent = psutil.Process(process.pid)
                for child in (parent, *parent.children(recursive=True)):
                    with contextlib.suppress(psutil.Error):
                        if text in " ".join(child.cmdline()):
                            matches.append(child)
        return matches

    def stop(self) -> None:
        """End all processes: first with SIGTERM, then with SIGKILL."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            for process in self.processes.values():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
            deadline = time.monotonic() + 10
            for process in self.processes.values():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.1, deadline - time.monotonic()))
        self.processes.clear()


@contextlib.contextmanager
def hosts(count: int) -> Iterator[tuple[Host, list[Host]]]:
    """Yield the main host, which is this machine, and other ones; their processes end with it."""
    isolated = os.geteuid() == 0 and shutil.which("ip") is not None
    with contextlib.ExitStack() as stack:
        if isolated:
            main = Host("", f"{_NETWORK}.1")
            stack.enter_context(_bridge(main.address))
            others = [stack.enter_context(_namespace(10 + number)) for number in range(count)]
        else:
            main = Host("", "127.0.0.1")
            others = [Host("", "127.0.0.1") for _ in range(count)]
        for host in (main, *others):
            stack.callback(host.stop)
        yield main, others


def wait_for(condition: Callable[[], object], what: str, seconds: float = 120) -> None:
    """Wait until a function returns something true; ``OSError`` counts as false."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if condition():
                return
        time.sleep(0.05)
    raise TimeoutError(f"{what}: not after {seconds:.0f} s")


@contextlib.contextmanager
def _bridge(address: str) -> Iterator[None]:
    _remove("link", _BRIDGE)
    _ip("link", "add", _BRIDGE, "type", "bridge")
    try:
        _ip("address", "add", f"{address}/24", "dev", _BRIDGE)
        _ip("link", "set", _BRIDGE, "up")
        yield
    finally:
        _remove("link", _BRIDGE)


@contextlib.contextmanager
def _namespace(number: int) -> Iterator[Host]:
    host = Host(f"{_BRIDGE}-{number}", f"{_NETWORK}.{number}")
    inside, link = ("-n", host.name), f"rgd{number}"
    _remove("netns", host.name)
    _remove("link", link)  # a process of a killed run can hold the namespace
    _ip("netns", "add", host.name)
    try:
        _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", host.name)
        _ip("link", "set", link, "master", _BRIDGE, "up")
        _ip(*inside, "address", "add", f"{host.address}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _ip(*inside, "link", "set", device, "up")
        yield host
    finally:
        _remove("netns", host.name)
        _remove("link", link)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def _remove(kind: str, name: str) -> None:
    """Remove a link or a network namespace if it exists."""
    subprocess.run(["ip", kind, "delete", name], check=False, capture_output=True)
