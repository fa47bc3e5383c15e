"""Ports for servers of tests."""

import contextlib
import random
import socket


def free_port():
    """A port that TCP and UDP do not use, and that the system gives to no connection meanwhile.

    Those are at 32768 and above (ip(7), ip_local_port_range); tests run side by side.
    """
    while True:
        port = random.randrange(20_000, 32_768)
        with (
            socket.socket() as tcp,
            socket.socket(type=socket.SOCK_DGRAM) as udp,
            contextlib.suppress(OSError),
        ):
            tcp.bind(("", port))
            udp.bind(("", port))
            return port
