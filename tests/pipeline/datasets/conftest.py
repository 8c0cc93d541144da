"""The server of the downloads."""

from tests.download_server import server

__all__ = ["server"]
