"""Read and check the TLS files of a server."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path

import grpc

from regard.core.errors import UserError
from regard.serving.server.file_watch import read_file
from regard.serving.server.options import ServerOptions

_MAX_BYTES = 4 << 20  # ten times the size of a system's certificates
# gRPC requires this line exactly, OpenSSL also accepts others.
_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"
_CHANGED = "Repeat the command when all files are written."
_GRPC_KEYS = "Use keys of RSA, of Ed25519, or of the curves P-256, P-384 and P-521."
# OpenSSL's names of its errors for keys of the same type and of different types.
_MISMATCHES = ("KEY_VALUES_MISMATCH", "NO_CERTIFICATE_ASSIGNED")


@dataclass(frozen=True)
class TlsFiles:
    """The PEM files of a server.

    Attributes:
        chain: the certificate chain.
        key: its private key.
        client_ca: the authorities of the clients' certificates; None: clients need no certificate.
    """

    chain: Path
    key: Path
    client_ca: Path | None = None

    @classmethod
    def from_options(cls, options: ServerOptions) -> TlsFiles | None:
        """Return the files of a server; None: it does not use TLS.

        Raises:
            UserError: there are authorities of clients, but no certificate.
        """
        if options.tls_files is not None:
            return cls(*options.tls_files, options.client_ca)
        if options.client_ca is not None:
            remedy = "Give a certificate and its key too."
            raise UserError("Certificates of clients need TLS.", str(options.client_ca), remedy)
        return None

    def read(self) -> TlsContents:
        """Return the contents of the files, which are not checked.

        Raises:
            UserError: a file does not exist, or cannot be read.
        """
        client_ca = None if self.client_ca is None else read_file(self.client_ca, _MAX_BYTES)
        return TlsContents(
            read_file(self.chain, _MAX_BYTES), read_file(self.key, _MAX_BYTES), client_ca
        )

    def load(self) -> tuple[TlsContents, ssl.SSLContext]:
        """Return the contents of the files, and a context with them.

        Raises:
            UserError: a file does not exist, cannot be read, or contains no certificate or private
                key in PEM; the key has a password, or does not match the certificate; gRPC cannot
                use them; a file changes while it is read.
        """
        contents = self.read()
        try:
            context = self._create_context()
        except OSError as error:  # OpenSSL opens the files again
            message = f"A TLS file can no longer be read: {error.strerror}."
            raise UserError(message, str(self.chain), _CHANGED) from None
        if not _is_usable_for_grpc(contents):
            message = "gRPC cannot use the certificate, its key, or the authorities."
            raise UserError(message, str(self.chain), _GRPC_KEYS)
        if self.read() != contents:
            raise UserError("A TLS file changed while it was read.", str(self.chain), _CHANGED)
        return contents, context

    def _create_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if self.client_ca is not None:
            _load_authorities(self.client_ca, context)
            context.verify_mode = ssl.CERT_REQUIRED
        # In another context, because clients with a certificate of this server must not be trusted.
        _load_authorities(self.chain, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        _load_pair(self.chain, self.key, context)
        return context


@dataclass(frozen=True)
class TlsContents:
    """The contents of `TlsFiles`."""

    chain: bytes
    key: bytes = field(repr=False)
    client_ca: bytes | None


def _load_authorities(file: Path, context: ssl.SSLContext) -> None:
    """Load the certificates of a file as authorities.

    Raises:
        UserError: the file contains no certificate.
    """
    remedy = f"Give a PEM file with a line {_CERTIFICATE.decode()} before each certificate."
    if _CERTIFICATE not in map(bytes.rstrip, read_file(file, _MAX_BYTES).splitlines()):
        raise UserError("The file contains no certificate in PEM.", str(file), remedy)
    try:
        context.load_verify_locations(file)
    except ssl.SSLError:
        message = "OpenSSL cannot read a certificate from the file."
        raise UserError(message, str(file), remedy) from None


def _load_pair(chain: Path, key: Path, context: ssl.SSLContext) -> None:
    """Load the certificates of a server and the key of the first of them.

    Raises:
        UserError: the key is not one of that certificate.
    """

    def refuse_password() -> str:
        # Without this function OpenSSL asks for the password on the terminal.
        remedy = "Give a key without a password; openssl pkey removes it."
        raise UserError("The private key has a password.", str(key), remedy)

    try:
        context.load_cert_chain(chain, key, password=refuse_password)
    except ssl.SSLError as error:
        remedy = "Give a PEM file with the private key of the certificate."
        if error.reason in _MISMATCHES:
            message = "The private key does not match the certificate."
            raise UserError(message, str(key), remedy) from None
        if error.reason is not None:
            message = f"OpenSSL refuses the certificate: {error.reason}."
            raise UserError(message, str(chain), "Use another certificate.") from None
        message = "OpenSSL cannot read a private key from the file."
        raise UserError(message, str(key), remedy) from None


def _is_usable_for_grpc(contents: TlsContents) -> bool:
    """Return whether gRPC, which has another library than Python, accepts a certificate."""
    server = grpc.server(None)
    pairs = [(contents.key, contents.chain)]
    is_strict = contents.client_ca is not None
    credentials = grpc.ssl_server_credentials(pairs, contents.client_ca, is_strict)
    try:
        server.add_secure_port("127.0.0.1:0", credentials)  # never started
    except RuntimeError:
        return False
    finally:
        server.stop(None)
    return True
