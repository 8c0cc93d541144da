"""Options of the server, importable without TensorFlow."""

from dataclasses import dataclass, field
from pathlib import Path

LOAD_THREADS = "regard-load"  # the start of the names of the threads that load models
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class BatchingOptions:
    """How concurrent requests are batched.

    Attributes:
        max_batch_size: rows of a batch; a request with more rows runs alone.
        timeout_seconds: how long an incomplete batch waits for more requests, if others run or
            wait.
        max_queued_batches: batches that may wait; further requests are rejected.
        max_request_rows: a request with more rows is rejected. It bounds the processor time of a
            request, which grows with its rows and with their lengths, up to the model's limit.
    """

    max_batch_size: int = 64
    timeout_seconds: float = 0.002
    max_queued_batches: int = 100
    max_request_rows: int = 256


@dataclass(frozen=True)
class RequestLogOptions:
    """What is logged of requests, and where.

    Attributes:
        file: the file, with the lines in JSON.
        sample: the share of rows, and of failed requests, to log.
        texts: whether to log texts; otherwise only their lengths.
        max_bytes: size from which the file is renamed to ``FILE.1``, and so on.
        files: the number of files to keep, at least 2.
    """

    file: Path
    sample: float = 1.0
    texts: bool = False
    max_bytes: int = 100 << 20
    files: int = 5


@dataclass(frozen=True)
class ManagerOptions:
    """How models are loaded and run.

    Attributes:
        poll_seconds: interval between two scans for new versions; 0: scan once.
        load_retries: how often a failed load is repeated while the files stay the same.
        retry_seconds: wait before a repeated load, and the longest one while the files change.
        settle_seconds: how long the files of a version must not have changed before it replaces
            another.
        batching: how requests are batched.
        threads: batches that run at once.
        run_seconds: time limit for the computation of a batch, which is then cancelled.
        reload_roots: folders whose models a client may load with ``HandleReloadConfigRequest``;
            none: the method is off.
        request_log: what is logged of requests; None: nothing.
    """

    poll_seconds: float = 1.0
    load_retries: int = 5
    retry_seconds: float = 60.0
    settle_seconds: float = 1.0
    batching: BatchingOptions = field(default_factory=BatchingOptions)
    threads: int = 2
    run_seconds: float = 30.0
    reload_roots: tuple[Path, ...] = ()
    request_log: RequestLogOptions | None = None


@dataclass(frozen=True)
class ServerOptions:
    """Addresses and limits of a server.

    Attributes:
        host: the address to listen on.
        grpc_port: 0 for any free port; None to disable gRPC.
        rest_port: 0 for any free port; None to disable REST.
        rest_timeout: limit for a REST request, in seconds; a gRPC client sets its own deadline.
        max_request_bytes: limit for the size of a request; all requests in progress together may
            hold 16 times as much.
        tls_files: the PEM files with the certificate chain and the private key; None: no TLS.
        client_ca: the PEM file with the authorities of the certificates that clients must present;
            None: clients need no certificate.
        token_file: the file with the tokens, one per line. Clients must send one of them as a
            bearer token to run or replace models; None: they need no token.
        allowed_hosts: names that the header ``Host`` may contain, and of web sites that may send
            requests; none: those of the loopback address if the server listens there, otherwise
            any, and no other web site.
        max_connections: the limit for each API; at most a quarter of the descriptors of the
            process.
        header_seconds: limit for the headers of a request.
    """

    host: str = "127.0.0.1"
    grpc_port: int | None = 8500
    rest_port: int | None = 8501
    rest_timeout: float = 30.0
    max_request_bytes: int = 16 << 20
    tls_files: tuple[Path, Path] | None = None
    client_ca: Path | None = None
    token_file: Path | None = None
    allowed_hosts: tuple[str, ...] = ()
    max_connections: int = 1000
    header_seconds: float = 10.0

    @property
    def shows_examples(self) -> bool:
        """Whether the page may show rows of a model's data: to users of this machine only."""
        return self.host in LOOPBACK and not (self.token_file or self.allowed_hosts)
