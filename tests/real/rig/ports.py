"""Free places on the loopback."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


def free_ports(count: int) -> list[int]:
    """Return that many different free ports of 127.0.0.1.

    All are held until the last is found, so no two are the same. Between here and the server's own bind another
    process may take one; the kernel hands such ports out in a random order, which makes that rare.
    """
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


@contextmanager
def occupied(port: int) -> Iterator[None]:
    """Keep a server from listening on a port of all addresses, by being bound to it without listening.

    For servers that insist on such a port and live well without it. Several rigs may hold the same one at a time.
    """
    with socket.socket(socket.AF_INET6) as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            holder.bind(("::", port))
        except OSError:
            pass  # Somebody else has it: then the server will not get it either.
        yield
