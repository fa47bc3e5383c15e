"""Commands in real time: emulated networks, measurements and calls."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from talkspurt._commands.options import (
    CallOptions,
    EmulateOptions,
    Flag,
    MeasureOptions,
    Several,
    app,
)  # fmt: skip
from talkspurt._text.escaping import visible


@app.command
def emulate(
    scenario: Path,
    /,
    *command: Annotated[str, Parameter(allow_leading_hyphen=True)],
    at: Several = None,
    serve: Several = None,
    shell: str | None = None,
    options: EmulateOptions = EmulateOptions(),
) -> int:
    """Run programs at the nodes of a scenario in real time, over its links and with its flows.

    Each named node becomes a network namespace whose only way out is the
    scenario's network. The emulation ends with the last command, or after the
    scenario's duration. The exit status is that of the first command that
    failed. Needs Linux, and root or user namespaces.

    Parameters
    ----------
    scenario
        TOML file that defines the network, and flows that share it.
    command
        --at NODE -- COMMAND, once for each command, after all other options.
    at
        Node of the command behind --. Names of nodes are host names there.
    serve
        As --at, for a command that others connect to: it is started first, and ended with the
        emulation.
    shell
        Node at which a shell is started.
    """
    from talkspurt.emulating import command as emulating

    commands = emulating.wanted(at or [], serve or [], command, sys.argv[2:])
    return emulating.run(scenario, commands, shell, options)


@app.command
def serve(
    *,
    listen: str = "127.0.0.1:7862",
    secret_file: Path | None = None,
    max_rate: str = "20Mbit/s",
    max_duration: str = "2min",
    max_sessions: int = 4,
    media_ports: str | None = None,
    user: str = "nobody",
    raw_ip: Flag = False,
    quiet: Flag = False,
) -> None:
    """Serve measurements of the path to this machine, for `talkspurt measure` elsewhere.

    Only clients with the same secret are served: it encrypts the control
    connection, and each session has keys of its own for its datagrams. By
    default only this machine can connect.

    Parameters
    ----------
    listen
        ADDRESS:PORT for the control connection (TCP); 0.0.0.0:7862 or [::]:7862 for all addresses.
    secret_file
        File with the shared secret, readable only by its owner; without it, the environment
        variable TALKSPURT_SECRET has the secret.
    max_rate
        Limit of the rate of a session, both directions together, with all headers.
    max_duration
        Limit of a measurement's duration.
    max_sessions
        Limit of the number of sessions at the same time.
    media_ports
        FIRST-LAST, the UDP ports for datagrams and ports of TCP, DCCP and SCTP for flows over them,
        to open in a firewall; default: any free port.
    user
        The user to become when started as root.
    raw_ip
        Serve DCCP and SCTP directly over IP, too, with raw sockets that root opens before it
        becomes the user.
    quiet
        Print nothing but errors.
    """
    from talkspurt import serve as served

    with served(
        listen, secret_file=secret_file, max_rate=max_rate, max_duration=max_duration,
        max_sessions=max_sessions, media_ports=media_ports, user=user, raw_ip=raw_ip,
    ) as server:  # fmt: skip
        if not quiet:
            print(
                f"Listening on {server.address}: at most {max_sessions} sessions, each of "
                f"{max_rate} in both directions together, for {max_duration}. Ctrl-C ends it.",
                flush=True,
            )
        for line in server.lines():
            if not quiet:
                print(visible(f"{time.strftime('%H:%M:%S')} {line}"), flush=True)


@app.command
def measure(
    host: str,
    /,
    *,
    secret_file: Path | None = None,
    options: MeasureOptions = MeasureOptions(),
) -> None:
    """Measure the path to a machine that runs `talkspurt serve`.

    Traffic is sent over the transports of scenarios, or over the kernel's TCP.

    The results are a folder like that of a run, for all commands that read
    one, with a folder for each transport if they are measured one after another.
    One-way delays have the clocks' drift removed, and are given with the
    bound of the clocks' offset.

    Parameters
    ----------
    host
        Name or address of the server, with :PORT unless it is 7862; [ADDRESS]:PORT for IPv6.
    secret_file
        File with the shared secret, readable only by its owner; without it, the environment
        variable TALKSPURT_SECRET has the secret.
    """
    from talkspurt._commands import live

    live.measure(host, options, secret_file)


@app.command
def answer(
    *,
    options: CallOptions = CallOptions(),
    listen: str = "127.0.0.1:7863",
    secret_file: Path | None = None,
    calls: int = 1,
    media_ports: str | None = None,
) -> None:
    """Answer a voice call of `talkspurt call` elsewhere: say what is in a file, keep what is heard.

    Only callers with the same secret are answered. Control connection, speech
    and signalling are encrypted. By default only this machine can call.
    Several calls have numbered folders.

    Parameters
    ----------
    listen
        ADDRESS:PORT for the control connection (TCP); 0.0.0.0:7863 or [::]:7863 for all addresses.
    secret_file
        File with the shared secret, readable only by its owner; without it, the environment
        variable TALKSPURT_SECRET has the secret.
    calls
        Number of calls after which it exits; one at a time.
    media_ports
        FIRST-LAST, the UDP ports for datagrams and TCP ports for flows over TCP, to open in a
        firewall; default: any free port.
    """
    from talkspurt._commands import live

    live.answer(
        options, listen=listen, secret_file=secret_file, calls=calls, media_ports=media_ports
    )


@app.command
def call(
    host: str,
    /,
    *,
    options: CallOptions = CallOptions(),
    secret_file: Path | None = None,
    transport: str = "udp",
    duration: Annotated[str | None, Parameter(name="--for")] = None,
    mtu: int = 1500,
    seed: int | None = None,
) -> None:
    """Call a machine that runs `talkspurt answer`: say what is in a file, keep what is heard.

    The results are a folder like that of a run, for all commands that read
    one, with the sound of both directions. Ctrl-C hangs up.

    Parameters
    ----------
    host
        Name or address of the answerer, with :PORT unless it is 7863; [ADDRESS]:PORT for IPv6.
    secret_file
        File with the shared secret, readable only by its owner; without it, the environment
        variable TALKSPURT_SECRET has the secret.
    transport
        One of those of `talkspurt measure`. tfrc-tb chooses among the agreed codecs of falling
        rate during the call.
    duration
        Length of the call, up to 1h; default: that of the speech, and 1h with a microphone.
    mtu
        Longest IP packet on the path, in bytes.
    seed
        Seed of the random parts of the protocols; default: another one each time.
    """
    from talkspurt._commands import live

    live.call(
        host, options, secret_file=secret_file, transport=transport, duration=duration, mtu=mtu,
        seed=seed,
    )  # fmt: skip
