import shutil
import ssl
import subprocess
from pathlib import Path

import grpc
import pytest

from regard.core.errors import UserError
from regard.serving.server import tls_files
from regard.serving.server.options import ServerOptions
from regard.serving.server.tls_files import TlsFiles

KEYS = {
    "server": ["rsa:2048"],
    "other": ["rsa:2048"],
    "weak": ["rsa:1024"],
    "elliptic": ["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"],
    "p521": ["ec", "-pkeyopt", "ec_paramgen_curve:secp521r1"],
    "ed25519": ["ed25519"],
    "bitcoin": ["ec", "-pkeyopt", "ec_paramgen_curve:secp256k1"],
    "ed448": ["ed448"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Certificates with their keys, and files that cannot be used."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    for name, key in KEYS.items():
        options = ["-x509", "-newkey", *key, "-nodes", "-days", "2", "-subj", "/CN=localhost"]
        openssl("req", *options, "-keyout", f"{name}.key", "-out", f"{name}.pem")
    openssl("rsa", "-traditional", "-in", "server.key", "-out", "pkcs1.key")
    openssl("rsa", "-aes256", "-passout", "pass:secret", "-in", "server.key", "-out", "locked.key")
    # The password is empty.
    openssl("pkcs8", "-topk8", "-passout", "pass:", "-in", "server.key", "-out", "empty.key")
    openssl("x509", "-in", "server.pem", "-outform", "der", "-out", "server.der")
    openssl("x509", "-in", "server.pem", "-trustout", "-out", "trusted.pem")
    server = (folder / "server.pem").read_text()
    (folder / "combined.pem").write_text((folder / "server.key").read_text() + server)
    chain = f"the server\n{server}its authority\n{(folder / 'other.pem').read_text()}"
    (folder / "chain.pem").write_text(chain)
    (folder / "windows.pem").write_bytes(server.replace("\n", "\r\n").encode())
    (folder / "link.pem").symlink_to("server.pem")  # as the secrets of Kubernetes
    (folder / "link.key").symlink_to("server.key")
    (folder / "bom.pem").write_text(server, encoding="utf-8-sig")
    (folder / "damaged.pem").write_text(server.replace("M", "!", 1))
    (folder / "text").write_text("no certificate\n")
    return folder


def accepts(chain: Path, key: Path) -> bool:
    """Whether gRPC starts a server with these files."""
    server = grpc.server(None)
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), chain.read_bytes())])
    try:
        return bool(server.add_secure_port("127.0.0.1:0", credentials))
    except RuntimeError:
        return False


@pytest.mark.parametrize(
    ("chain", "key"),
    [
        ("server.pem", "server.key"),
        ("server.pem", "pkcs1.key"),
        ("elliptic.pem", "elliptic.key"),
        ("p521.pem", "p521.key"),
        ("ed25519.pem", "ed25519.key"),
        ("combined.pem", "combined.pem"),
        ("chain.pem", "server.key"),
        ("windows.pem", "server.key"),
        ("link.pem", "link.key"),
    ],
)
def test_usable_files(folder, chain, key):
    files = TlsFiles(folder / chain, folder / key, client_ca=folder / "chain.pem")
    contents, _ = files.load()
    assert contents == files.read()
    assert accepts(files.chain, files.key)


@pytest.mark.parametrize(
    ("chain", "key"),
    [
        ("bom.pem", "server.key"),
        ("trusted.pem", "server.key"),
        ("bitcoin.pem", "bitcoin.key"),
        ("ed448.pem", "ed448.key"),
    ],
)
def test_grpc_refuses_some_certificates_of_openssl(folder, chain, key):
    """If it accepts them some day, `TlsFiles` can, too."""
    assert not accepts(folder / chain, folder / key)


def test_the_files_of_a_server(folder):
    assert TlsFiles.from_options(ServerOptions()) is None
    with pytest.raises(UserError, match="need TLS") as caught:
        TlsFiles.from_options(ServerOptions(client_ca=Path("clients.pem")))
    assert caught.value.where == "clients.pem"
    chain, key = folder / "server.pem", folder / "server.key"
    options = ServerOptions(tls_files=(chain, key), client_ca=folder / "other.pem")
    assert TlsFiles.from_options(options) == TlsFiles(chain, key, folder / "other.pem")


