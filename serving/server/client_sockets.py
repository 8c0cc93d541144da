"""Find the sockets of gRPC's clients, and close their connections."""

import contextlib
import ipaddress
import os
import socket
from collections.abc import Collection, Iterator
from typing import NamedTuple
from urllib.parse import unquote

_DESCRIPTORS = "/dev/fd"


class Address(NamedTuple):
    """One end of a connection.

    Attributes:
        host: an IP address; that of an IPv4 client of an IPv6 socket is an IPv4 address.
        port: the number of the port.
    """

    host: str
    port: int


def parse_peer(peer: str) -> Address:
    """Return the address in gRPC's name of a client, such as ``ipv6:%5B::1%5D:50000``."""
    host, _, port = unquote(peer).partition(":")[2].rpartition(":")
    return _address(host.strip("[]"), int(port))


def disconnect(peers: Collection[Address], port: int) -> None:
    """Close the connections of clients to a port of this process.

    gRPC's servers have no such function, nor one that ends a call whose response is not read. So
    this finds the sockets among the descriptors of the process, and shuts them down. gRPC then
    closes them as if the clients had done so.

    Args:
        peers: the addresses of the clients.
        port: the port of the server.
    """
    for name in os.listdir(_DESCRIPTORS):
        # Meanwhile gRPC may close the descriptor, and the system may use its number again.
        with contextlib.suppress(OSError), _open_socket(int(name)) as connection:
            if connection.family not in (socket.AF_INET, socket.AF_INET6):
                continue
            is_of_server = connection.getsockname()[1] == port
            if is_of_server and _address(*connection.getpeername()[:2]) in peers:
                connection.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def _open_socket(descriptor: int) -> Iterator[socket.socket]:
    """Open the socket of a descriptor with a descriptor of its own.

    Raises:
        OSError: the descriptor is closed, or is not that of a socket.
    """
    duplicate = os.dup(descriptor)
    try:
        connection = socket.socket(fileno=duplicate)
    except OSError:
        os.close(duplicate)
        raise
    with connection:
        yield connection


def _address(host: str, port: int) -> Address:
    address = ipaddress.ip_address(host.partition("%")[0])
    return Address(str(getattr(address, "ipv4_mapped", None) or address), port)
