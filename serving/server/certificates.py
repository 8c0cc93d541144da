"""The certificates of a server, which are renewed while it runs."""

from __future__ import annotations

import ssl
from collections import deque
from typing import Any

import grpc

from regard.serving.server.file_watch import FileWatch
from regard.serving.server.tls_files import TlsContents, TlsFiles


class Certificates:
    """The certificates of a server, for both of its APIs.

    New connections use changed files; open ones keep the certificate that they began with.

    Args:
        files: the TLS files.

    Attributes:
        rest_context: for the connections over REST.
        grpc_credentials: for the connections over gRPC.
        watch: the checks of the files.

    Raises:
        UserError: a file cannot be used.
    """

    def __init__(self, files: TlsFiles):
        self._files = files
        contents, context = files.load()
        self._pending_for_grpc = deque[grpc.ServerCertificateConfiguration](maxlen=1)
        self.rest_context = _RenewableContext(context)
        self.grpc_credentials = grpc.dynamic_ssl_server_credentials(
            _create_grpc_configuration(contents),
            self._pop_pending_for_grpc,
            require_client_authentication=files.client_ca is not None,
        )
        self.watch = FileWatch("certificates", contents, files.read, lambda changed: self._use())

    def _use(self) -> TlsContents:
        """Use the files for new connections, and return their contents.

        Raises:
            UserError: they cannot be used.
        """
        contents, context = self._files.load()
        self._pending_for_grpc.append(_create_grpc_configuration(contents))
        self.rest_context.current_context = context
        return contents

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