def test_files_that_change_while_they_are_read(folder, tmp_path, monkeypatch):
    """The chain is renewed after the contents were read, and before the context is made."""
    chain = tmp_path / "chain.pem"
    chain.write_bytes((folder / "server.pem").read_bytes())
    files = TlsFiles(chain, folder / "server.key")
    old = files.read()
    chain.write_bytes((folder / "chain.pem").read_bytes())
    contents = iter([old, files.read()])
    monkeypatch.setattr(TlsFiles, "read", lambda self: next(contents))
    with pytest.raises(UserError, match="changed while"):
        files.load()


@pytest.mark.parametrize("removed", ["chain.pem", "key.pem", "client_ca.pem"])
def test_a_file_that_is_removed_after_it_was_read(folder, tmp_path, monkeypatch, removed):
    """Other names of the same files are read, so that only OpenSSL finds that one is missing."""
    files = TlsFiles(*(tmp_path / name for name in ("chain.pem", "key.pem", "client_ca.pem")))
    sources = {files.chain: "server.pem", files.key: "server.key", files.client_ca: "other.pem"}
    for path, source in sources.items():
        path.write_bytes((folder / source).read_bytes())
    (tmp_path / removed).unlink()
    monkeypatch.setattr(
        tls_files, "read_file", lambda path, max_bytes: (folder / sources[path]).read_bytes()
    )
    with pytest.raises(UserError, match="can no longer be read: No such file"):
        files.load()


def test_a_client_is_not_trusted_for_a_certificate_of_the_server(folder):
    files = TlsFiles(folder / "server.pem", folder / "server.key", folder / "other.pem")
    _, context = files.load()
    assert len(context.get_ca_certs()) == 1
    assert context.verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("chain", "key", "client_ca", "where", "message"),
    [
        ("none", "server.key", None, "none", "does not exist"),
        ("server.pem", "none", None, "none", "does not exist"),
        ("server.pem", "server.key", "none", "none", "does not exist"),
        ("server.pem", ".", None, ".", "not a regular file"),
        ("text", "server.key", None, "text", "no certificate"),
        ("server.der", "server.key", None, "server.der", "no certificate"),
        ("server.key", "server.pem", None, "server.key", "no certificate"),
        ("bom.pem", "server.key", None, "bom.pem", "no certificate"),
        ("trusted.pem", "server.key", None, "trusted.pem", "no certificate"),
        ("damaged.pem", "server.key", None, "damaged.pem", "cannot read a certificate"),
        ("weak.pem", "weak.key", None, "weak.pem", "KEY_TOO_SMALL"),
        ("bitcoin.pem", "bitcoin.key", None, "bitcoin.pem", "gRPC cannot use"),
        ("ed448.pem", "ed448.key", None, "ed448.pem", "gRPC cannot use"),
        ("server.pem", "server.key", "text", "text", "no certificate"),
        ("server.pem", "text", None, "text", "cannot read a private key"),
        ("server.pem", "locked.key", None, "locked.key", "has a password"),
        ("server.pem", "empty.key", None, "empty.key", "has a password"),
        ("server.pem", "other.key", None, "other.key", "does not match"),
        ("server.pem", "elliptic.key", None, "elliptic.key", "does not match"),
        ("elliptic.pem", "server.key", None, "server.key", "does not match"),
    ],
)
def test_the_file_that_cannot_be_used_is_named(folder, chain, key, client_ca, where, message):
    authorities = None if client_ca is None else folder / client_ca
    files = TlsFiles(folder / chain, folder / key, authorities)
    with pytest.raises(UserError, match=message) as caught:
        files.load()
    assert caught.value.where == str(folder / where)


def test_a_file_without_permission(folder, monkeypatch):
    def raise_error(path, flags, *arguments, **options):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("os.open", raise_error)
    with pytest.raises(UserError, match="cannot be read: Permission denied"):
        TlsFiles(folder / "server.pem", folder / "server.key").load()
