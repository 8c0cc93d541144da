import contextlib
import http.client
import logging
import shutil
import socket
import ssl
import subprocess
import time
from pathlib import Path

import pytest

from regard.serving.server import file_watch
from regard.serving.server.certificates import Certificates
from regard.serving.server.model_config import ModelConfig
from regard.serving.server.options import ManagerOptions
from regard.serving.server.tls_files import TlsFiles

CURVE = ["-pkeyopt", "ec_paramgen_curve:prime256v1"]
NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1"
HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # SETTINGS
TLS_1_2, TLS_1_3 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


@pytest.fixture(scope="module")
def pairs(tmp_path_factory) -> Path:
    """Self-signed certificates ``old.pem`` and ``new.pem`` with their keys."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("pairs")
    for name in ("old", "new"):
        create = ["openssl", "req", "-x509", "-newkey", "ec", *CURVE, "-nodes", "-days", "2"]
        create += ["-subj", f"/CN={name}", "-addext", NAMES]
        create += ["-keyout", f"{name}.key", "-out", f"{name}.pem"]
        subprocess.run(create, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def files(pairs, tmp_path, monkeypatch) -> TlsFiles:
    """Copies of the old certificate, its key, and the clients' authority; tests check them."""
    monkeypatch.setattr(file_watch, "_CHECK_SECONDS", 3600)
    files = TlsFiles(tmp_path / "chain.pem", tmp_path / "key.pem", tmp_path / "client_ca.pem")
    replace(files, pairs, "old")
    return files


def replace(files: TlsFiles, pairs: Path, name: str) -> None:
    """Replace all files by those of the old or the new pair."""
    shutil.copyfile(pairs / f"{name}.pem", files.chain)
    shutil.copyfile(pairs / f"{name}.key", files.key)
    shutil.copyfile(pairs / f"{name}.pem", files.client_ca)


def start_server(run, saved, files: TlsFiles, **options):
    """Start a server with TLS, and return it."""
    models = [ModelConfig("reverser", saved / "reverser")]
    tls_files = files.chain, files.key
    running = run(models, ManagerOptions(poll_seconds=0), tls_files=tls_files, **options)
    return running.server


def get_certificate(port: int) -> str:
    """Return the certificate that a server presents to a new connection, in PEM."""
    return ssl.get_server_certificate(("127.0.0.1", port), timeout=30)


