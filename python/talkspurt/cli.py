"""The command line: each command parses its arguments, calls the package and prints results.

Everything it does is available from Python. Polars, matplotlib and the report are imported only by
commands that need them, so that ``--help`` is fast.
Exit codes: 0 success, 1 failure, 2 invalid input, 130 Ctrl-C, 143 terminated; of ``emulate``, that
of a command that failed.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import math
import os
import shlex
import signal
import sys
import threading
import warnings
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Literal

from cyclopts import App, CycloptsError, Parameter

from talkspurt import __version__, _core, interrupts, problems, templates
from talkspurt.errors import BadInputError, OtherVersionWarning
from talkspurt.interrupts import Terminated
from talkspurt.visible import below, guard, visible

if TYPE_CHECKING:
    from types import FrameType

    from rich.console import Console

app = App(
    name="talkspurt",
    help="A laboratory for the transport of live voice and video.",
    version=__version__,
    help_format="plaintext",
    suppress_keyboard_interrupt=False,  # main reports the partial results
)


@app.command
def run(
    scenario: Path,
    /,
    *,
    out: Annotated[Path | None, Parameter(name="--out", alias="-o")] = None,
    set: Annotated[list[str] | None, Parameter(name="--set", alias="-s", negative=())] = None,
    seed: int | None = None,
    json: Annotated[bool, Parameter(name="--json", negative=())] = False,
    report: Annotated[bool, Parameter(negative="--no-report", show_default=False)] = True,
    pdf: Annotated[bool, Parameter(name="--pdf", negative=())] = False,
    jobs: Annotated[int | None, Parameter(name="--jobs", alias="-j")] = None,
    overwrite: Annotated[bool, Parameter(name="--overwrite", negative=())] = False,
    watch: Annotated[bool, Parameter(name="--watch", negative=())] = False,
    scores: Annotated[bool, Parameter(name="--scores", negative=())] = False,
    until: Annotated[list[str] | None, Parameter(name="--until", negative=())] = None,
    most: int | None = None,
    shard: str | None = None,
    cluster: str | None = None,
    tls_ca: Path | None = None,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    plain_tcp: Annotated[bool, Parameter(name="--plain-tcp", negative=())] = False,
) -> None:
    """Run a scenario, print a summary of each flow and write all results to a folder.

    Parameters
    ----------
    scenario
        TOML file that defines the network, the flows and the measurements.
    out
        Folder for the results, or a URL such as s3://bucket/name; default: runs/NAME. Earlier
        results of the same scenario are replaced when the run is done; those of another scenario,
        and exports, only with --overwrite; a folder with other content is never changed.
    set
        PATH=VALUE overrides a scenario field, as in --set links.sky.delay=20ms; may be repeated.
    seed
        Replaces the scenario's seed: 0 to 9223372036854775807 (2^63 − 1).
    json
        Print only a JSON document on standard output; results are written only with --out.
    report
        Whether to write report.html; without, an earlier one stays.
    pdf
        Also write every figure to figures/, as SVG, PNG and PDF.
    jobs
        Concurrent runs, with axes or replications; default: all cores.
    overwrite
        Replace anything talkspurt wrote to the folder before, of this scenario or another.
    watch
        Run again whenever the scenario, or a file that it names, changes; Ctrl-C ends it.
    scores
        Score the sound of calls by PESQ, ViSQOL and PLCMOS, some seconds for each minute of a
        call. Needs pip install 'talkspurt[scores]'.
    until
        MEASURE=WIDTH runs more replications until half the interval of a measure is at most WIDTH
        for every flow and setting: mos=0.1, delay_p95_s=5ms or, of the mean, goodput_bps=5%; may
        be repeated.
    most
        Maximum number of replications with --until; default: 100.
    shard
        I/N runs every N-th run of a study from the I-th into a folder (default:
        runs/NAME-I-of-N), without a report. `talkspurt merge` makes a study of all N.
    cluster
        Workers for the runs of a study: tls://HOST:PORT or tcp://HOST:PORT of a scheduler of
        dask.distributed, or local:N for N processes here. Needs pip install 'talkspurt[cluster]'.
    tls_ca
        Certificate of the authority that signed those of the cluster; default: dask's settings.
    tls_cert
        Our certificate.
    tls_key
        Our private key.
    plain_tcp
        Permit tcp:// to other machines, where whoever reaches a port can execute code.
    """
    from talkspurt import running

    if jobs is not None and jobs < 1:
        raise BadInputError(f"--jobs {jobs}: expected 1 or more")
    if pdf and not report:
        raise BadInputError("--pdf and --no-report: without a report no figure is drawn")
    if shard is not None:
        if watch or until or pdf or cluster:
            raise BadInputError("--shard: not together with --watch, --until, --pdf or --cluster")
        from talkspurt import shards

        shards.run_and_say(
            scenario, shard, out=out, sets=set or [], seed=seed, as_json=json, jobs=jobs,
            overwrite=overwrite, scores=scores,
        )  # fmt: skip
        return
    workers = None
    if cluster is not None:
        from talkspurt.cluster import Address

        files = {"ca": tls_ca, "cert": tls_cert, "key": tls_key}
        workers = Address(cluster, files, plain=plain_tcp)
        workers.check()
    elif plain_tcp or tls_ca or tls_cert or tls_key:
        raise BadInputError("--plain-tcp and --tls-…: for --cluster, which is not given")
    once = functools.partial(
        running.run,
        scenario,
        out=out,
        sets=set or [],
        seed=seed,
        as_json=json,
        report=report,
        pdf=pdf,
        jobs=jobs,
        overwrite=overwrite,
        scores=scores,
        until=until or [],
        at_most=most,
        cluster=workers,
    )
    if watch:
        running.watch(scenario, set or [], once, lambda error: explain(error) is not None)
    else:
        once()


@app.command
def emulate(
    scenario: Path,
    /,
    *command: Annotated[str, Parameter(allow_leading_hyphen=True)],
    at: Annotated[list[str] | None, Parameter(name="--at", negative=())] = None,
    serve: Annotated[list[str] | None, Parameter(name="--serve", negative=())] = None,
    shell: str | None = None,
    duration: Annotated[str | None, Parameter(name="--for")] = None,
    out: Annotated[Path | None, Parameter(name="--out", alias="-o")] = None,
    set: Annotated[list[str] | None, Parameter(name="--set", alias="-s", negative=())] = None,
    seed: int | None = None,
    json: Annotated[bool, Parameter(name="--json", negative=())] = False,
    report: Annotated[bool, Parameter(negative="--no-report", show_default=False)] = True,
    overwrite: Annotated[bool, Parameter(name="--overwrite", negative=())] = False,
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
    report
        Whether to write report.html; without, an earlier one stays.
    overwrite
        Replace anything talkspurt wrote to the folder before, of this scenario or another.
    """
    from talkspurt.emulating import command as emulating

    return emulating.run(
        scenario,
        emulating.wanted(at or [], serve or [], command),
        shell,
        length=duration,
        out=out,
        sets=set or [],
        seed=seed,
        as_json=json,
        report=report,
        overwrite=overwrite,
    )


