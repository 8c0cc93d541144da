"""The control plane of the cluster, on a machine: etcd and the programs of Kubernetes."""

from __future__ import annotations

import json
import secrets
import subprocess
import time
from pathlib import Path

from benchmarks.cluster.kubernetes_api import ApiServer
from benchmarks.cluster.node.machine import Machine

SERVICES = "10.96.0.0/16"
_PORT = 6443
_START_SECONDS = 180
# Each client of the API server has its own user; the roles are Kubernetes' own.
_USERS = {
    "admin": ("admin", "system:masters"),
    "kube-controller-manager": ("system:kube-controller-manager", ""),
    "kube-scheduler": ("system:kube-scheduler", ""),
    "kube-proxy": ("system:kube-proxy", ""),
}


def start(machine: Machine, programs: Path, nodes: list[str]) -> ApiServer:
    """Start the control plane, and wait until it is ready.

    Args:
        machine: where it runs; gets ``NAME.kubeconfig`` for each user and node in its folder.
        programs: the folder of the programs.
        nodes: the names of the nodes, which are users, too.

    Raises:
        RuntimeError: a program ends, or is not ready in time.
    """
    _write_users(machine, {**_USERS, **{n: (f"system:node:{n}", "system:nodes") for n in nodes}})
    key = machine.folder / "service-account.key"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    machine.start(
        "etcd",
        "etcd",
        f"--data-dir={machine.folder / 'etcd'}",
        "--unsafe-no-fsync",
    )
    certificates = machine.folder / "certificates"
    machine.start(
        "kube-apiserver",
        programs / "kube-apiserver",
        "--etcd-servers=http://127.0.0.1:2379",
        "--bind-address=0.0.0.0",
        f"--advertise-address={machine.address}",
        f"--secure-port={_PORT}",
        f"--cert-dir={certificates}",
        f"--token-auth-file={machine.folder / 'tokens.csv'}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--kubelet-preferred-address-types=InternalIP",
        f"--service-cluster-ip-range={SERVICES}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
    )
    server = ApiServer(programs, machine.folder / "admin.kubeconfig", machine.enter())
    _wait_until_ready(server, machine)
    machine.start(
        "kube-controller-manager",
        programs / "kube-controller-manager",
        f"--kubeconfig={machine.folder / 'kube-controller-manager.kubeconfig'}",
        "--use-service-account-credentials",
        f"--service-account-private-key-file={key}",
        f"--root-ca-file={certificates / 'apiserver.crt'}",
        "--leader-elect=false",
        f"--flex-volume-plugin-dir={machine.folder / 'plugins'}",
    )
    machine.start(
        "kube-scheduler",
        programs / "kube-scheduler",
        f"--kubeconfig={machine.folder / 'kube-scheduler.kubeconfig'}",
        "--leader-elect=false",
    )
    return server


def _write_users(machine: Machine, users: dict[str, tuple[str, str]]) -> None:
    lines = []
    for name, (user, group) in users.items():
        token = secrets.token_hex(16)
        lines.append(f"{token},{user},{name},{group}\n")
        _write_kubeconfig(machine, name, token)
    path = machine.folder / "tokens.csv"
    path.touch(mode=0o600)
    path.write_text("".join(lines))


def _write_kubeconfig(machine: Machine, name: str, token: str) -> None:
    cluster = {"server": f"https://{machine.address}:{_PORT}", "insecure-skip-tls-verify": True}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": name}}],
        "current-context": "local",
    }
    path = machine.folder / f"{name}.kubeconfig"
    path.touch(mode=0o600)
    path.write_text(json.dumps(config))


def _wait_until_ready(server: ApiServer, machine: Machine) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end:
        machine.check()
        ready = server.kubectl("get", "--raw", "/readyz", "--request-timeout=5s")
        # The namespace is created after the server is ready.
        if ready.returncode == 0 and server.kubectl("get", "ns", "default").returncode == 0:
            return
        time.sleep(0.5)
    raise RuntimeError(f"kube-apiserver is not ready:\n{machine.log('kube-apiserver')}")
