"""The server of measurements, and what both ends share: the secret, addresses and ports."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import socket
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from talkspurt import _core
from talkspurt._text.escaping import visible
from talkspurt.errors import BadInputError, Faults

PORT = 7862
"""TCP port of the server unless told otherwise."""
SECRET = "TALKSPURT_SECRET"
"""Environment variable with the secret, where no file has it."""
STEP_S = 0.2


def supported() -> None:
    """Raise BadInputError where real-time sockets are not supported."""
    if not hasattr(_core, "serve"):
        raise BadInputError(f"serve and measure: only on Linux, and this is {sys.platform}")


def secret(file: str | os.PathLike[str] | None) -> bytes:
    """The shared secret, from a file or the environment.

    Raises:
        BadInputError: there is none, or the file can be read by others.
        OSError: the file cannot be read.
    """
    if file is None:
        found = os.environ.get(SECRET)
        if found is None:
            raise BadInputError(
                "no secret: name a file with --secret-file, or set TALKSPURT_SECRET. Make one with "
                "`(umask 077; openssl rand -hex 32 > secret)` and copy it to the other end"
            )
        return found.encode()
    with Path(file).open("rb") as opened:
        mode = os.fstat(opened.fileno()).st_mode
        if stat.S_ISREG(mode) and mode & 0o077:
            raise BadInputError(
                visible(f"--secret-file {file}: others may read or write it; chmod 600 {file}")
            )
        return opened.read(4096)


def local(option: str, text: str) -> str:
    """ADDRESS:PORT with the number of an interface instead of its name."""
    found = re.fullmatch(r"\[([^\]]+)\]:(\d+)", text)
    if found is None:
        return text  # IPv4, or checked where it is used
    address, _, interface = found[1].partition("%")
    need_interface(f"{option} {text}", found[1])
    if interface and not interface.isdigit():
        try:
            interface = str(socket.if_nametoindex(interface))
        except OSError:
            raise BadInputError(visible(f"{option} {text}: no interface {interface}")) from None
        return f"[{address}%{interface}]:{found[2]}"
    return text


def need_interface(given: str, name: str) -> None:
    """Raise BadInputError if a name is a link-local address of IPv6 without its interface."""
    with contextlib.suppress(ValueError):
        address = ipaddress.IPv6Address(name)
        if address.is_link_local and address.scope_id is None:
            raise BadInputError(
                visible(f"{given}: a link-local address needs its interface, as in [{name}%eth0]")
            )


def ports(given: str | tuple[int, int] | None) -> tuple[int, int] | None:
    """The first and last port of FIRST-LAST, or of a pair."""
    if given is None:
        return None
    text = given if isinstance(given, str) else "-".join(map(str, given))
    found = re.fullmatch(r"(\d{1,5})-(\d{1,5})", text)
    first, last = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1024 <= first <= last <= 65535:
        raise BadInputError(visible(f"--media-ports {text}: expected FIRST-LAST within 1024-65535"))
    return first, last


@contextlib.contextmanager
def refused() -> Iterator[None]:
    """Errors of sessions and servers as those of what was asked for."""
    try:
        yield
    except (_core.RunError, ValueError) as error:
        refusal = BadInputError(visible(str(error)))
        refusal.kind = getattr(error, "kind", None)
        raise refusal from None


def serve(
    listen: str = f"127.0.0.1:{PORT}",
    *,
    secret_file: str | os.PathLike[str] | None = None,
    max_rate: str = "20Mbit/s",
    max_duration: str = "2min",
    max_sessions: int = 4,
    media_ports: str | tuple[int, int] | None = None,
    user: str | None = None,
    raw_ip: bool = False,
) -> Server:
    """Serve measurements of the path to this machine, in threads of this process. Needs Linux.

    >>> with talkspurt.serve("127.0.0.1:0") as server:                    # doctest: +SKIP
    ...     talkspurt.measure(server.address, secret_file="secret").flows  # doctest: +SKIP

    Args:
        listen: ADDRESS:PORT of the control connection; port 0 for any free one.
        secret_file: file with the shared secret, readable only by its owner; default: the
            environment variable TALKSPURT_SECRET has the secret.
        max_rate: limit of the rate of a session, both directions together, with all headers.
        max_duration: limit of a measurement's duration.
        max_sessions: limit of the number of sessions at the same time.
        media_ports: first and last of the UDP ports for datagrams and ports of TCP, DCCP and SCTP
            for flows over them; default: any free port.
        user: give up all privileges, and ``sudo`` and the like, in this thread and those that it
            starts, for good, and become this user if the process is one of root, as ``talkspurt
            serve`` does; default: keep them.
        raw_ip: serve DCCP and SCTP directly over IP, too.

    Returns:
        The server, which listens until its ``with`` block ends or it is stopped.

    Raises:
        talkspurt.errors.BadInputError: if an argument is wrong, where messages name the option of
            ``talkspurt serve``, or if the address cannot be used.
        OSError: if the file of the secret cannot be read.
    """
    supported()
    faults = Faults()
    faults.add(f"--max-sessions {max_sessions}: expected 1 or more", unless=max_sessions >= 1)
    with faults.gathered():
        listen = local("--listen", listen)
        _core.check_address("--listen", listen)
    try:
        _core.rate_bps(max_rate)
    except ValueError as error:
        faults.add(f"--max-rate: {error}")
    with faults.gathered():
        _core.check_length("--max-duration", max_duration)
    chosen = None
    with faults.gathered():
        chosen = ports(media_ports)
    key = b""
    with faults.gathered():
        key = secret(secret_file)
    faults.check()
    with refused():
        return Server(
            _core.serve(listen, key, max_rate, max_duration, max_sessions, chosen, user, raw_ip)
        )


class Server:
    """A server of measurements that listens; as a context manager, until the block ends.

    Attributes:
        address: ADDRESS:PORT of the control connection.
    """

    def __init__(self, core: _core.Server) -> None:
        self._core = core
        self.address = core.local
        self._stopped = False

    @property
    def port(self) -> int:
        """The TCP port of the control connection."""
        return int(self.address.rpartition(":")[2])

    def lines(self) -> Iterator[str]:
        """Lines about sessions as they begin and end, until the server is stopped."""
        while not self._stopped:
            time.sleep(STEP_S)
            yield from self._core.lines()

    def stop(self) -> None:
        """Stop listening, and end all sessions."""
        self._stopped = True
        self._core.stop()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
