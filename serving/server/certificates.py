"""The certificates of a server, which are renewed while it runs."""

from __future__ import annotations

import logging
import ssl
import threading
from collections import deque
from typing import Any

import grpc

from regard.serving.server.tls_files import TlsContents, TlsFiles

# Changed files are used when two successive checks find the same contents, and an error is logged
# when two find it: before that, a program may still be replacing the files.
_CHECK_SECONDS = 10.0
log = logging.getLogger("regard.serve")


class Certificates:
    """The certificates of a server, for both of its APIs.

    New connections use changed files; open ones keep the certificate that they began with. If
    changed files cannot be used, the earlier certificates stay, and the reason is logged.

    Args:
        files: the TLS files.

    Attributes:
        rest_context: for the connections over REST.
        grpc_credentials: for the connections over gRPC.

    Raises:
        UserError: a file cannot be used.
    """

    def __init__(self, files: TlsFiles):
        self._files = files
        self._current_contents, context = files.load()
        self._last_contents = self._current_contents
        self._last_error, self._checks_with_error = "", 0
        self._pending_for_grpc = deque[grpc.ServerCertificateConfiguration](maxlen=1)
        self.rest_context = _RenewableContext(context)
        self.grpc_credentials = grpc.dynamic_ssl_server_credentials(
            _create_grpc_configuration(self._current_contents),
            self._pop_pending_for_grpc,
            require_client_authentication=files.client_ca is not None,
        )
        self._closing = threading.Event()

    def start(self) -> None:
        """Check the files regularly, in a thread that may end with the process."""
        threading.Thread(target=self._keep_renewing, name="certificates", daemon=True).start()

    def close(self) -> None:
        """End the checks."""
        self._closing.set()

    def renew(self) -> None:
        """Check the files once."""
        try:
            self._use_changed_files()
            error = ""
        except Exception as raised:  # the next check may find files that can be used
            error = " ".join(str(raised).split())
        is_repeated, self._last_error = error == self._last_error, error
        self._checks_with_error = self._checks_with_error + 1 if is_repeated else 1
        if error and self._checks_with_error == 2:
            log.error("The earlier certificates stay in use: %s", error)

    def _keep_renewing(self) -> None:
        while not self._closing.wait(_CHECK_SECONDS):
            self.renew()

    def _use_changed_files(self) -> None:
        contents = self._files.read()
        is_complete, self._last_contents = contents == self._last_contents, contents
        if is_complete and contents != self._current_contents:
            contents, context = self._files.load()
            self._pending_for_grpc.append(_create_grpc_configuration(contents))
            self.rest_context.current_context = context
            self._current_contents = contents  # last: after an error, the next check tries again
            log.info("New connections use the changed TLS files.")

    def _pop_pending_for_grpc(self) -> grpc.ServerCertificateConfiguration | None:
        """Return the configuration that a new connection begins to use; None: it is the last one.

        gRPC calls this for each connection, in threads of its own.
        """
        try:
            return self._pending_for_grpc.pop()
        except IndexError:
            return None


class _RenewableContext(ssl.SSLContext):
    """A context that opens each connection with the current one.

    A connection cannot resume a session of an earlier context, so a client whose authority is no
    longer trusted has to present its certificate again.

    Attributes:
        current_context: the context of new connections.
    """

    current_context: ssl.SSLContext

    def __new__(cls, current_context: ssl.SSLContext) -> _RenewableContext:
        context = super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)
        context.current_context = current_context
        return context

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        return self.current_context.wrap_bio(*arguments, **options)


def _create_grpc_configuration(contents: TlsContents) -> grpc.ServerCertificateConfiguration:
    pairs = [(contents.key, contents.chain)]
    return grpc.ssl_server_certificate_configuration(pairs, contents.client_ca)
