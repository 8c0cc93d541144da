"""What is measured of processes and folders at one moment, and the file of all measurements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SAMPLES = "samples.jsonl"


def read_samples(folder: Path) -> list[dict[str, Any]]:
    """Return the complete measurements of a folder; a killed program may leave a partial line."""
    path = folder / SAMPLES
    if not path.is_file():
        return []
    samples = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            samples.append(json.loads(line))
        except ValueError:
            continue
    return samples


def append_sample(folder: Path, sample: dict[str, Any]) -> None:
    """Add a measurement on a line of its own, also after a partial one."""
    path = folder / SAMPLES
    data = path.read_bytes() if path.is_file() else b""
    begin = "" if not data or data.endswith(b"\n") else "\n"
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{begin}{json.dumps(sample)}\n")


def measure_process(process: int) -> dict[str, int]:
    """Return the resident memory in bytes, open descriptors and threads; empty if it has ended."""
    folder = Path("/proc", str(process))
    try:
        status = (folder / "status").read_text(encoding="ascii", errors="replace")
        descriptors = len(list((folder / "fd").iterdir()))
    except OSError:
        return {}
    values = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    if "VmRSS" not in values:
        return {}  # a zombie
    return {
        "memory": int(values["VmRSS"].split()[0]) * 1024,
        "descriptors": descriptors,
        "threads": int(values["Threads"]),
    }


def measure_folder(folder: Path) -> dict[str, int]:
    """Return the size in bytes, and the numbers of files and entries at the top of a folder."""
    size = files = 0
    for path in folder.rglob("*"):
        try:
            status = path.lstat()
        except OSError:  # removed meanwhile
            continue
        size += status.st_blocks * 512
        files += not path.is_dir()
    top = len(list(folder.iterdir())) if folder.is_dir() else 0
    return {"size": size, "files": files, "entries": top}
