"""Commands in real time: emulated networks, measurements and calls."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from talkspurt._commands.options import Flag, Out, Report, Sets, Several, app
from talkspurt.errors import BadInputError


@app.command
def emulate(
    scenario: Path,
    /,
    *command: Annotated[str, Parameter(allow_leading_hyphen=True)],
    at: Several = None,
    serve: Several = None,
    shell: str | None = None,
    duration: Annotated[str | None, Parameter(name="--for")] = None,
    out: Out = None,
    set: Sets = None,
    seed: int | None = None,
    json: Flag = False,
    quiet: Flag = False,
    report: Report = True,
    overwrite: Flag = False,
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
    duration
        Length of the emulation, as in 60s; default: the scenario's duration.
    out
        Folder for the results; default: runs/NAME.
    set
        PATH=VALUE overrides a scenario field, as in --set links.sky.delay=20ms; may be repeated.
    seed
        Replaces the scenario's seed.
    json
        Print the result as a JSON document; results are written only with --out.
    quiet
        Print nothing but errors, besides what the commands print.
    report
        Whether to write report.html; without, an earlier one stays.
    overwrite
        Replace anything talkspurt wrote to the folder before, of this scenario or another.
    """
    from talkspurt.emulating import command as emulating

    return emulating.run(
        scenario,
        emulating.wanted(at or [], serve or [], command, sys.argv[2:]),
        shell,
        length=duration,
        out=out,
        sets=set or [],
        seed=seed,
        as_json=json,
        quiet=quiet,
        report=report,
        overwrite=overwrite,
    )


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
    from talkspurt.real_time import serving

    serving.serve(
        listen=listen, secret_file=secret_file, max_rate=max_rate, max_duration=max_duration,
        max_sessions=max_sessions, media_ports=media_ports, user=user, raw_ip=raw_ip,
        quiet=quiet,
    )  # fmt: skip


@app.command
def measure(
    host: str,
    /,
    *,
    secret_file: Path | None = None,
    transport: Several = None,
    traffic: Literal["cbr", "talkspurts", "bulk"] = "cbr",
    rate: str = "64kbit/s",
    packet: int | None = None,
    codec: str = "pcmu",
    up: Flag = False,
    down: Flag = False,
    both: Flag = False,
    for_: Annotated[str, Parameter(name="--for")] = "10s",
    together: Flag = False,
    mtu: int = 1500,
    seed: int | None = None,
    out: Out = None,
    json: Flag = False,
    quiet: Flag = False,
    report: Report = True,
    overwrite: Flag = False,
) -> None:
    """Measure the path to a machine that runs `talkspurt serve`.

    Traffic is sent over the transports of scenarios, or over the kernel's TCP.

    The results are a folder like that of a run, for all commands that read
    one. One-way delays have the clocks' drift removed, and are given with the
    bound of the clocks' offset.

    Parameters
    ----------
    host
        Name or address of the server, with :PORT unless it is 7862; [ADDRESS]:PORT for IPv6.
    secret_file
        File with the shared secret, readable only by its owner; without it, the environment
        variable TALKSPURT_SECRET has the secret.
    transport
        udp, tfrc, tfrc-tb, beritelli, dccp-ccid2, dccp-ccid3, dccp-ccid4 (in UDP, RFC 6773), sctp
        (in UDP, RFC 6951), each of these four with -ip, as in dccp-ccid3-ip (directly over IP; both
        ends need the privilege CAP_NET_RAW), tcp (the kernel's) or tcp-CONTROLLER, as in tcp-cubic,
        with a congestion controller of the sender's kernel; repeat it to measure several, one
        after another. Default: udp.
    traffic
        cbr: constant bit rate. talkspurts: speech with pauses, in the codec. bulk: as much as the
        transport permits, not over udp and tfrc-tb.
    rate
        Payload rate of cbr.
    packet
        Bytes of payload per packet of cbr (default: 160) and bulk (default: 1200).
    codec
        Codec of talkspurts, as in scenarios; tfrc-tb with pcmu steps down to G.726.
    up
        Only from here to the server.
    down
        Only from the server to here.
    both
        In both directions at the same time; the default.
    for_
        Duration of the traffic of each transport.
    together
        Measure all transports at the same time, in one result.
    mtu
        Longest IP packet on the path, in bytes.
    seed
        Seed of the random parts of the traffic; default: another one each time.
    out
        Folder for the results, with one folder per transport if they are measured one after
        another; default: runs/measure-HOST.
    json
        Print only a JSON document on standard output; results are written only with --out.
    quiet
        Print nothing but errors.
    report
        Whether to write report.html.
    overwrite
        Replace anything talkspurt wrote to the folder before.
    """
    from talkspurt.real_time import measuring

    if up + down + both > 1:
        raise BadInputError("--up, --down and --both: give one of them")
    wanted = measuring.Wanted(
        transports=transport or ["udp"], traffic=traffic, rate=rate, packet=packet, codec=codec,
        way="up" if up else "down" if down else "both", duration=for_, together=together, mtu=mtu,
        seed=seed,
    )  # fmt: skip
    measuring.run(
        host, wanted, secret_file=secret_file, out=out, as_json=json, quiet=quiet, report=report,
        overwrite=overwrite,
    )  # fmt: skip


