"""The certificates of a server, which are renewed while it runs."""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import Any

import grpc

from regard.core.errors import UserError
from regard.serving.server.tls_files import TlsContents, TlsFiles

# Changed files are used when two successive checks find the same contents: before that, a program
# may still be writing them.
_CHECK_SECONDS = 10.0
log = logging.getLogger("regard.serve")


class Certificates:
    """The certificates of a server, for both of its APIs.

    New connections use changed files; open ones keep the certificate that they began with.

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
        self._used, context = files.load()
        self._last_contents = self._used
        self._logged_error = ""
        self._renewed_for_grpc: grpc.ServerCertificateConfiguration | None = None
        self.rest_context = _RenewableContext(context)
        self.grpc_credentials = grpc.dynamic_ssl_server_credentials(
            _create_grpc_configuration(self._used),
            self._take_renewed_for_grpc,
            require_client_authentication=files.client_ca is not None,
        )

    async def keep_renewing(self) -> None:
        """Look for changed files until the task is cancelled."""
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            await asyncio.to_thread(self.renew)

    def renew(self) -> None:
        """Use changed files if they are complete.

        If they cannot be used, the earlier certificates stay, and the reason is logged once.
        """
        try:
            self._use_changed_files()
        except UserError as error:
            if str(error) != self._logged_error:
                log.error("The earlier certificates stay in use: %s", error)
            self._logged_error = str(error)
        else:
            self._logged_error = ""

    def _use_changed_files(self) -> None:
        contents = self._files.read()
        is_complete, self._last_contents = contents == self._last_contents, contents
        if is_complete and contents != self._used:
            self._used, self.rest_context.current = self._files.load()
            self._renewed_for_grpc = _create_grpc_configuration(self._used)
            log.info("New connections use the changed TLS files.")

    def _take_renewed_for_grpc(self) -> grpc.ServerCertificateConfiguration | None:
        """Return the changed files, once; gRPC asks at each connection and reads them then."""
        renewed, self._renewed_for_grpc = self._renewed_for_grpc, None
        return renewed


class _RenewableContext(ssl.SSLContext):
    """A context that opens each connection with the current one.

    A connection cannot resume a session of an earlier context, so a client whose authority is no
    longer trusted has to present its certificate again.

    Attributes:
        current: the context of new connections.
    """

    current: ssl.SSLContext

    def __new__(cls, current: ssl.SSLContext) -> _RenewableContext:
        context = super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)
        context.current = current
        return context

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        return self.current.wrap_bio(*arguments, **options)


def _create_grpc_configuration(contents: TlsContents) -> grpc.ServerCertificateConfiguration:
    pairs = [(contents.key, contents.chain)]
    return grpc.ssl_server_certificate_configuration(pairs, contents.client_ca)
