"""``talkspurt serve``: the other end of ``talkspurt measure``, and the secret that both share."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import socket
import stat
import sys
import time
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


def secret(file: Path | None) -> bytes:
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
    with file.open("rb") as opened:
        mode = os.fstat(opened.fileno()).st_mode
        if stat.S_ISREG(mode) and mode & 0o077:
            raise BadInputError(
                visible(f"--secret-file {file}: others may read or write it; chmod 600 {file}")
            )
        return opened.read(4096)


def local(option: str, text: str) -> str:
    """ADDRESS:PORT with the number of an interface instead of its name.

    Raises:
        BadInputError: a link-local address has no interface, or one that is not there.
    """
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


def ports(text: str) -> tuple[int, int]:
    """The first and last port of FIRST-LAST.

    Raises:
        BadInputError: it is not that.
    """
    found = re.fullmatch(r"(\d{1,5})-(\d{1,5})", text)
    first, last = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1024 <= first <= last <= 65535:
        raise BadInputError(visible(f"--media-ports {text}: expected FIRST-LAST within 1024-65535"))
    return first, last


def serve(
    *,
    listen: str,
    secret_file: Path | None,
    max_rate: str,
    max_duration: str,
    max_sessions: int,
    media_ports: str | None,
    user: str,
    raw_ip: bool,
    quiet: bool,
) -> None:
    """Serve until a signal ends it."""
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
        chosen = None if media_ports is None else ports(media_ports)
    key = b""
    with faults.gathered():
        key = secret(secret_file)
    faults.check()
    try:
        server = _core.serve(
            listen, key, max_rate, max_duration, max_sessions, chosen, user, raw_ip
        )
    except (_core.RunError, ValueError) as error:
        raise BadInputError(visible(str(error))) from None
    if not quiet:
        print(
            f"Listening on {server.local}: at most {max_sessions} sessions, each of {max_rate} in "
            f"both directions together, for {max_duration}. Ctrl-C ends it.",
            flush=True,
        )
    try:
        while True:
            time.sleep(STEP_S)
            for line in server.lines():
                if not quiet:
                    now = time.strftime("%H:%M:%S")
                    print(visible(f"{now} {line}"), flush=True)
    finally:
        server.stop()
