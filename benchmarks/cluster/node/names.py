"""Names of services for the pods: writes addresses from the API server to a file for dnsmasq.

    python -m benchmarks.cluster.node.names KUBECONFIG FOLDER

It is in the place of CoreDNS, whose image is not in the package registries. It serves A records of
services, and for services without an address those of their endpoints and of their host names.
"""

from __future__ import annotations

import contextlib
import json
import ssl
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from benchmarks.cluster.node.machine import Machine

DOMAIN = "cluster.local"
_SECONDS = 1.0  # between two requests


def start(machine: Machine) -> None:
    """Start dnsmasq and the program that writes its file."""
    folder = machine.folder / "names"
    folder.mkdir(exist_ok=True)
    machine.start(
        "dnsmasq",
        "dnsmasq",
        "--keep-in-foreground",
        "--conf-file=/dev/null",
        "--user=root",
        "--no-resolv",
        "--no-hosts",
        "--bind-interfaces",
        f"--listen-address={machine.address}",
        f"--hostsdir={folder}",
        f"--local=/{DOMAIN}/",
        "--local-ttl=1",
        "--no-negcache",
        "--pid-file",
    )
    kubeconfig = machine.folder / "admin.kubeconfig"
    environment = {"PYTHONPATH": str(Path(__file__).parents[3])}
    command = (sys.executable, "-m", "benchmarks.cluster.node.names", kubeconfig, folder)
    machine.start("names", *command, environment=environment)


def records(services: list[dict[str, Any]], slices: list[dict[str, Any]]) -> list[str]:
    """Return the lines ``ADDRESS NAME`` of a hosts file.

    Args:
        services: the objects of the API.
        slices: the EndpointSlices of all services.
    """
    lines = set()
    domains = {}
    for service in services:
        metadata, spec = service["metadata"], service["spec"]
        domain = f"{metadata['name']}.{metadata['namespace']}.svc.{DOMAIN}"
        if spec.get("clusterIP") == "None":
            key = metadata["namespace"], metadata["name"]
            domains[key] = domain, spec.get("publishNotReadyAddresses", False)
        elif spec.get("clusterIP"):
            lines.add(f"{spec['clusterIP']} {domain}")
    for item in slices:
        metadata = item["metadata"]
        name = metadata.get("labels", {}).get("kubernetes.io/service-name", "")
        domain, not_ready = domains.get((metadata["namespace"], name), ("", False))
        for endpoint in item.get("endpoints") or ():
            if domain and (not_ready or endpoint["conditions"].get("ready", True)):
                address = endpoint["addresses"][0]
                lines.add(f"{address} {domain}")
                if "hostname" in endpoint:
                    lines.add(f"{address} {endpoint['hostname']}.{domain}")
    return sorted(lines)


def main() -> None:
    """Write the file again whenever the names change, until the machine ends."""
    kubeconfig, folder = sys.argv[1:]
    config = json.loads(Path(kubeconfig).read_text())
    server = config["clusters"][0]["cluster"]["server"]
    token = config["users"][0]["user"]["token"]
    last: list[str] = []
    while True:
        with contextlib.suppress(OSError):  # the server can be busy
            paths = ("api/v1/services", "apis/discovery.k8s.io/v1/endpointslices")
            lines = records(*(_get(f"{server}/{path}", token) for path in paths))
            if lines != last:
                temporary = Path(f"{folder}.new")
                temporary.write_text("".join(f"{line}\n" for line in lines))
                temporary.rename(Path(folder, "hosts"))
                last = lines
        time.sleep(_SECONDS)


def _get(url: str, token: str) -> list[dict[str, Any]]:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    context = ssl._create_unverified_context()
    with urllib.request.urlopen(request, timeout=30, context=context) as response:
        items: list[dict[str, Any]] = json.load(response)["items"]
    return items


if __name__ == "__main__":
    main()
