"""Build the image of `Dockerfile` without a registry of images, and run Regard in it.

    python -m benchmarks.cluster.image build FOLDER
    python -m benchmarks.cluster.image check FOLDER             # or: check FOLDER pool server
    python -m benchmarks.cluster.image run FOLDER regard doctor

The base image is a Debian root file system of debootstrap with Debian's Python, and Beam's `boot`
is compiled from Beam's Go module. The Dockerfile itself is not changed. Containers run as the
image's user in new mount and process namespaces: the command is process 1, the root file system is
read-only, and only /tmp and the volume /regard are writable, as under `readOnlyRootFilesystem`.

Needs root, Go, 15 GB, and `apt-get install debootstrap buildah`.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import hashlib
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MIRROR = "http://deb.debian.org/debian"
# A virtual environment, and the headers that the official image also has.
PYTHON_PACKAGES = "python{0} python{0}-venv python{0}-dev"
TAG = "regard:check"
# The Beam jobs of `check_pool`: up to Preprocess there are five.
LAST_NODE, WORKERS = "Preprocess", 5


@dataclasses.dataclass(frozen=True)
class Store:
    """A folder with the image, its base images and the volume of the containers."""

    folder: Path

    def buildah(self, *arguments: str | Path, **options: Any) -> str:
        """Run buildah with its storage in the folder, and return what it prints."""
        storage = (f"--root={self.folder / 'store'}", f"--runroot={self.folder / 'run'}")
        command = ["buildah", *storage, *map(str, arguments)]
        print("$", shlex.join(command), file=sys.stderr)
        options = {"stdout": subprocess.PIPE, "text": True, **options}
        return (subprocess.run(command, check=True, **options).stdout or "").strip()

    @property
    def volume(self) -> Path:
        """The folder that containers see as /regard."""
        return self.folder / "volume"

    @property
    def config(self) -> dict[str, Any]:
        """The image's user, environment, entry point and working directory."""
        description = json.loads(self.buildah("inspect", "--type=image", TAG))
        config: dict[str, Any] = description["OCIv1"]["config"]
        return config