@app.command
def answer(
    *,
    speech: Path | None = None,
    heard: Path | None = None,
    microphone: str | None = None,
    loudspeaker: str | None = None,
    listen: str = "127.0.0.1:7863",
    secret_file: Path | None = None,
    codec: str | None = None,
    calls: int = 1,
    media_ports: str | None = None,
    out: Out = None,
    json: Flag = False,
    quiet: Flag = False,
    report: Report = True,
    scores: Flag = False,
    overwrite: Flag = False,
) -> None:
    """Answer a voice call of `talkspurt call` elsewhere: say what is in a file, keep what is heard.

    Only callers with the same secret are answered. Control connection, speech
    and signalling are encrypted. By default only this machine can call.

    Parameters
    ----------
    speech
        WAV file of what is said here; silence follows until the call ends.
    heard
        WAV file for what is heard here; that of a second call is NAME-2.wav.
    microphone
        In place of the file: a source of PulseAudio or PipeWire, or default.
    loudspeaker
        Play what is heard there, too: a sink of PulseAudio or PipeWire, or default.
    listen
        ADDRESS:PORT for the control connection (TCP); 0.0.0.0:7863 or [::]:7863 for all addresses.
    secret_file
        File with the shared secret, readable only by its owner; without it, the environment
        variable TALKSPURT_SECRET has the secret.
    codec
        Codecs to agree to, as in pcmu,opus; default: all that a call can have. The caller's order
        decides.
    calls
        Number of calls after which it exits; one at a time.
    media_ports
        FIRST-LAST, the UDP ports for datagrams and TCP ports for flows over TCP, to open in a
        firewall; default: any free port.
    out
        Folder for the results, with numbered folders if there are several calls; default:
        runs/answer.
    json
        Print only a JSON document for each call on standard output; results are written only with
        --out.
    quiet
        Print nothing but errors.
    report
        Whether to write report.html.
    scores
        Score the sound with PESQ, ViSQOL and PLCMOS (needs the extra `scores`).
    overwrite
        Replace anything talkspurt wrote to the folder before.
    """
    from talkspurt.real_time import calling

    calling.answer(
        calling.Kept(
            speech=speech, heard=heard, microphone=microphone, loudspeaker=loudspeaker, codec=codec,
            out=out, as_json=json, quiet=quiet, report=report, scores=scores, overwrite=overwrite,
        ),
        listen=listen, secret_file=secret_file, calls=calls, media_ports=media_ports,
    )  # fmt: skip


@app.command
def call(
    host: str,
    /,
    *,
    speech: Path | None = None,
    heard: Path | None = None,
    microphone: str | None = None,
    loudspeaker: str | None = None,
    secret_file: Path | None = None,
    transport: str = "udp",
    codec: str | None = None,
    for_: Annotated[str | None, Parameter(name="--for")] = None,
    mtu: int = 1500,
    seed: int | None = None,
    out: Out = None,
    json: Flag = False,
    quiet: Flag = False,
    report: Report = True,
    scores: Flag = False,
    overwrite: Flag = False,
) -> None:
    """Call a machine that runs `talkspurt answer`: say what is in a file, keep what is heard.

    The results are a folder like that of a run, for all commands that read
    one, with the sound of both directions. Ctrl-C hangs up.

    Parameters
    ----------
    host
        Name or address of the answerer, with :PORT unless it is 7863; [ADDRESS]:PORT for IPv6.
    speech
        WAV file of what is said here; silence follows until the call ends.
    heard
        WAV file for what is heard here.
    microphone
        In place of the file: a source of PulseAudio or PipeWire, or default.
    loudspeaker
        Play what is heard there, too: a sink of PulseAudio or PipeWire, or default.
    secret_file
        File with the shared secret, readable only by its owner; without it, the environment
        variable TALKSPURT_SECRET has the secret.
    transport
        udp, tfrc, tfrc-tb, beritelli, dccp-ccid2, dccp-ccid3, dccp-ccid4 (in UDP, RFC 6773), sctp
        (in UDP, RFC 6951), each of these four with -ip, as in dccp-ccid3-ip (directly over IP; both
        ends need the privilege CAP_NET_RAW), tcp (the kernel's) or tcp-CONTROLLER, as in tcp-cubic.
        tfrc-tb chooses among the agreed codecs of falling rate during the call.
    codec
        Codecs to offer in order of preference, as in opus,pcmu; default: opus, g722, pcmu, pcma;
        with tfrc-tb pcmu and G.726 at 40, 32, 24 and 16 kbit/s.
    for_
        Length of the call, up to 1h; default: that of the speech, and 1h with a microphone.
    mtu
        Longest IP packet on the path, in bytes.
    seed
        Seed of the random parts of the protocols; default: another one each time.
    out
        Folder for the results; default: runs/call-HOST.
    json
        Print only a JSON document on standard output; results are written only with --out.
    quiet
        Print nothing but errors.
    report
        Whether to write report.html.
    scores
        Score the sound with PESQ, ViSQOL and PLCMOS (needs the extra `scores`).
    overwrite
        Replace anything talkspurt wrote to the folder before.
    """
    from talkspurt.real_time import calling

    calling.call(
        host,
        calling.Kept(
            speech=speech, heard=heard, microphone=microphone, loudspeaker=loudspeaker, codec=codec,
            out=out, as_json=json, quiet=quiet, report=report, scores=scores, overwrite=overwrite,
        ),
        secret_file=secret_file, transport=transport, duration=for_, mtu=mtu, seed=seed,
    )  # fmt: skip
