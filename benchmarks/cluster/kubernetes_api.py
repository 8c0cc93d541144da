"""Build and run a Kubernetes API server on the loopback address, and apply manifests to it.

    python -m benchmarks.cluster.kubernetes_api build FOLDER
    python -m benchmarks.cluster.kubernetes_api serve FOLDER            # prints the kubeconfig
    python -m benchmarks.cluster.kubernetes_api apply FOLDER deploy/quickstart docs/flink.yaml

The server is kube-apiserver with etcd, as in a real cluster: schemas, validation, admission and
custom resource definitions. There are no controllers and no nodes, so no pod ever starts.

`build` needs Go, Maven (for the definition of FlinkDeployment) and `apt-get install etcd-server`.
It takes an hour of processor time on one core, and 5 GB for Go's caches.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

# etcd 3.4 of Debian 12 is the oldest that Kubernetes 1.33 supports.
KUBERNETES = "1.33.13"
KSERVE = "0.15.2"
FLINK_OPERATOR = "1.10.0"
PROGRAMS = ("kube-apiserver", "kubectl")
_START_SECONDS = 120


def build(folder: Path) -> None:
    """Build the programs from Go modules, and get the custom resource definitions.

    Args:
        folder: gets `kube-apiserver`, `kubectl` and `crds/`.
    """
    (folder / "crds").mkdir(parents=True, exist_ok=True)
    _copy_definitions(folder / "crds")
    compile_programs(folder, PROGRAMS)


def compile_programs(folder: Path, programs: Sequence[str]) -> Path:
    """Compile programs of Kubernetes, unless the folder has them.

    Args:
        folder: gets the programs.
        programs: their names, such as `kubelet`.

    Returns:
        The folder of Kubernetes' source.
    """
    folder.mkdir(parents=True, exist_ok=True)
    module = folder / "build"
    module.mkdir(exist_ok=True)
    (module / "go.mod").write_text("module example.org/kubernetes\n\ngo 1.24.0\n")
    source = _download(f"k8s.io/kubernetes@v{KUBERNETES}")
    # The staging repositories have the same release with the major version 0.
    staged = [
        line.split()[0]
        for line in (source / "go.mod").read_text().splitlines()
        if line.endswith(" v0.0.0")
    ]
    release = f"v0.{KUBERNETES.partition('.')[2]}"
    replacements = [f"-replace={name}={name}@{release}" for name in staged]
    _run("go", "mod", "edit", *replacements, cwd=module)
    major, minor, _ = KUBERNETES.split(".")
    values = {"gitVersion": f"v{KUBERNETES}", "gitMajor": major, "gitMinor": minor}
    flags = " ".join(f"-X k8s.io/component-base/version.{key}={values[key]}" for key in values)
    missing = [name for name in programs if not (folder / name).exists()]
    packages = [f"k8s.io/kubernetes/cmd/{name}" for name in missing]
    if missing:
        _run("go", "get", "-tool", *(f"{name}@v{KUBERNETES}" for name in packages), cwd=module)
        options = ("-p", "1", "-trimpath", "-ldflags", f"-s -w {flags}")
        _run("nice", "go", "build", *options, "-o", f"{module}/", *packages, cwd=module)
    for name in missing:
        (module / name).rename(folder / name)
    return source


def _copy_definitions(folder: Path) -> None:
    kserve = _download(f"github.com/kserve/kserve@v{KSERVE}") / "config" / "crd" / "full"
    for path in kserve.glob("serving.kserve.io_*.yaml"):
        shutil.copyfile(path, folder / path.name)
    artifact = f"org.apache.flink:flink-kubernetes-operator-api:{FLINK_OPERATOR}"
    with tempfile.TemporaryDirectory() as temporary:
        arguments = [f"-Dartifact={artifact}", f"-DoutputDirectory={temporary}"]
        _run("mvn", "-q", "-B", "dependency:copy", *arguments)
        (archive,) = Path(temporary).glob("*.jar")
        with zipfile.ZipFile(archive) as jar:
            for name in jar.namelist():
                # v1 is the version of the definition; the resources in it are v1beta1.
                if name.startswith("META-INF/fabric8/") and name.endswith("-v1.yml"):
                    (folder / Path(name).with_suffix(".yaml").name).write_bytes(jar.read(name))


def _download(module: str) -> Path:
    _run("go", "mod", "download", module, cwd=Path(tempfile.gettempdir()))
    cache = subprocess.run(["go", "env", "GOMODCACHE"], capture_output=True, text=True, check=True)
    return Path(cache.stdout.strip(), module)


def _run(*command: str, cwd: Path | None = None) -> None:
    print("$", *command, file=sys.stderr)
    subprocess.run(command, cwd=cwd, check=True, env={**os.environ, "GOFLAGS": "-mod=mod"})


def find_missing(folder: Path) -> list[str]:
    """Return what has to be built or installed before `ApiServer` can start."""
    missing = [str(folder / name) for name in (*PROGRAMS, "crds") if not (folder / name).exists()]
    return missing if shutil.which("etcd") else [*missing, "etcd"]


class ApiServer:
    """A running API server, and a client that is its administrator.

    Args:
        folder: the folder of `build`.
        kubeconfig: the configuration for `kubectl` and client libraries.
        prefix: a command that runs `kubectl` in other namespaces of Linux.
    """

    def __init__(self, folder: Path, kubeconfig: Path, prefix: Sequence[str] = ()):
        self.kubeconfig = kubeconfig
        self._kubectl = [*prefix, str(folder / "kubectl")]

    def command(self, *arguments: str | Path) -> list[str]:
        """Return the command line of kubectl with arguments."""
        return [*self._kubectl, f"--kubeconfig={self.kubeconfig}", *map(str, arguments)]

    def kubectl(
        self, *arguments: str | Path, text: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl; its standard error follows its standard output."""
        command = self.command(*arguments)
        return subprocess.run(
            command, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def apply(self, path: Path, *arguments: str) -> str:
        """Apply a file or a folder with a kustomization on the server, with strict validation.

        First as a dry run, then for real.

        Returns:
            what kubectl prints, one line for each resource, with the server's warnings.

        Raises:
            RuntimeError: the server rejects a resource.
        """
        source = ["-k" if path.is_dir() else "-f", path]
        options = ["--server-side", "--validate=strict", *arguments]
        for mode in ("--dry-run=server", "--dry-run=none"):
            result = self.kubectl("apply", *source, *options, mode)
            if result.returncode != 0:
                raise RuntimeError(f"{path} ({mode}): {result.stdout}")
        return result.stdout


@contextlib.contextmanager
def run_server(folder: Path, data: Path) -> Iterator[ApiServer]:
    """Run etcd and kube-apiserver on free ports of 127.0.0.1, and stop them at the end.

    Args:
        folder: the folder of `build`.
        data: an empty folder for the database, keys, logs and the kubeconfig.
    """
    store, peer, port = (_free_port() for _ in range(3))
    server = ApiServer(folder, data / "kubeconfig")
    token = secrets.token_hex(16)
    (data / "tokens.csv").write_text(f"{token},admin,admin,system:masters\n")
    (data / "tokens.csv").chmod(0o600)
    key = data / "service-account.key"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    etcd = [
        "etcd",
        f"--data-dir={data / 'etcd'}",
        f"--listen-client-urls=http://127.0.0.1:{store}",
        f"--advertise-client-urls=http://127.0.0.1:{store}",
        f"--listen-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-cluster=default=http://127.0.0.1:{peer}",
        "--unsafe-no-fsync",
    ]
    api = [
        str(folder / "kube-apiserver"),
        f"--etcd-servers=http://127.0.0.1:{store}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        f"--secure-port={port}",
        f"--cert-dir={data / 'certificates'}",
        f"--token-auth-file={data / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
    ]
    with contextlib.ExitStack() as stack:
        for command in (etcd, api):
            log = stack.enter_context((data / f"{Path(command[0]).name}.log").open("w"))
            process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
            stack.callback(_stop, process)
        _write_kubeconfig(server.kubeconfig, port, token)
        _wait_until_ready(server, process, data)
        result = server.kubectl("create", "-f", folder / "crds")
        result.check_returncode()
        # The server publishes the schemas of custom resources with a delay.
        server.kubectl("wait", "--for=condition=Established", "crd", "--all").check_returncode()
        yield server


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _write_kubeconfig(path: Path, port: int, token: str) -> None:
    server = f"{{server: 'https://127.0.0.1:{port}', insecure-skip-tls-verify: true}}"
    path.write_text(
        f"""apiVersion: v1
kind: Config
clusters: [{{name: local, cluster: {server}}}]
users: [{{name: admin, user: {{token: {token}}}}}]
contexts: [{{name: local, context: {{cluster: local, user: admin}}}}]
current-context: local
"""
    )
    path.chmod(0o600)


def _wait_until_ready(server: ApiServer, process: subprocess.Popen[bytes], data: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        result = server.kubectl("get", "--raw", "/readyz", "--request-timeout=5s")
        # The namespace is created after the server is ready.
        if result.returncode == 0 and server.kubectl("get", "ns", "default").returncode == 0:
            return
        time.sleep(0.5)
    log = (data / "kube-apiserver.log").read_text(errors="replace").splitlines()
    raise RuntimeError("kube-apiserver is not ready:\n" + "\n".join(log[-10:]))


def main() -> int:
    """Build, serve or apply, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster.kubernetes_api")
    parser.add_argument("action", choices=("build", "serve", "apply"))
    parser.add_argument("folder", type=Path, help="of the programs")
    parser.add_argument("manifests", type=Path, nargs="*", help="files, or folders of kustomize")
    options = parser.parse_args()
    if options.action == "build":
        build(options.folder.absolute())
        return 0
    if missing := find_missing(options.folder):
        print(f"Missing: {', '.join(missing)}. Use `build` first.", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with (
        tempfile.TemporaryDirectory() as data,
        run_server(options.folder.absolute(), Path(data)) as server,
    ):
        if options.action == "serve":
            print(server.kubeconfig, flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                while True:
                    signal.pause()
        for path in options.manifests:
            print(server.apply(path), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
