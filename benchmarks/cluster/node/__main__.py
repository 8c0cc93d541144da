"""Run Regard on a cluster of Kubernetes on this computer, and measure what becomes of requests.

    python -m benchmarks.cluster.node build PROGRAMS
    python -m benchmarks.cluster.node run PROGRAMS HOME
    python -m benchmarks.cluster.node run PROGRAMS HOME version_update drain

The cluster has etcd, kube-apiserver, kube-controller-manager, kube-scheduler, and two nodes with
containerd, runc, CNI plug-ins, kubelet and kube-proxy. Each of the three machines has its own
namespaces for the network, mounts and processes, so that nothing remains of them.

HOME is a folder with the file `pipeline.yaml`, its `data`, and a `registry` with versions 1 and 2
of a Transformer `quickstart`. Scenarios run in the given order; the first one must be `ready`,
except before the last two.

Requires root, cgroup v1, Go, gcc, 30 GB of disk, and Debian's packages `etcd-server containerd runc
containernetworking-plugins iptables conntrack dnsmasq-base buildah debootstrap`.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from benchmarks.cluster.node import (
    cluster,
    images,
    kubelet,
    service,
    serving_scenarios,
    training_scenarios,
)
from benchmarks.markdown_table import format_table

SCENARIOS = {
    function.__name__: function
    for function in (
        serving_scenarios.ready,
        serving_scenarios.version_update,
        serving_scenarios.image_update,
        serving_scenarios.bad_image,
        serving_scenarios.deleted_pod,
        serving_scenarios.killed_server,
        serving_scenarios.failed_probes,
        serving_scenarios.memory_limit,
        serving_scenarios.drain,
        serving_scenarios.restarted_node,
        training_scenarios.cronjob,
        training_scenarios.scheduler,
        training_scenarios.workers,
        training_scenarios.lost_worker,
    )
}


def main() -> int:
    """Build the programs, or run scenarios and print a table for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster.node")
    parser.add_argument("action", choices=("build", "run"))
    parser.add_argument("programs", type=Path, help="folder of the programs and images")
    parser.add_argument("home", type=Path, nargs="?", help="folder with a model and its data")
    parser.add_argument("scenarios", nargs="*", help=f"default: all of {', '.join(SCENARIOS)}")
    parser.add_argument("--folder", type=Path, help="for all files; default: a temporary one")
    options = parser.parse_args()
    programs, names = options.programs.absolute(), options.scenarios or list(SCENARIOS)
    if unknown := [name for name in names if name not in SCENARIOS]:
        parser.error(f"unknown scenarios: {', '.join(unknown)}")
    missing = kubelet.find_missing()
    if options.action == "run":
        if options.home is None:
            parser.error("HOME is missing")
        missing += images.find_missing(programs) + service.find_missing(options.home)
    if missing:
        print(f"Missing: {', '.join(missing)}.", file=sys.stderr)
        return 2
    if options.action == "build":
        images.build(programs)
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="regard-node-") as temporary:
        folder = (options.folder or Path(temporary)).absolute()
        with cluster.run(programs, folder) as running:
            volume = service.prepare(running, options.home)
            servers = service.Service(running, volume)
            for name in names:
                run_scenario(name, servers, volume)
    return 0


def run_scenario(name: str, servers: service.Service, volume: Path) -> None:
    """Run a scenario, and print its rows as they come, and then as a table."""
    function = SCENARIOS[name]
    rows = []
    for row in function(servers, volume):
        print(f"{name}: {': '.join(row)}", file=sys.stderr, flush=True)
        rows.append(row)
    print(f"\n{function.__doc__}\n\n{format_table([name, 'measured'], rows)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
