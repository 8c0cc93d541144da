import shutil
import subprocess
from pathlib import Path

import pytest

from regard.core.errors import UserError
from regard.pipeline.deployment.tls_files import check_tls_files
from regard.serving.server.options import ServerOptions

PASSWORD = ["-aes256", "-passout", "pass:secret"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Two certificates with their keys, a key with a password, and a file of text."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    options = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    for name in ("server", "other"):
        openssl("req", *options, "-keyout", f"{name}.key", "-out", f"{name}.pem")
    openssl("rsa", *PASSWORD, "-in", "server.key", "-out", "locked.key")
    openssl("x509", "-in", "server.pem", "-outform", "der", "-out", "server.der")
    combined = (folder / "server.key").read_text() + (folder / "server.pem").read_text()
    (folder / "combined.pem").write_text(combined)
    (folder / "text").write_text("no certificate\n", encoding="utf-8")
    return folder


def test_usable_files(folder):
    check_tls_files(ServerOptions())
    tls_files = folder / "server.pem", folder / "server.key"
    check_tls_files(ServerOptions(tls_files=tls_files, client_ca=folder / "other.pem"))
    check_tls_files(ServerOptions(tls_files=(folder / "combined.pem", folder / "combined.pem")))


@pytest.mark.parametrize(
    ("chain", "key", "client_ca", "where", "message"),
    [
        ("none", "server.key", None, "none", "does not exist"),
        ("server.pem", "none", None, "none", "does not exist"),
        ("server.pem", "server.key", "none", "none", "does not exist"),
        ("server.pem", ".", None, ".", "not a regular file"),
        ("text", "server.key", None, "text", "cannot read a certificate"),
        ("server.der", "server.key", None, "server.der", "cannot read a certificate"),
        ("server.key", "server.pem", None, "server.key", "cannot read a certificate"),
        ("server.pem", "server.key", "text", "text", "cannot read a certificate"),
        ("server.pem", "text", None, "text", "cannot read a private key without a password"),
        ("server.pem", "locked.key", None, "locked.key", "a private key without a password"),
        ("server.pem", "other.key", None, "other.key", "not that of the certificate"),
    ],
)
def test_the_file_that_cannot_be_used_is_named(folder, chain, key, client_ca, where, message):
    tls_files = folder / chain, folder / key
    options = ServerOptions(
        tls_files=tls_files, client_ca=None if client_ca is None else folder / client_ca
    )
    with pytest.raises(UserError, match=message) as caught:
        check_tls_files(options)
    assert caught.value.where == str(folder / where)


def test_a_file_without_permission(folder, monkeypatch):
    def raise_error(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", raise_error)
    with pytest.raises(UserError, match="cannot be read: Permission denied"):
        check_tls_files(ServerOptions(client_ca=folder / "server.pem"))