def create_client(pairs: Path, name: str, version: ssl.TLSVersion, api: str) -> ssl.SSLContext:
    """Return the context of a client with a certificate, which does not check the server's."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = context.maximum_version = version
    context.load_cert_chain(pairs / f"{name}.pem", pairs / f"{name}.key")
    context.set_alpn_protocols(["h2"] if api == "grpc" else [])
    return context


def connect(port: int, client: ssl.SSLContext, session=None) -> tuple[ssl.SSLSession, bool]:
    """Send the start of a request over REST or gRPC, and wait for the response.

    Returns:
        The session of TLS, and whether it is the given one, resumed.

    Raises:
        OSError: the server refuses the connection.
    """
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    with client.wrap_socket(connection, session=session) as encrypted:
        is_http2 = encrypted.selected_alpn_protocol() == "h2"
        encrypted.sendall(
            HTTP2_PREFACE if is_http2 else b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
        )
        if not encrypted.recv(1):
            raise ConnectionResetError
        return encrypted.session, bool(encrypted.session_reused)


def test_new_connections_use_changed_files(run, saved, pairs, files):
    server = start_server(run, saved, files)
    ports = server.rest_port, server.grpc_port
    old, new = ((pairs / f"{name}.pem").read_text() for name in ("old", "new"))
    client = create_client(pairs, "old", TLS_1_3, "rest")
    connection = http.client.HTTPSConnection("127.0.0.1", ports[0], context=client)
    with contextlib.closing(connection) as open_connection:
        open_connection.request("GET", "/v1/models/reverser")
        assert open_connection.getresponse().read()
        assert [get_certificate(port) for port in ports] == [old, old]
        replace(files, pairs, "new")
        server._certificates.watch.check()
        assert [get_certificate(port) for port in ports] == [old, old], "they may still be written"
        server._certificates.watch.check()
        assert [get_certificate(port) for port in ports] == [new, new]
        open_connection.request("GET", "/v1/models/reverser")
        assert open_connection.getresponse().status == 200
        assert open_connection.sock.getpeercert(binary_form=True) == ssl.PEM_cert_to_DER_cert(old)


def test_a_running_server_finds_changed_files(run, saved, pairs, files, monkeypatch):
    monkeypatch.setattr(file_watch, "_CHECK_SECONDS", 0.02)
    server = start_server(run, saved, files)
    replace(files, pairs, "new")
    ports, new = (server.rest_port, server.grpc_port), (pairs / "new.pem").read_text()
    end = time.monotonic() + 60
    while (current := [get_certificate(port) for port in ports]) != [new, new]:
        assert time.monotonic() < end, current
        time.sleep(0.05)
    server._certificates.watch.close()


@pytest.mark.parametrize("version", [TLS_1_2, TLS_1_3])
@pytest.mark.parametrize("api", ["rest", "grpc"])
def test_an_authority_that_is_no_longer_trusted(run, saved, pairs, files, version, api):
    server = start_server(run, saved, files, client_ca=files.client_ca)
    port = getattr(server, f"{api}_port")
    old, new = (create_client(pairs, name, version, api) for name in ("old", "new"))
    session, _ = connect(port, old)
    _, is_resumed = connect(port, old, session)
    assert is_resumed
    with pytest.raises(OSError):
        connect(port, new)
    replace(files, pairs, "new")
    for _ in range(2):
        server._certificates.watch.check()
    for earlier in (None, session):
        with pytest.raises(OSError):
            connect(port, old, earlier)
    connect(port, new)


def test_unusable_files_are_not_used(pairs, files, caplog):
    caplog.set_level(logging.INFO, "regard.serve")
    server_certificates = Certificates(files)
    context = server_certificates.rest_context.current_context
    shutil.copyfile(pairs / "new.key", files.key)
    for _ in range(4):
        server_certificates.watch.check()
    files.chain.unlink()
    for _ in range(2):
        server_certificates.watch.check()
    assert server_certificates.rest_context.current_context is context
    assert server_certificates._pop_pending_for_grpc() is None
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
    mismatch, missing = (record.getMessage() for record in caplog.records)
    assert "key.pem: The private key does not match" in mismatch
    assert "chain.pem: The file does not exist" in missing
    replace(files, pairs, "new")
    for _ in range(4):
        server_certificates.watch.check()
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR", "INFO"]
    assert server_certificates.rest_context.current_context is not context
    assert server_certificates._pop_pending_for_grpc() is not None
    assert server_certificates._pop_pending_for_grpc() is None


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), ValueError("?")])
def test_the_checks_go_on_after_any_error(pairs, files, caplog, monkeypatch, error):
    def fail(files):
        raise error

    server_certificates = Certificates(files)
    with monkeypatch.context() as patch:
        patch.setattr(TlsFiles, "load", fail)
        replace(files, pairs, "new")
        for _ in range(4):
            server_certificates.watch.check()
    assert [str(error) in record.getMessage() for record in caplog.records] == [True]
    server_certificates.watch.check()
    assert server_certificates._pop_pending_for_grpc() is not None


def test_authorities_alone(pairs, files):
    server_certificates = Certificates(files)
    assert files.client_ca is not None
    shutil.copyfile(pairs / "new.pem", files.client_ca)
    for _ in range(2):
        server_certificates.watch.check()
    (authority,) = server_certificates.rest_context.current_context.get_ca_certs()
    assert authority["subject"] == ((("commonName", "new"),),)
    assert server_certificates._pop_pending_for_grpc() is not None


def test_the_links_of_a_secret(pairs, tmp_path):
    """Kubernetes replaces the link to a folder with all files of a Secret."""
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        for file, source in (("tls.crt", "pem"), ("tls.key", "key")):
            shutil.copyfile(pairs / f"{name}.{source}", tmp_path / name / file)
    (tmp_path / "data").symlink_to("old")
    for file in ("tls.crt", "tls.key"):
        (tmp_path / file).symlink_to(Path("data", file))
    server_certificates = Certificates(TlsFiles(tmp_path / "tls.crt", tmp_path / "tls.key"))
    (tmp_path / "next").symlink_to("new")
    (tmp_path / "next").replace(tmp_path / "data")
    for _ in range(2):
        server_certificates.watch.check()
    assert server_certificates._pop_pending_for_grpc() is not None
    assert server_certificates.watch._current_contents.chain == (pairs / "new.pem").read_bytes()


def test_files_that_are_as_before_again(pairs, files, caplog):
    """The same error is logged again if there was none in between."""
    caplog.set_level(logging.INFO, "regard.serve")
    server_certificates = Certificates(files)
    for _ in range(2):
        files.key.write_text("")
        for _ in range(3):
            server_certificates.watch.check()
        replace(files, pairs, "old")
        for _ in range(3):
            server_certificates.watch.check()
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
