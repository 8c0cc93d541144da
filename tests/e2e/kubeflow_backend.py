"""Kubeflow's own driver and launcher, with an object store, ML Metadata and a Kubernetes API.

Every driver and launcher runs in a mount namespace with its own root folder, in which ``/minio``,
``/tmp`` and the service account are those of one pod. A node sees nothing of another one but the
store and the volume.
"""

import base64
import contextlib
import http.server
import json
import re
import ssl
import subprocess
import sys
import threading
import urllib.request
import uuid
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path

from tests.processes import ROOT, free_port, service

NAMESPACE = "kubeflow"
BUCKET = "mlpipeline"
_ACCOUNT = "var/run/secrets/kubernetes.io/serviceaccount"
# Makes a root folder of links to the machine's folders, without those that are the pod's own.
_SANDBOX = """
set -e
mount --make-rprivate /
mount --bind "$POD" "$POD"
for path in /*; do
  name=${path#/}
  case $name in
    var|minio|tmp|lost+found) continue ;;
  esac
  if [ -L "$path" ]; then cp -P "$path" "$POD/"
  elif [ -d "$path" ]; then mkdir -p "$POD/$name"; mount --rbind "$path" "$POD/$name"
  fi
done
mkdir -p "$POD/minio" "$POD/tmp" "$POD/kfp-launcher" "$POD$SHARED"
mount --bind "$SHARED" "$POD$SHARED"
touch "$POD/kfp-launcher/launch"
mount --bind "$LAUNCHER" "$POD/kfp-launcher/launch"
exec chroot "$POD" "$@"
"""


