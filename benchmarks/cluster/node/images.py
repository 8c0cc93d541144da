"""The programs and images of the cluster."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from benchmarks.cluster import image
from benchmarks.cluster.kubernetes_api import compile_programs
from benchmarks.cluster.node import kubelet
from benchmarks.cluster.node.kubelet import PAUSE
from benchmarks.cluster.node.machine import Machine, machines

# The same image twice, with different labels, for an update to another image.
REGARD = ("registry.example.org/regard:0.1.0", "registry.example.org/regard:0.1.1")
PROGRAMS = (
    "kubelet",
    "kube-apiserver",
    "kubectl",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
)


def build(folder: Path) -> None:
    """Build the programs of Kubernetes and the images.

    Args:
        folder: gets the programs, and the folder ``containerd`` with the images.
    """
    source = compile_programs(folder, PROGRAMS)
    imported = folder / "containerd"
    if imported.exists():
        return
    store = image.Store(folder / "image")
    layout = folder / "layout"
    shutil.rmtree(layout, ignore_errors=True)
    _build_pause(source, store)
    image.build(store)
    _build_versions(store)
    for name in (PAUSE, *REGARD):
        store.buildah("push", "--quiet", "--compression-format=zstd", name, f"oci:{layout}:{name}")
    temporary = folder / "importing"
    shutil.rmtree(temporary, ignore_errors=True)
    with machines(temporary, ["importing"]) as (machine,):
        kubelet.start_containerd(machine)
        tar = subprocess.Popen(["tar", "-C", str(layout), "-c", "."], stdout=subprocess.PIPE)
        kubelet.ctr(machine, "images", "import", "--all-platforms", "-", stdin=tar.stdout)
        if tar.wait() != 0:
            raise RuntimeError("tar failed")
    (temporary / "importing" / "var-lib" / "containerd").rename(imported)
    shutil.rmtree(temporary)
    shutil.rmtree(layout)


def copy(folder: Path, machine: Machine) -> None:
    """Give a machine the images that `build` has imported.

    The layers are never written to, so they are hard links; only databases are copied.

    Args:
        folder: the folder of ``build``, on the same file system as the machine's.
        machine: the machine, before its containerd starts.
    """
    target = machine.folder / "var-lib" / "containerd"
    subprocess.run(["cp", "-al", str(folder / "containerd"), str(target)], check=True)
    for path in target.rglob("*.db"):
        if path.parent.name.startswith("io.containerd."):
            content = path.read_bytes()
            path.unlink()
            path.write_bytes(content)


def find_missing(folder: Path) -> list[str]:
    """Return what `build` has not built."""
    paths = [folder / name for name in (*PROGRAMS, "containerd")]
    return [str(path) for path in paths if not path.exists()]


def _build_pause(source: Path, store: image.Store) -> None:
    """Compile the first process of a pod, which is a single C file."""
    root = store.folder / "pause"
    root.mkdir(parents=True, exist_ok=True)
    code = source / "build" / "pause" / "linux" / "pause.c"
    command = ["gcc", "-Os", "-static", "-DVERSION=3.10", "-o", str(root / "pause"), str(code)]
    subprocess.run(command, check=True)
    container = store.buildah("from", "scratch")
    store.buildah("copy", "--quiet", container, root / "pause", "/pause")
    store.buildah("config", '--entrypoint=["/pause"]', "--user=65535:65535", container)
    store.buildah("commit", "--quiet", "--rm", container, PAUSE)
    shutil.rmtree(root)


def _build_versions(store: image.Store) -> None:
    """Give Regard's image its names; they differ in a label."""
    for name in REGARD:
        container = store.buildah("from", "--pull-never", image.TAG)
        version = name.rpartition(":")[2]
        store.buildah("config", f"--label=org.opencontainers.image.version={version}", container)
        store.buildah("commit", "--quiet", "--rm", container, name)
