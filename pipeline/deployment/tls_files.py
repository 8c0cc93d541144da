"""Check the TLS files of a server before it loads models."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

from regard.core.errors import NotFoundError, UserError
from regard.serving.server.options import ServerOptions


def check_tls_files(options: ServerOptions) -> None:
    """Check that the certificates and the private key can be read, and belong together.

    Raises:
        UserError: a file does not exist, cannot be read, or is not a PEM file with what it is for;
            the key has a password, or is not that of the certificate.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    def check_certificate(file: Path) -> None:
        _check(file, "a certificate", lambda: context.load_verify_locations(file))

    if options.client_ca is not None:
        check_certificate(options.client_ca)
    if options.tls_files is not None:
        chain, key = options.tls_files
        check_certificate(chain)

        def load_key() -> None:
            # Without a function for the password OpenSSL would ask for it on the terminal.
            context.load_cert_chain(chain, key, password=lambda: "")

        _check(key, "a private key without a password", load_key)


def _check(file: Path, content: str, load: Callable[[], None]) -> None:
    """Load a file, and report in its name what fails.

    Args:
        file: the file.
        content: what it must contain, for the message.
        load: loads it with OpenSSL.

    Raises:
        UserError: the file cannot be loaded.
    """
    try:
        if not file.exists():
            raise NotFoundError("The file does not exist.", where=str(file))
        if not file.is_file():
            raise UserError("The path is not a regular file.", where=str(file))
        load()
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            message = "The key is not that of the certificate."
            content = "the key of the certificate"
        else:
            message = f"OpenSSL cannot read {content} from the file."
        raise UserError(message, str(file), f"Give a PEM file with {content}.") from None
    except OSError as error:
        raise UserError(f"The file cannot be read: {error.strerror}", where=str(file)) from None