@app.command
def merge(
    *shards: Path,
    out: Annotated[Path | None, Parameter(name="--out", alias="-o")] = None,
    json: Annotated[bool, Parameter(name="--json", negative=())] = False,
    report: Annotated[bool, Parameter(negative="--no-report", show_default=False)] = True,
    pdf: Annotated[bool, Parameter(name="--pdf", negative=())] = False,
    overwrite: Annotated[bool, Parameter(name="--overwrite", negative=())] = False,
) -> None:
    """Merge the shards of a study into a folder with the same tables as one run of all.

    Parameters
    ----------
    shards
        Folders of all shards, each written by `talkspurt run STUDY --shard I/N`.
    out
        Folder for the study; default: runs/NAME.
    json
        Print only a JSON document on standard output.
    report
        Whether to draw figures and write report.html; without, earlier ones stay.
    pdf
        Also write each figure as PDF, in addition to SVG and PNG.
    overwrite
        Replace anything talkspurt wrote to the folder before, of this scenario or another.
    """
    from talkspurt import shards as parts

    if pdf and not report:
        raise BadInputError("--pdf and --no-report: without a report no figure is drawn")
    parts.merge_and_say(shards, out, as_json=json, report=report, pdf=pdf, overwrite=overwrite)


@app.command(name="report")
def rebuild(
    run: Path,
    /,
    *,
    pdf: Annotated[bool, Parameter(name="--pdf", negative=())] = False,
) -> None:
    """Write report.html of a result again and draw all its figures, without running its scenario.

    Parameters
    ----------
    run
        Folder of a result, of a study, or of one of its runs.
    pdf
        Also write each figure as PDF, in addition to SVG and PNG.
    """
    from talkspurt import reporting

    reporting.rebuild(run, pdf=pdf)