def build(store: Store) -> None:
    """Make the base images, and build the image."""
    defaults = dict(
        line.removeprefix("ARG ").split("=")
        for line in (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
        if line.startswith("ARG ") and "=" in line
    )
    python, debian, beam = (defaults[name] for name in ("PYTHON", "DEBIAN", "BEAM"))
    store.folder.mkdir(parents=True, exist_ok=True)
    images = store.buildah("images", "--format={{.Name}}:{{.Tag}}").split()
    if not any(f"python:{python}-slim" in name for name in images):
        base = _make_root(store.folder / "base", python, debian)
        _import(store, base, f"docker.io/library/python:{python}-slim-{debian}")
        shutil.rmtree(base)
    if not any("beam_python" in name for name in images):
        boot = _compile_boot(store.folder / "boot", beam)
        _import(store, boot, f"docker.io/apache/beam_python{python}_sdk:{beam}")
    # pip uses this machine's settings and certificates.
    shared = ["/etc/ssl/certs", *filter(os.path.exists, ["/etc/pip.conf"])]
    volumes = [f"--volume={path}:{path}:ro" for path in shared]
    options = ["--isolation=chroot", "--pull-never", "--layers", f"--tag={TAG}"]
    store.buildah("build", *options, *volumes, ROOT, stdout=sys.stderr)


def _make_root(folder: Path, python: str, debian: str) -> Path:
    """Make a root file system with `python` on the path."""
    shutil.rmtree(folder, ignore_errors=True)
    include = "--include=ca-certificates,netbase,tzdata"
    command = ["debootstrap", "--variant=minbase", include, debian, str(folder), MIRROR]
    subprocess.run(command, check=True, stdout=sys.stderr)
    shutil.copy("/etc/resolv.conf", folder / "etc")
    packages = PYTHON_PACKAGES.format(python)
    install = f"apt-get -y --no-install-recommends install {packages} && apt-get clean"
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["chroot", str(folder), "sh", "-c", install]
    subprocess.run(command, check=True, stdout=sys.stderr, env=environment)
    for name in ("python", "python3"):
        (folder / "usr/local/bin" / name).symlink_to(f"/usr/bin/python{python}")
    return folder


def _compile_boot(folder: Path, beam: str) -> Path:
    """Compile the entry point of Beam's workers, and return a root with only that."""
    target = folder / "root/opt/apache/beam"
    target.mkdir(parents=True, exist_ok=True)
    (folder / "go.mod").write_text("module example.org/boot\n\ngo 1.24.0\n")
    package = "github.com/apache/beam/sdks/v2/python/container"
    environment = {**os.environ, "CGO_ENABLED": "0"}
    for command in (
        ["go", "get", "-tool", f"{package}@v{beam}"],
        ["nice", "go", "build", "-p", "1", "-trimpath", "-o", str(target / "boot"), package],
    ):
        subprocess.run(command, check=True, cwd=folder, env=environment)
    return folder / "root"


def _import(store: Store, root: Path, name: str) -> None:
    container = store.buildah("from", "scratch")
    store.buildah("add", "--quiet", container, root, "/")
    store.buildah(
        "config",
        "--env=PATH=/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin",
        container,
    )
    store.buildah("commit", "--quiet", "--rm", container, name)


class Image:
    """The mounted image, in which commands run as its user."""

    def __init__(self, store: Store, root: str):
        self.root, self.volume = root, store.volume
        self.config = store.config
        self.user, _, self.group = self.config["User"].partition(":")
        self.volume.mkdir(exist_ok=True)
        os.chown(self.volume, int(self.user), int(self.group))

    def start(self, *command: str, **options: Any) -> subprocess.Popen[str]:
        """Start a command with the image's entry point, as process 1 of a container."""
        root = shlex.quote(self.root)
        arguments = shlex.join(
            ["env", "-i", *self.config["Env"], *self.config["Entrypoint"], *command]
        )
        script = f"""set -e
            mount --rbind {root} {root}
            mount -o remount,bind,ro {root}
            mount -t proc proc {root}/proc
            mount --rbind /dev {root}/dev
            mount -t tmpfs -o mode=1777 tmpfs {root}/tmp
            mount --bind {shlex.quote(str(self.volume))} {root}/regard
            exec setpriv --no-new-privs unshare --root={root} --wd={self.config["WorkingDir"]} \
              --setgid={self.group} --setuid={self.user} {arguments}"""
        namespaces = ["unshare", "--mount", "--pid", "--fork", "--propagation=private"]
        return subprocess.Popen([*namespaces, "sh", "-c", script], text=True, **options)

    def run(self, *command: str) -> str:
        """Run a command, and return its output; it must succeed."""
        process = self.start(*command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        output, _ = process.communicate()
        if process.returncode != 0:
            raise RuntimeError(f"{shlex.join(command)}: status {process.returncode}\n{output}")
        return output


def stop(process: subprocess.Popen[str], seconds: float) -> int:
    """Send SIGTERM to process 1 of a container, and return the exit status."""
    send_signal(process, signal.SIGTERM)
    return process.wait(seconds)


def send_signal(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """Send a signal to process 1 of a container, or to a process that is not a container."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int([*children, process.pid][0]), number)


def check_user(image: Image) -> str:
    """The command is process 1 of an ordinary user, who can write to /tmp and /regard only."""
    facts = image.run(
        "sh",
        "-c",
        "id -u; id -g; cat /proc/1/comm; grep -h -e NoNewPrivs -e CapEff /proc/self/status;"
        " for d in / /opt/regard /home/regard /usr /gcs /minio /s3 /tmp /regard;"
        " do touch $d/x 2>/dev/null && echo $d; done; rm -f /regard/x",
    )
    return " ".join(facts.split())


def check_commands(image: Image) -> str:
    """The command line starts, and finds its environment complete."""
    image.run("regard", "--help")
    return image.run("regard", "doctor").strip()


def _run_pipeline(image: Image, name: str, section: str = "", *arguments: str) -> None:
    """Run the quickstart with few rows in a home of its own on the volume, or resume it."""
    home = image.volume / name
    home.mkdir(exist_ok=True)
    text = (ROOT / "configs" / "quickstart.yaml").read_text(encoding="utf-8")
    (home / "tiny.yaml").write_text(text.replace("max_epochs: 8", "max_epochs: 1") + section)
    home.chmod(0o777)
    environment = ("env", f"REGARD_HOME=/regard/{name}", "regard")
    image.run(*environment, "data", "generate", "quickstart", "--rows", "3000")
    image.run(*environment, "run", f"/regard/{name}/tiny.yaml", *arguments)


def check_run(image: Image) -> str:
    """A pipeline runs to the end."""
    _run_pipeline(image, "local", "", "--publish-anyway")
    published = image.volume / "local" / "registry" / "quickstart"
    return f"version {max(path.name for path in published.iterdir() if path.name.isdecimal())}"


def check_pool(image: Image) -> str:
    """Beam's workers in a container give the same artifacts as the process of the node."""
    port = _free_port()
    service = "apache_beam.runners.portability.local_job_service_main"
    staging = image.volume.with_name("staging")
    log = image.volume.with_name("pool.log")
    command = [sys.executable, "-m", service, f"--port={port}", f"--staging_dir={staging}"]
    with (
        log.open("w") as output,
        _running(subprocess.Popen(command, stdout=output, stderr=output, text=True), port),
        _running(image.start("--worker_pool", stdout=output, stderr=output), 50000),
    ):
        section = f"""
beam:
  runner: portable
  options:
    job_endpoint: localhost:{port}
    environment_type: EXTERNAL
    environment_config: localhost:50000
"""
        _run_pipeline(image, "pool", section, "--to", LAST_NODE)
    workers = log.read_text(errors="replace").count("Starting worker with command")
    local, pool = (_digests(image.volume / name) for name in ("local", "pool"))
    if not pool or pool != {name: local.get(name) for name in pool} or workers < WORKERS:
        raise RuntimeError(f"{workers} workers; the artifacts differ: {local} {pool}")
    return f"{workers} workers, {len(pool)} equal files"


def _digests(home: Path) -> dict[str, str]:
    """The digests of the files whose content does not depend on paths and times."""
    artifacts = home / "pipelines" / "quickstart" / "artifacts"
    return {
        "/".join((node, name, *path.parts[len(artifacts.parts) + 3 :])): hashlib.sha256(
            path.read_bytes()
        ).hexdigest()
        for node, name in (
            ("CorpusGen", "examples"),
            ("SchemaGen", "schema"),
            ("TokenizerTrainer", "tokenizer"),
            ("Preprocess", "transformed_examples"),
        )
        for path in (artifacts / node / name).rglob("*")
        if path.is_file()
    }


def check_server(image: Image) -> str:
    """The server answers, and ends with status 0 after SIGTERM."""
    port = _free_port()
    command = ("regard", "serve", "quickstart", "--registry=/regard/local/registry", "--port=0")
    process = image.start(*command, f"--rest-api-port={port}")
    with _running(process, port):
        body = json.dumps({"instances": ["20 November 2026"]}).encode()
        url = f"http://127.0.0.1:{port}/v1/models/quickstart:predict"
        with urllib.request.urlopen(url, body, timeout=300) as response:
            prediction = json.load(response)["predictions"][0]
        status = stop(process, 300)
    if status != 0 or not prediction:
        raise RuntimeError(f"status {status}: {prediction}")
    return f"status {status}"


def check_signals(image: Image) -> str:
    """A run and a pool of workers end after SIGTERM, although they are process 1."""
    run = image.start(
        "env",
        "REGARD_HOME=/regard/local",
        "regard",
        "run",
        "--from=CorpusGen",
        "/regard/local/tiny.yaml",
    )
    time.sleep(10)
    pool = image.start("--worker_pool")
    with _running(pool, 50000):
        statuses = [stop(process, 300) for process in (run, pool)]
    return f"run {statuses[0]}, pool {statuses[1]}"


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextlib.contextmanager
def _running(process: subprocess.Popen[str], port: int) -> Iterator[None]:
    """Wait until a process listens, and end it at the end."""
    try:
        for _ in range(6000):
            if process.poll() is not None:
                raise RuntimeError(f"{process.args!r} ended with status {process.returncode}")
            with contextlib.suppress(OSError), socket.create_connection(("localhost", port), 1):
                break
            time.sleep(0.1)
        yield
    finally:
        if process.poll() is None:
            send_signal(process, signal.SIGKILL)  # ends all processes of a container
            process.kill()
            process.wait()


CHECKS = (check_user, check_commands, check_run, check_pool, check_server, check_signals)


def check(store: Store, names: list[str]) -> None:
    """Run all checks, or those with the given names without `check_`."""
    with mount(store) as image:
        for function in CHECKS:
            if not names or function.__name__.removeprefix("check_") in names:
                started = time.monotonic()
                result = function(image)
                seconds = time.monotonic() - started
                print(f"{function.__name__}: {result} ({seconds:.0f} s)", flush=True)
    print("size:", store.buildah("images", "--format={{.Size}}", TAG))


@contextlib.contextmanager
def mount(store: Store) -> Iterator[Image]:
    """Mount the image's root file system."""
    container = store.buildah("from", "--pull-never", TAG)
    try:
        yield Image(store, store.buildah("mount", container))
    finally:
        store.buildah("rm", container)


def main() -> int:
    """Build or check the image, or run a command in it, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster.image")
    parser.add_argument("action", choices=("build", "check", "run"))
    parser.add_argument("folder", type=Path, help="for the image and the volume")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="or names of checks")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    store = Store(options.folder.absolute())
    if options.action == "build":
        build(store)
    elif options.action == "check":
        check(store, options.command)
    else:
        with mount(store) as image:
            return image.start(*options.command).wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