class KubernetesApi(http.server.BaseHTTPRequestHandler):
    """Answers what driver and launcher read: a ConfigMap and the secret of the store.

    Attributes:
        objects: the content of the objects by path.
    """

    objects: dict[str, dict] = {}
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Return an object."""
        content = self.objects.get(self.path.partition("?")[0])
        missing = {"kind": "Status", "apiVersion": "v1", "reason": "NotFound", "code": 404}
        body = json.dumps(content or {**missing, "status": "Failure"}).encode()
        self.send_response(200 if content else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def _metadata_server(database: Path):
    """Return a gRPC server of ML Metadata, which forwards every call to the library."""
    import grpc
    from ml_metadata import errors
    from ml_metadata.metadata_store import metadata_store
    from ml_metadata.proto import metadata_store_pb2, metadata_store_service_pb2

    config = metadata_store_pb2.ConnectionConfig()
    config.sqlite.filename_uri = str(database)
    store, lock = metadata_store.MetadataStore(config), threading.Lock()

    class Handler(grpc.GenericRpcHandler):
        def service(self, details):
            method = details.method.rpartition("/")[2]
            request, response = (
                getattr(metadata_store_service_pb2, f"{method}{kind}")
                for kind in ("Request", "Response")
            )

            def call(message, context):
                answer = response()
                try:
                    with lock:
                        store._call(method, message, answer)
                except errors.StatusError as error:
                    codes = {code.value[0]: code for code in grpc.StatusCode}
                    context.abort(codes[error.error_code], error.message)
                return answer

            return grpc.unary_unary_rpc_method_handler(
                call,
                request_deserializer=request.FromString,
                response_serializer=response.SerializeToString,
            )

    server = grpc.server(futures.ThreadPoolExecutor(4), handlers=[Handler()])
    return server, server.add_insecure_port("127.0.0.1:0")


@contextlib.contextmanager
def _kubernetes_api(folder: Path, store: str) -> Iterator[int]:
    """Serve a Kubernetes API whose launcher configuration names the store."""
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=kubernetes"
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "ca.crt")]
    name = ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command.split(), *files, *name], check=True, capture_output=True)
    secret = {"secretName": "store", "accessKeyKey": "accesskey", "secretKeyKey": "secretkey"}
    provider = {
        "endpoint": store,
        "region": "us-east-1",
        "disableSSL": True,
        "credentials": {"fromEnv": False, "secretRef": secret},
    }
    key = base64.b64encode(b"minio").decode()
    path = f"/api/v1/namespaces/{NAMESPACE}"
    KubernetesApi.objects = {
        f"{path}/configmaps/kfp-launcher": {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "data": {"providers": json.dumps({"minio": {"default": provider}})},
        },
        f"{path}/secrets/store": {
            "kind": "Secret",
            "apiVersion": "v1",
            "data": {"accesskey": key, "secretkey": key},
        },
    }
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), KubernetesApi)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "ca.crt", folder / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


class Backend:
    """Runs the tasks of a compiled pipeline, each by a driver and a launcher.

    Args:
        folder: for pods; the only folder below /tmp that a pod sees.
        binaries: a folder with ``driver`` and ``launcher-v2``.
        pipeline: the compiled pipeline.
        ports: of the Kubernetes API and of ML Metadata.
    """

    def __init__(self, folder: Path, binaries: Path, pipeline, ports: tuple[int, int]):
        self.folder, self.binaries, self.pipeline = folder, binaries, pipeline
        kubernetes, metadata = ports
        self.run_id = str(uuid.uuid4())
        self.patches: dict[str, dict] = {}
        self._environment = {
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": "/tmp",
            "PYTHONPATH": str(ROOT),
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(kubernetes),
            "NO_PROXY": "127.0.0.1,localhost",
        }
        self._flags = {
            "pipeline_name": pipeline.name,
            "run_id": self.run_id,
            "run_name": "run",
            "run_display_name": "run",
            "pipeline_job_create_time_utc": "2026-01-01T00:00:00Z",
            "ml_pipeline_server_address": "127.0.0.1",
            "ml_pipeline_server_port": "1",
            "mlmd_server_address": "127.0.0.1",
            "mlmd_server_port": str(metadata),
            "log_level": "1",
            "publish_logs": "true",
            "cache_disabled": "true",
            "ml_pipeline_tls_enabled": "false",
            "metadata_tls_enabled": "false",
            "ca_cert_path": "",
            "iteration_index": "-1",
            "http_proxy": "",
            "https_proxy": "",
            "no_proxy": "",
        }

    def run(self, parameters: dict[str, object], nodes: set[str] | None = None) -> None:
        """Run all tasks, or some of them, each after those it depends on."""
        spec = self.pipeline.spec
        config = {"parameterValues": parameters, "gcsOutputDirectory": self.pipeline.pipeline_root}
        root = self._drive("ROOT_DAG", component=spec["root"], runtime_config=config)
        tasks = dict(spec["root"]["dag"]["tasks"])
        while tasks:
            ready = [
                name
                for name, task in tasks.items()
                if not tasks.keys() & set(task.get("dependentTasks", []))
            ]
            for name in ready:
                task = tasks.pop(name)
                if nodes is None or name in nodes:
                    self._run_task(name, task, root["execution_id"])

    def _run_task(self, name: str, task: dict, dag: str) -> None:
        spec, platform = self.pipeline.spec, self.pipeline.platform["platforms"]["kubernetes"]
        component = spec["components"][task["componentRef"]["name"]]
        label = component["executorLabel"]
        outputs = self._drive(
            "CONTAINER",
            component=component,
            task=task,
            task_name=name,
            container=spec["deploymentSpec"]["executors"][label]["container"],
            kubernetes_config=platform["deploymentSpec"]["executors"].get(label, {}),
            dag_execution_id=dag,
        )
        patch = json.loads(outputs["pod_spec_patch"])
        self.patches[name] = patch
        (container,) = patch["containers"]
        own = {"KFP_POD_NAME": f"{name.lower()}-pod", "KFP_POD_UID": str(uuid.uuid4())}
        own |= {"KFP_RETRY_INDEX": "0", "NAMESPACE": NAMESPACE}
        variables = {e["name"]: e["value"] for e in container.get("env", []) if "value" in e}
        command = [
            re.sub(r"\$\((\w+)\)", lambda match: own.get(match[1], match[0]), part)
            for part in container["command"]
        ]
        result = self._in_pod(name, command, {**own, **variables})
        (self.folder / f"{name}.log").write_text(result.stdout)
        assert result.returncode == 0, f"{name}: {result.stdout[-6000:]}"

    def _drive(self, kind: str, **values: object) -> dict[str, str]:
        """Run a driver, and return the content of the files that it writes."""
        names = ("execution_id", "iteration_count", "cached_decision", "condition")
        flags: dict[str, object] = {**self._flags, "type": kind, **values}
        pod = f"driver-{uuid.uuid4().hex}"
        flags |= {f"{name}_path": f"/tmp/{name}" for name in (*names, "pod_spec_patch")}
        texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in flags.items()}
        command = [str(self.binaries / "driver"), *(f"--{k}={v}" for k, v in texts.items())]
        result = self._in_pod(pod, command, {})
        assert result.returncode == 0, f"{kind} {values.get('task_name')}: {result.stdout[-6000:]}"
        files = (self.folder / "pods" / pod / "tmp").iterdir()
        return {path.name: path.read_text() for path in files if path.is_file()}

    def _in_pod(
        self, name: str, command: list[str], variables: dict[str, str]
    ) -> subprocess.CompletedProcess:
        """Run a command in a root folder of its own."""
        pod = self.folder / "pods" / name
        account = pod / _ACCOUNT
        account.mkdir(parents=True)
        (account / "namespace").write_text(NAMESPACE)
        (account / "token").write_text("token")
        (account / "ca.crt").write_bytes((self.folder / "ca.crt").read_bytes())
        sandbox = {
            "POD": str(pod),
            "SHARED": str(self.folder / "shared"),
            "LAUNCHER": str(self.binaries / "launcher-v2"),
        }
        return subprocess.run(
            ["unshare", "--mount", "sh", "-c", _SANDBOX, "pod", *command],
            env={**self._environment, **variables, **sandbox},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=1800,
        )


@contextlib.contextmanager
def serve_backend(folder: Path, binaries: Path, pipeline) -> Iterator[tuple[Backend, str]]:
    """Start the services, and yield the backend and the URL of the store's bucket."""
    (folder / "shared").mkdir(exist_ok=True)
    server, metadata = _metadata_server(folder / "metadata.db")
    server.start()
    port = free_port()
    with contextlib.ExitStack() as stack:
        stack.callback(server.stop, None)
        command = ("moto_server", "-H", "127.0.0.1", "-p", str(port))
        stack.enter_context(service(port, folder / "store.log", *command))
        bucket = f"http://127.0.0.1:{port}/{BUCKET}"
        urllib.request.urlopen(urllib.request.Request(bucket, method="PUT"), timeout=30).close()
        kubernetes = stack.enter_context(_kubernetes_api(folder, f"127.0.0.1:{port}"))
        yield Backend(folder, binaries, pipeline, (kubernetes, metadata)), bucket