@app.command(name="open")
def show(run: Path, /) -> None:
    """Open the report of a result in a browser; without one, print its path.

    Parameters
    ----------
    run
        Folder of a result or a study.
    """
    from talkspurt import reporting

    reporting.show(run)


@app.command
def compare(
    *runs: Path,
    out: Annotated[Path | None, Parameter(name="--out", alias="-o")] = None,
    json: Annotated[bool, Parameter(name="--json", negative=())] = False,
    report: Annotated[bool, Parameter(negative="--no-report", show_default=False)] = True,
    pdf: Annotated[bool, Parameter(name="--pdf", negative=())] = False,
    overwrite: Annotated[bool, Parameter(name="--overwrite", negative=())] = False,
) -> None:
    """Put finished results side by side: one table, one report, one player for all their calls.

    Parameters
    ----------
    runs
        Folders of two or more runs, or of studies with the same axes.
    out
        Folder for the comparison; default: runs/A-vs-B.
    json
        Print only a JSON document on standard output; results are written only with --out.
    report
        Whether to draw figures and write report.html.
    pdf
        Also write each figure as PDF, in addition to SVG and PNG.
    overwrite
        Replace anything talkspurt wrote to the folder before.
    """
    from talkspurt import reporting

    if pdf and not report:
        raise BadInputError("--pdf and --no-report: without a report no figure is drawn")
    reporting.compare(runs, out, as_json=json, report=report, pdf=pdf, overwrite=overwrite)


@app.command
def check(
    scenario: Path,
    /,
    *,
    set: Annotated[list[str] | None, Parameter(name="--set", alias="-s", negative=())] = None,
) -> None:
    """Check a scenario and report all errors, without running it.

    Parameters
    ----------
    scenario
        TOML file.
    set
        PATH=VALUE overrides a scenario field; may be repeated.
    """
    from talkspurt.cautions import openings
    from talkspurt.scenario import read
    from talkspurt.terminal.console import say_line

    plan = read(scenario, set=set).plan
    runs = f"{len(plan)} run{'s' if len(plan) != 1 else ''}"
    say_line(f"{scenario}: nothing wrong; {plan.title}; {runs}")
    runs_looked_at = range(min(len(plan), 100))
    for words in dict.fromkeys(w for i in runs_looked_at for w in openings(plan.resolved(i))):
        say_line(f"Warning: {words}")


@app.command
def export(
    source: Path,
    /,
    *,
    to: Literal["pcapng", "ns2", "nam", "qlog", "parquet", "csv", "ns2-script"],
    out: Annotated[Path | None, Parameter(name="--out", alias="-o")] = None,
    set: Annotated[list[str] | None, Parameter(name="--set", alias="-s", negative=())] = None,
    seed: int | None = None,
) -> None:
    """Export a run to another tool's format by replaying it.

    Parameters
    ----------
    source
        Folder of a result or a study, or a scenario of one run. A study becomes one folder per run;
        as csv, its own tables.
    to
        pcapng: every link, for Wireshark. ns2, nam: every link, as ns-2's trace-all and
        namtrace-all. qlog: every endpoint. parquet: every packet on every link as a table,
        regardless of the run's record settings, and the result's tables. csv: the result's tables.
        ns2-script: a scenario as a Tcl script for ns-2.35, each line with its origin; unsupported
        features are reported by name.
    out
        Output folder; default: NAME.FORMAT next to the result, or to the study that contains the
        run. Only an earlier export is replaced. For ns2-script a file; default: standard output.
    set
        For ns2-script: PATH=VALUE overrides a scenario field; may be repeated.
    seed
        For ns2-script: replaces the scenario's seed.
    """
    if to == "ns2-script":
        from talkspurt.ns2 import command

        command.export(source, out=out, sets=set or [], seed=seed)
        return
    if set or seed is not None:
        raise BadInputError(f"--set and --seed: only for --to ns2-script, not for {to}")
    from talkspurt import exporting

    where = exporting.export(source, to, out)
    for file in sorted(where.iterdir()):
        if file.name != "manifest.json":
            shown = where.joinpath(file.name) if out is None else out / file.name
            print(visible(f"{shown}/" if file.is_dir() else str(shown)))


