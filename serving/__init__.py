"""Everything that works on an exported SavedModel: checks, conversion, serving, the client."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.serving.client import AsyncClient, Client

__all__ = ["AsyncClient", "Client"]


def __getattr__(name: str) -> Any:
    # Imported on demand: a check of a model needs neither gRPC nor HTTP.
    if name in __all__:
        from regard.serving import client

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
