"""The port on which the machines of a launch meet."""

from __future__ import annotations

import socket

import psutil


def free_port() -> int:
    """A port that nothing listens on now; another process may take it before it is used."""
    with socket.socket(socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET) as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def taken(port: int) -> bool:
    """Whether some process listens on the port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return True
        return False


def listens(root: int, port: int) -> bool:
    """Whether a descendant of the process ``root`` listens on the port."""
    try:
        family = psutil.Process(root).children(recursive=True)
    except psutil.NoSuchProcess:
        return False
    for process in family:
        try:
            found = process.net_connections("tcp")
        except psutil.Error:  # it has ended
            continue
        if any(item.status == psutil.CONN_LISTEN and item.laddr.port == port for item in found):
            return True
    return False
