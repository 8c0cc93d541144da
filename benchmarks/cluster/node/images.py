"""The images of the cluster: archives that containerd imports."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from benchmarks.cluster import image
from benchmarks.cluster.kubernetes_api import compile_programs
from benchmarks.cluster.node.kubelet import PAUSE

# The same image twice, with different labels, for an update to another image.
REGARD = ("docker.io/library/regard:0.1.0", "docker.io/library/regard:0.1.1")
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
        folder: gets the programs, and ``images`` with an archive of each image.
    """
    source = compile_programs(folder, PROGRAMS)
    archives = folder / "images"
    archives.mkdir(exist_ok=True)
    store = image.Store(folder / "image")
    if not (archives / "pause.tar").exists():
        _build_pause(source, store, archives / "pause.tar")
    if not (archives / "regard.tar").exists():
        image.build(store)
        export_regard(store, archives / "regard.tar")


def archives(folder: Path) -> list[Path]:
    """Return the archives that `build` has written."""
    return [folder / "images" / name for name in ("pause.tar", "regard.tar")]


def find_missing(folder: Path) -> list[str]:
    """Return what `build` has not built."""
    paths = [*(folder / name for name in PROGRAMS), *archives(folder)]
    return [str(path) for path in paths if not path.exists()]


def _build_pause(source: Path, store: image.Store, archive: Path) -> None:
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
    store.buildah("push", "--quiet", PAUSE, f"docker-archive:{archive}:{PAUSE}")
    shutil.rmtree(root)


def export_regard(store: image.Store, archive: Path) -> None:
    """Write Regard's image and a second one with the same layers to an archive."""
    layout = archive.with_suffix(".oci")
    shutil.rmtree(layout, ignore_errors=True)
    for name in REGARD:
        container = store.buildah("from", "--pull-never", image.TAG)
        version = name.rpartition(":")[2]
        store.buildah("config", f"--label=org.opencontainers.image.version={version}", container)
        store.buildah("commit", "--quiet", "--rm", container, name)
        store.buildah("push", "--quiet", name, f"oci:{layout}:{name}")
    subprocess.run(["tar", "-C", str(layout), "-cf", str(archive), "."], check=True)
    shutil.rmtree(layout)
