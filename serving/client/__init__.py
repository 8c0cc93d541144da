"""A client for TensorFlow Serving, and for what stands in for it: one interface, two protocols."""

from serving.client.client import AsyncClient, Client
from serving.client.replies import ClientError, Reply, Row

__all__ = ["AsyncClient", "Client", "ClientError", "Reply", "Row"]
