"""A client for TensorFlow Serving and `regard serve`, over gRPC and REST, without TensorFlow."""

from regard.serving.client.client import AsyncClient, Client
from regard.serving.client.conversion import ClientError, Row

__all__ = ["AsyncClient", "Client", "ClientError", "Row"]
