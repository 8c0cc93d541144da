"""A node of the cluster, on a machine: containerd with CNI plug-ins, kubelet and kube-proxy."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

from benchmarks.cluster.kubernetes_api import ApiServer
from benchmarks.cluster.node.machine import CGROUPS, Machine, make_cgroups

PLUGINS = "/usr/lib/cni"
PAUSE = "regard.invalid/pause:3.10"
_SOCKET = "/run/containerd/containerd.sock"
_START_SECONDS = 120
_CONTAINERD = """version = 2
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause}"
disable_apparmor = true
# Without CAP_SYS_RESOURCE, no process may be protected more than containerd itself.
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{plugins}"
conf_dir = "{network}"
"""


def start(machine: Machine, programs: Path, configs: Path, server: str) -> None:
    """Start containerd, kubelet and kube-proxy.

    Args:
        machine: the node.
        programs: the folder of the programs.
        configs: the folder with the kubeconfigs.
        server: the address of the name server of the pods.

    Raises:
        RuntimeError: a program ends, or is not ready in time.
    """
    start_containerd(machine)
    kubeconfig = configs / f"{machine.name}.kubeconfig"
    machine.start(
        "kubelet",
        programs / "kubelet",
        f"--config={_write(machine, 'kubelet', _kubelet_config(machine, server))}",
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={machine.name}",
        f"--node-ip={machine.address}",
        f"--cert-dir={machine.folder / 'certificates'}",
        f"--root-dir={machine.folder / 'kubelet'}",
    )
    machine.start(
        "kube-proxy",
        programs / "kube-proxy",
        f"--config={_write(machine, 'kube-proxy', _proxy_config(machine, configs))}",
    )


def ctr(machine: Machine, *arguments: str | Path, **options: Any) -> str:
    """Run containerd's client in the namespace of Kubernetes."""
    return machine.run("ctr", "--namespace=k8s.io", *arguments, **options)


def wait_until_ready(api: ApiServer, machines: list[Machine]) -> None:
    """Wait until all nodes are ready.

    Raises:
        RuntimeError: a program has ended, or a node is not ready in time.
    """
    end = time.monotonic() + _START_SECONDS
    nodes = [f"node/{machine.name}" for machine in machines]
    while api.kubectl("wait", "--for=condition=Ready", *nodes, "--timeout=2s").returncode != 0:
        for machine in machines:
            machine.check()
        if time.monotonic() > end:
            logs = "\n".join(machine.log("kubelet") for machine in machines)
            raise RuntimeError(f"{api.kubectl('describe', *nodes).stdout}\n{logs}")
        time.sleep(0.5)


def start_containerd(machine: Machine) -> None:
    """Start containerd, and wait until it is ready."""
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": machine.pods}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    network = machine.folder / "network"
    network.mkdir(exist_ok=True)
    text = json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge]})
    (network / "pods.conflist").write_text(text)
    config = machine.folder / "containerd.toml"
    config.write_text(_CONTAINERD.format(pause=PAUSE, plugins=PLUGINS, network=network))
    machine.start("containerd", "containerd", f"--config={config}")
    end = time.monotonic() + _START_SECONDS
    while True:
        machine.check()
        try:
            ctr(machine, "version")
            return
        except RuntimeError:
            if time.monotonic() > end:
                raise
        time.sleep(0.2)


def _write(machine: Machine, name: str, config: dict[str, object]) -> Path:
    path = machine.folder / f"{name}.json"
    path.write_text(json.dumps(config, indent=1))
    return path


def _kubelet_config(machine: Machine, server: str) -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{_SOCKET}",
        # The network of the machines is isolated.
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": make_cgroups(machine.name),
        "failSwapOn": False,
        # Other programs of this computer use its disk, too.
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "volumePluginDir": str(machine.folder / "plugins"),
        "clusterDNS": [server],
        "clusterDomain": "cluster.local",
        "resolvConf": "",
    }


def _proxy_config(machine: Machine, configs: Path) -> dict[str, object]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(configs / "kube-proxy.kubeconfig")},
        "mode": "iptables",
        "clusterCIDR": "10.244.0.0/16",
        "hostnameOverride": machine.name,
        # Otherwise kube-proxy would change limits of the whole computer.
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
    }


def find_missing() -> list[str]:
    """Return what this computer lacks: programs of Debian's packages, cgroup v1, root."""
    names = ("etcd", "containerd", "runc", "iptables", "conntrack", "ip", "buildah", "dnsmasq")
    missing = [name for name in names if shutil.which(name) is None]
    if not Path(PLUGINS, "bridge").exists():
        missing.append(f"{PLUGINS}/bridge")
    if not (CGROUPS / "memory" / "cgroup.procs").exists():
        missing.append("cgroup v1")
    return missing if os.geteuid() == 0 else [*missing, "root"]