@app.command(name="import")
def import_(
    *traces: Path,
    out: Annotated[Path | None, Parameter(name="--out", alias="-o")] = None,
    payload: Annotated[list[str] | None, Parameter(name="--payload", negative=())] = None,
    playout: str = "60ms",
    network_delay: str | None = None,
    clock_offset: str | None = None,
    report: Annotated[bool, Parameter(negative="--no-report", show_default=False)] = True,
    overwrite: Annotated[bool, Parameter(name="--overwrite", negative=())] = False,
) -> None:
    """Read a trace of ns-2 or a capture into a folder like that of a run.

    All commands for results accept the folder. What a trace does not contain
    is null in its tables; manifest.json has the file's SHA-256, what was
    assumed and what is not known.

    Parameters
    ----------
    traces
        A trace of ns-2 (wired, or either wireless format), or a capture (pcap or pcapng) of RTP,
        UDP, TCP, SCTP or DCCP; or two captures, one at each end of a path: packets in both give
        loss and delay.
    out
        Folder for the tables; default: runs/NAME.
    payload
        TYPE=ENCODING names a dynamic payload type of RTP, as in --payload 111=opus; may be
        repeated.
    playout
        Fixed playout buffer of calls, anchored at the first packet that arrives.
    network_delay
        Network delay before a single capture; without it, mouth-to-ear delay is not known, and MOS
        an upper limit.
    clock_offset
        Clock of the second capture minus that of the first, as in 12.5ms or -3ms; default: 0.
    report
        Whether to draw figures and write report.html.
    overwrite
        Replace anything talkspurt wrote to the folder before.
    """
    from talkspurt.importing import command

    command.run(
        traces,
        out=out,
        payload=payload or [],
        playout=playout,
        network_delay=network_delay,
        clock_offset=clock_offset,
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
    raw_ip: Annotated[bool, Parameter(name="--raw-ip", negative=())] = False,
    stamp: str | None = None,
    stamp_open: Annotated[bool, Parameter(name="--stamp-open", negative=())] = False,
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
    stamp
        ADDRESS:PORT (UDP, the standard's port is 862) on which to reflect the packets of STAMP (RFC
        8762) senders, as other makers' equipment has them, in authenticated mode; the key is the
        secret.
    stamp_open
        Reflect them for everybody: in unauthenticated mode.
    """
    from talkspurt import serving

    serving.serve(
        listen=listen, secret_file=secret_file, max_rate=max_rate, max_duration=max_duration,
        max_sessions=max_sessions, media_ports=media_ports, user=user, raw_ip=raw_ip,
        stamp=stamp, stamp_open=stamp_open,
    )  # fmt: skip


@app.command
def measure(
    host: str,
    /,
    *,
    secret_file: Path | None = None,
    transport: Annotated[list[str] | None, Parameter(name="--transport", negative=())] = None,
    traffic: Literal["cbr", "talkspurts", "bulk"] = "cbr",
    rate: str = "64kbit/s",
    packet: int | None = None,
    codec: str = "pcmu",
    up: Annotated[bool, Parameter(name="--up", negative=())] = False,
    down: Annotated[bool, Parameter(name="--down", negative=())] = False,
    both: Annotated[bool, Parameter(name="--both", negative=())] = False,
    for_: Annotated[str, Parameter(name="--for")] = "10s",
    together: Annotated[bool, Parameter(name="--together", negative=())] = False,
    mtu: int = 1500,
    stamp: Annotated[bool, Parameter(name="--stamp", negative=())] = False,
    stamp_open: Annotated[bool, Parameter(name="--stamp-open", negative=())] = False,
    seed: int | None = None,
    out: Annotated[Path | None, Parameter(name="--out", alias="-o")] = None,
    json: Annotated[bool, Parameter(name="--json", negative=())] = False,
    report: Annotated[bool, Parameter(negative="--no-report", show_default=False)] = True,
    overwrite: Annotated[bool, Parameter(name="--overwrite", negative=())] = False,
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
        udp, tfrc, tfrc-tb, dccp-ccid2, dccp-ccid3, dccp-ccid4 (in UDP, RFC 6773), sctp (in UDP,
        RFC 6951), each of these four with -ip, as in dccp-ccid3-ip (directly over IP; both ends
        need the privilege CAP_NET_RAW), tcp (the kernel's) or tcp-CONTROLLER, as in tcp-cubic,
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
    stamp
        Send packets of STAMP (RFC 8762) instead, in authenticated mode, to any reflector at HOST
        (UDP port 862 unless HOST has one), with the rate, packet and duration given. Only printed.
    stamp_open
        The same in unauthenticated mode, without a secret.
    seed
        Seed of the random parts of the traffic; default: another one each time.
    out
        Folder for the results, with one folder per transport if they are measured one after
        another; default: runs/measure-HOST.
    json
        Print only a JSON document on standard output; results are written only with --out.
    report
        Whether to write report.html.
    overwrite
        Replace anything talkspurt wrote to the folder before.
    """
    from talkspurt import measuring

    if up + down + both > 1:
        raise BadInputError("--up, --down and --both: give one of them")
    wanted = measuring.Wanted(
        transports=transport or ["udp"], traffic=traffic, rate=rate, packet=packet, codec=codec,
        way="up" if up else "down" if down else "both", duration=for_, together=together, mtu=mtu,
        seed=seed,
    )  # fmt: skip
    if stamp or stamp_open:
        if transport or up or down or both or together or out:
            raise BadInputError("--stamp: not with options of other transports, nor with --out")
        measuring.run_stamp(
            host, wanted, secret_file=secret_file, unauthenticated=stamp_open, as_json=json
        )
        return
    measuring.run(
        host, wanted, secret_file=secret_file, out=out, as_json=json, report=report,
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
    out: Annotated[Path | None, Parameter(name="--out", alias="-o")] = None,
    json: Annotated[bool, Parameter(name="--json", negative=())] = False,
    quiet: Annotated[bool, Parameter(name="--quiet", negative=())] = False,
    report: Annotated[bool, Parameter(negative="--no-report", show_default=False)] = True,
    scores: Annotated[bool, Parameter(name="--scores", negative=())] = False,
    overwrite: Annotated[bool, Parameter(name="--overwrite", negative=())] = False,
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
    from talkspurt import calling

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
    out: Annotated[Path | None, Parameter(name="--out", alias="-o")] = None,
    json: Annotated[bool, Parameter(name="--json", negative=())] = False,
    quiet: Annotated[bool, Parameter(name="--quiet", negative=())] = False,
    report: Annotated[bool, Parameter(negative="--no-report", show_default=False)] = True,
    scores: Annotated[bool, Parameter(name="--scores", negative=())] = False,
    overwrite: Annotated[bool, Parameter(name="--overwrite", negative=())] = False,
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
        udp, tfrc, tfrc-tb, dccp-ccid2, dccp-ccid3, dccp-ccid4 (in UDP, RFC 6773), sctp (in UDP,
        RFC 6951), each of these four with -ip, as in dccp-ccid3-ip (directly over IP; both ends
        need the privilege CAP_NET_RAW), tcp (the kernel's) or tcp-CONTROLLER, as in tcp-cubic.
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
    from talkspurt import calling

    calling.call(
        host,
        calling.Kept(
            speech=speech, heard=heard, microphone=microphone, loudspeaker=loudspeaker, codec=codec,
            out=out, as_json=json, quiet=quiet, report=report, scores=scores, overwrite=overwrite,
        ),
        secret_file=secret_file, transport=transport, duration=for_, mtu=mtu, seed=seed,
    )  # fmt: skip


@app.command
def crosscheck(
    scenario: Path,
    /,
    *,
    set: Annotated[list[str] | None, Parameter(name="--set", alias="-s", negative=())] = None,
    seed: int | None = None,
    json: Annotated[bool, Parameter(name="--json", negative=())] = False,
    trace: Path | None = None,
) -> None:
    """Run a scenario here and in ns-2.35, and print both measurements side by side.

    Parameters
    ----------
    scenario
        TOML file; all features unsupported by ns-2 are reported by name.
    set
        PATH=VALUE overrides a scenario field; may be repeated.
    seed
        Replaces the scenario's seed.
    json
        Print only a JSON document on standard output.
    trace
        File for ns-2's trace; by default the trace is not kept, only read while it is written.
    """
    from talkspurt.ns2 import command

    command.crosscheck(scenario, sets=set or [], seed=seed, as_json=json, trace=trace)


@app.command
def metrics(
    run: Path | None = None,
    name: str | None = None,
    /,
    *,
    flow: str | None = None,
    link: str | None = None,
    bin: float | None = None,
    table: Annotated[bool, Parameter(name="--table", negative=())] = False,
    json: Annotated[bool, Parameter(name="--json", negative=())] = False,
    describe: Annotated[bool, Parameter(name="--describe", negative=())] = False,
) -> None:
    """List all metrics, or print one metric, or the sheet, of a result or study as CSV.

    Parameters
    ----------
    run
        Folder of a result or a study; without it, all available metrics are listed.
    name
        A listed metric: mos, links.drops, m (its letter in the study of voice). Without it, the
        sheet: packets, bytes, rates, delays, jitter, loss and packet sizes of every flow, and how
        many nodes send and receive; means over the replications of a study.
    flow
        One flow; default: all.
    link
        One link, for metrics of links; default: all.
    bin
        Bin width in seconds, for metrics over time; default: 1, but 0.2 for rates as in RFC 8868
        and 5 for MOS.
    table
        Print a table with the means of a study and their intervals; for metrics over time or
        against another quantity, number, minimum, mean and maximum of the values.
    json
        Print JSON instead of text.
    describe
        Print the data dictionary instead: unit and meaning of every column of every table.
    """
    from talkspurt.terminal import catalogue

    if describe:
        if run is not None:
            raise BadInputError("--describe: describes all tables, without a result")
        catalogue.print_dictionary(as_json=json)
        return
    if bin is not None and not (math.isfinite(bin) and bin > 0):
        raise BadInputError(f"--bin {bin:g}: expected seconds, more than 0")
    if table and json:
        raise BadInputError("--table and --json: give one of them")
    if run is None:
        if table:
            raise BadInputError("--table: expected a folder of a result or a study")
        catalogue.print_list(as_json=json)
        return
    if name is None and (flow or link or bin):
        raise BadInputError("--flow, --link and --bin: for one metric, and none is named")
    form: catalogue.Form = "table" if table else "json" if json else "csv"
    try:
        if name is None:
            catalogue.print_sheet(run, form)
        else:
            catalogue.print_metric(run, name, flow, link, bin, form)
    except (KeyError, ValueError) as error:
        raise BadInputError(str(error.args[0])) from None


@app.command
def plot(
    run: Path,
    measure: str,
    /,
    *,
    over: str | None = None,
    by: str | None = None,
    kind: Literal["lines", "bars", "points", "box", "cdf", "map"] | None = None,
    time: Annotated[bool, Parameter(name="--time", negative=())] = False,
    flow: str | None = None,
    link: str | None = None,
    bin: float | None = None,
    out: Annotated[Path | None, Parameter(name="--out", alias="-o")] = None,
) -> None:
    """Draw a metric of a result or study over an axis, over time, as a distribution or a map.

    Parameters
    ----------
    run
        Folder of a result or a study.
    measure
        A metric that `talkspurt metrics` lists: mos, links.drops, goodput_over_time; of a result
        also a figure of its report, such as delay or queue.
    over
        The x axis: an axis of the study, flow, link, transport, source, or time; default: an axis
        with numbers, or what the metric is computed against. A metric over time that is drawn over
        something else is averaged over each run.
    by
        What colours distinguish, from the same list; default: what changes the transport. All else
        that varies has panels of its own.
    kind
        Default: bars over names, lines over numbers and time, points for one quantity against
        another. cdf: the distribution of the values of all runs, or of those over time. map: cells
        over two axes, --over and --by.
    time
        Draw the metric over time that belongs to a number of the whole run, as goodput_over_time to
        goodput_bps.
    flow
        One flow, or the flows of a `count`; default: all with a value.
    link
        One link, for metrics of links; default: all.
    bin
        Bin width in seconds, for metrics over time; default: the metric's own.
    out
        File to write or replace, .png, .svg or .pdf; default: NAME-MEASURE.png in the current
        folder.
    """
    from talkspurt import plotting

    plotting.plot(
        run,
        measure,
        over=over,
        by=by,
        kind=kind,
        time=time,
        flow=flow,
        link=link,
        bin_s=bin,
        out=out,
    )


@app.command
def sensitivity(
    study: Path,
    measure: str,
    /,
    *,
    json: Annotated[bool, Parameter(name="--json", negative=())] = False,
    out: Annotated[Path | None, Parameter(name="--out", alias="-o")] = None,
) -> None:
    """Print how much a metric of a study depends on each factor of its design.

    Parameters
    ----------
    study
        Folder of a study whose scenario has a [design].
    measure
        A metric of flows that `talkspurt metrics` lists, such as mos or delay_mean_s.
    json
        Print only a JSON document on standard output.
    out
        Also draw the indices as bars with intervals into a file, .png, .svg or .pdf.
    """
    from talkspurt import plotting

    plotting.sensitivity(study, measure, as_json=json, out=out)


@app.command
def schema(*, out: Annotated[Path | None, Parameter(name="--out", alias="-o")] = None) -> None:
    """Print the JSON Schema of a scenario, for editors.

    Taplo, and Even Better TOML for VS Code, complete and check a scenario with the first line
    "#:schema ./talkspurt.schema.json", a path from the scenario's folder. `talkspurt init` writes
    the line and the file.

    Parameters
    ----------
    out
        File to write or replace; default: standard output.
    """
    if out is None:
        print(_core.schema().rstrip())
    else:
        out.write_text(_core.schema(), encoding="utf-8")


@app.command
def init(
    template: templates.Name = "first-call",
    path: Path = Path(),
    /,
    *,
    list: Annotated[bool, Parameter(name="--list", negative=())] = False,
    force: Annotated[bool, Parameter(name="--force", negative=())] = False,
) -> None:
    """Write a commented scenario to start from, with its recording and the JSON Schema.

    Parameters
    ----------
    template
        The scenario; --list shows the question that each one answers.
    path
        Folder, or a file that ends in .toml; default: TEMPLATE.toml in the current folder.
    list
        Only list the templates.
    force
        Replace existing files.
    """
    if list:
        examples()
        return
    written = templates.write(template, path, force=force)
    for file in written:
        print(visible(str(file)))
    print()
    print(visible(f"Next: talkspurt run {shlex.quote(str(written[0]))}"))


@app.command
def examples(name: templates.Name | None = None, /) -> None:
    """List the scenarios that `talkspurt init` can write, or print one.

    Parameters
    ----------
    name
        The scenario to print; without it, all are listed.
    """
    if name is not None:
        print(templates.text(name).rstrip())
        return
    titles = templates.titles()
    width = max(map(len, titles))
    for each, title in titles.items():
        print(f"{each:<{width}}  {title}")
    print("\n`talkspurt init NAME` writes one into the current folder, ready to run.")


@app.command
def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print a script that completes commands, options and templates in a shell.

    For bash, with the folder made first:
    talkspurt completion bash > ~/.local/share/bash-completion/completions/talkspurt

    For zsh, with `fpath+=~/.zfunc` before `compinit` in ~/.zshrc:
    talkspurt completion zsh > ~/.zfunc/_cyclopts_talkspurt

    For fish:
    talkspurt completion fish > ~/.config/fish/completions/talkspurt.fish

    Parameters
    ----------
    shell
        The shell that reads the script.
    """
    print(app.generate_completion(shell=shell).rstrip())


@app.command
def reproduce(
    study: Literal["nor2010", "wheeb2017", "maldonado2005", "sarao2019", "renker2008", "all"],
    /,
    *,
    out: Annotated[Path | None, Parameter(name="--out", alias="-o")] = None,
    set: Annotated[list[str] | None, Parameter(name="--set", alias="-s", negative=())] = None,
    json: Annotated[bool, Parameter(name="--json", negative=())] = False,
    ns2: Annotated[bool, Parameter(name="--ns2", negative=())] = False,
    pdf: Annotated[bool, Parameter(name="--pdf", negative=())] = False,
    live: Annotated[bool, Parameter(name="--live", negative=())] = False,
    jobs: Annotated[int | None, Parameter(name="--jobs", alias="-j")] = None,
) -> None:
    """Re-run a published study: printed value, our value, and a verdict with its reason.

    Parameters
    ----------
    study
        One of the five original studies of talkspurt, or all of them.
    out
        Folder for the dossiers, scenarios and figures; default: runs/reproduce-STUDY.
    set
        PATH=VALUE overrides a field of every scenario of the study that has it, as in
        --set links.bottleneck.queue.packets=100; may be repeated. Rows of varied scenarios say so.
    json
        Print only a JSON document on standard output; dossiers are written only with --out.
    ns2
        Run ns-2, which must be installed, instead of using its recorded values.
    pdf
        Also write each figure of the dossiers as PDF, in addition to SVG and PNG.
    live
        Measure the transfers of renker2008 over sockets across an emulated radio, in real time, and
        print simulated, measured and a Linux kernel's values; takes 16 minutes and needs root.
    jobs
        Concurrent runs; default: all cores.
    """
    from talkspurt.reproduce import running

    if jobs is not None and jobs < 1:
        raise BadInputError(f"--jobs {jobs}: expected 1 or more")
    running.run(
        study, out=out, as_json=json, fresh_ns2=ns2, jobs=jobs, sets=set or [], pdf=pdf, live=live
    )


def main() -> None:
    """Entry point: reports every error as text with an exit code."""
    global _stops
    _stops = 0
    for number in interrupts.STOPS:
        signal.signal(number, _on_stop)
    warnings.formatwarning = _in_words
    guard()
    code = _code()
    # From here on, nothing can be stopped or fail.
    for number in interrupts.STOPS:
        signal.signal(number, signal.SIG_IGN)
    try:
        sys.stdout.flush()
    except OSError as error:
        if code == 0 and error.errno != errno.EPIPE:
            code = explain(error) or 1
        _hush()
    sys.exit(code)


def _code() -> int:
    """Execute the command line and return the exit code."""
    try:
        try:
            app.console = _console(sys.stdout)
            app.error_console = _console(sys.stderr)
            status = app(sys.argv[1:], exit_on_error=False, result_action="return_value")
            sys.stdout.flush()
        except (KeyboardInterrupt, Terminated) as stop:
            _say(f"talkspurt: stopped; {_left(stop)}")
            return 130 if isinstance(stop, KeyboardInterrupt) else 128 + signal.SIGTERM
        return status if isinstance(status, int) else 0
    except CycloptsError:  # already printed
        return 2
    except BrokenPipeError:
        _hush()
        return 0
    except (KeyboardInterrupt, Terminated):  # while reporting
        return 130
    except Exception as error:
        code = explain(error)
        if code is None:
            raise
        return code


def _console(stream: IO[str]) -> Console:
    from talkspurt.terminal.console import Output

    return Output(file=below(stream))


def _left(stop: BaseException) -> str:
    """The partial results after a stop."""
    done = [f"{visible(str(place))} is written" for place in interrupts.written]
    return "; ".join([*done, *filter(None, [_kept(stop)])]) or "nothing was written"


def _kept(error: BaseException) -> str:
    """The files that remain after the error, if any."""
    return "; ".join(getattr(error, "__notes__", []))


_stops = 0
"""Number of stop signals received."""
MOST_STOPS = 3
"""This many signals end the process at once, without cleanup."""


def _on_stop(number: int, frame: FrameType | None) -> None:
    """Stop at the first signal; protect the cleanup from all signals but the third."""
    global _stops
    if frame is not None and frame.f_code.co_qualname == "_get_module_lock.<locals>.cb":
        # Python prints and ignores an exception in this callback of an import: signal again later.
        again = threading.Timer(0.001, os.kill, (os.getpid(), number))
        again.daemon = True
        again.start()
        return
    _stops += 1
    if _stops >= MOST_STOPS:
        if sys.__stderr__ is not None and sys.__stderr__.isatty():
            os.write(sys.__stderr__.fileno(), b"\x1b[?25h\n")  # a progress bar hides the cursor
        os._exit(128 + number)
    if _stops == 1:
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated


_plainly = warnings.formatwarning


def _in_words(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    """A warning for users in talkspurt's format; others in Python's."""
    if issubclass(category, OtherVersionWarning):
        return f"talkspurt: {visible(str(message))}\n"
    return _plainly(message, category, filename, lineno, line)


def _hush() -> None:
    # The reader is gone (`| head`), or the disk is full: discard the last flush.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def explain(error: Exception) -> int | None:
    """Report an error as text; returns the exit code, or None for an internal error."""
    if isinstance(error, _core.ScenarioError):
        for problem in error.problems:
            _say(problem_line(problem))
        return 2
    if isinstance(error, BadInputError):
        _say(f"talkspurt: {error}")
        return 2
    if isinstance(error, _core.RunError):
        _say("; ".join(filter(None, [f"talkspurt: {error}", _kept(error)])))
        return 1
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        said = visible(f"talkspurt: {where}{error.strerror or error}")
        _say("; ".join(filter(None, [said, _kept(error)])))
        return 2 if error.errno in NAMED_WRONGLY else 1
    return None


NAMED_WRONGLY = {
    errno.ENOENT,
    errno.EISDIR,
    errno.ENOTDIR,
    errno.EEXIST,
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENXIO,
    errno.EMSGSIZE,
    errno.ELOOP,
    errno.ENAMETOOLONG,
}
"""System errors caused by a file name from the user."""


def problem_line(problem: _core.Problem) -> str:
    """A scenario error as one line."""
    return visible(problems.text(problem))


def _say(words: str) -> None:
    with contextlib.suppress(OSError):
        print(words, file=sys.stderr, flush=True)
