"""Commands in real time: emulated networks, measurements and calls."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from talkspurt import _core
from talkspurt._commands.options import (
    CallOptions,
    Controller,
    EmulateOptions,
    Flag,
    LiveOutput,
    MeasureOptions,
    Secret,
    Several,
    Whole,
)
from talkspurt._commands.running import say_where
from talkspurt._storage import file_access, interrupts
from talkspurt._terminal.console import say_line
from talkspurt._terminal.progress import Bar
from talkspurt._text.escaping import print_json, visible
from talkspurt.emulating.namespaces import User
from talkspurt.errors import BadInputError, EndedEarlyError, Faults
from talkspurt.real_time import calling, serving
from talkspurt.real_time.calling import Ended, Voice, Watch
from talkspurt.real_time.measuring import Measurement, Traffic
from talkspurt.real_time.notes import notes
from talkspurt.results.result import Result
from talkspurt.scores import models


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


def serve(
    *,
    listen: str = "127.0.0.1:7862",
    secret_file: Secret = None,
    max_rate: str = "20Mbit/s",
    max_duration: str = "2min",
    max_sessions: Whole = 4,
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
    with serving.serve(
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


def measure(
    host: str,
    /,
    *,
    secret_file: Secret = None,
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
    """
    out, as_json = options.out, options.json
    measurement = Measurement(
        host,
        options.transport or ["udp"],
        Traffic(
            options.traffic,
            options.rate,
            options.packet,
            options.codec,
            "up" if options.up else "down" if options.down else "both",
            options.controller,
        ),
        duration=options.duration,
        mtu=options.mtu,
        seed=options.seed,
        secret_file=secret_file,
        together=options.together,
    )
    base = out or Path("runs") / f"measure-{file_access.plain_name(measurement.name)}"
    documents = []

    def folder(result: Result) -> Path:
        return base / result.topology["flows"][0]["name"] if measurement.several else base

    def keep(half: Result) -> None:
        # What prevents this, prevents the whole result, too, which tells it.
        with contextlib.suppress(OSError):
            _save(half, folder(half), options, report=False)

    def finish(result: Result) -> None:
        _save(result, folder(result), options)
        if as_json:
            documents.append(document(result))
        elif not options.quiet:
            say(result, folder(result), report=options.report)

    # What was measured so far is a result, too: a stop comes when it is written.
    with interrupts.undisturbed():
        early = None
        try:
            for result in measurement.results(keep, progress=not options.quiet):
                finish(result)
        except EndedEarlyError as error:
            early = error
            assert early.result is not None
            finish(early.result)
        if as_json:
            print_json(documents if measurement.several else documents[0])
        if early is not None and early.result is not None:
            place = folder(early.result)
            where = visible(f"; what was measured is in {file_access.url_of(place) or place}/")
            raise BadInputError(f"{early}{'' if as_json and out is None else where}")


def _save(result: Result, folder: Path, options: LiveOutput, report: bool | None = None) -> None:
    """Write the folder of a result, unless only its JSON is wanted."""
    if options.out is not None or not options.json:
        report = options.report if report is None else report
        result.save(folder, report=report, overwrite=options.overwrite)


def say(result: Result, folder: Path, *, report: bool) -> None:
    """Print the table, what to know about it, and where the folder is."""
    from talkspurt._terminal import tables

    tables.print_result(result)
    for note in notes(result.manifest["measured"]):
        say_line(note)
    say_where(folder, report)


def document(result: Result) -> dict[str, Any]:
    """The JSON of ``--json``: that of a run, and the facts of the measurement."""
    return {**result.to_json(), "measured": result.manifest["measured"]}


def _check(kept: CallOptions, faults: Faults) -> None:
    if kept.scores:
        with faults.gathered():
            models.check()
    _voice(kept).check(faults)
    faults.add(
        "what is heard: give --heard, --loudspeaker or both",
        unless=kept.heard or kept.loudspeaker,
    )
    calling.check_heard(kept.heard, faults)


def _voice(kept: CallOptions) -> Voice:
    codecs = [] if kept.codec is None else [name.strip() for name in kept.codec.split(",")]
    return Voice(kept.speech, kept.microphone, kept.loudspeaker, codecs)


def call(
    host: str,
    /,
    *,
    options: CallOptions = CallOptions(),
    secret_file: Secret = None,
    transport: str = "udp",
    controller: Controller | None = None,
    duration: Annotated[str | None, Parameter(name="--for")] = None,
    mtu: Whole = 1500,
    seed: Whole | None = None,
) -> None:
    """Call a machine that runs `talkspurt answer`: say what is in a file, keep what is heard.

    The results are a folder like that of a run, for all commands that read
    one, with the sound of both directions. Ctrl-C hangs up.

    Parameters
    ----------
    host
        Name or address of the answerer, with :PORT unless it is 7863; [ADDRESS]:PORT for IPv6.
    transport
        One of those of `talkspurt measure`. tfrc-tb chooses among the agreed codecs of falling
        rate during the call.
    controller
        A session that reacts: Opus and what chooses among codecs follow the rate of gcc, nada or
        fixed, beside feedback in RTCP. Default: none.
    duration
        Length of the call, up to 1h; default: that of the speech, and 1h with a microphone.
    mtu
        Longest IP packet on the path, in bytes.
    seed
        Seed of the random parts of the protocols; default: another one each time.
    """
    serving.supported()
    faults = Faults()
    _check(options, faults)
    caller = calling.Caller(
        host,
        _voice(options),
        transport=f"{transport}+{controller}" if controller else transport,
        duration=duration,
        mtu=mtu,
        seed=seed,
        secret_file=secret_file,
        faults=faults,
    )
    folder = options.out or Path("runs") / f"call-{file_access.plain_name(caller.name)}"
    # What was heard until a stop is a call, too: the stop comes when it is written.
    with interrupts.undisturbed():
        with _watching(caller.title, options) as watch:
            ended = caller.call(
                watch, lambda half: _keep_half(half, options, options.heard, folder)
            )
        failure = _keep(ended, options, options.heard, folder)
        if failure is not None:
            raise BadInputError(visible(failure))


def answer(
    *,
    options: CallOptions = CallOptions(),
    listen: str = "127.0.0.1:7863",
    secret_file: Secret = None,
    calls: Whole = 1,
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
    calls
        Number of calls after which it exits; one at a time.
    media_ports
        FIRST-LAST, the UDP ports for datagrams and TCP ports for flows over TCP, to open in a
        firewall; default: any free port.
    """
    serving.supported()
    faults = Faults()
    faults.add(f"--calls {calls}: expected 1 or more", unless=calls >= 1)
    ports = None
    with faults.gathered():
        ports = serving.ports(media_ports)
    with faults.gathered():
        listen = serving.local("--listen", listen)
        _core.check_address("--listen", listen)
    with faults.gathered():
        key = serving.secret(secret_file)
    _check(options, faults)
    faults.check()
    user = User.behind_sudo()
    name = None if user is None else user.name
    with serving.refused():
        # First: the sound's libraries start threads, which would keep their privileges.
        sockets = _core.CallSockets(listen, ports, name)
        if user is not None:
            os.environ |= user.environment
        server = _core.answer_call(sockets, key, _voice(options).open(_core.call_codecs()))
    base = options.out or Path("runs") / "answer"
    # Only now: root has lost its privilege to write everywhere.
    _may_write(options, None if options.json and options.out is None else base)
    if not options.quiet and not options.json:
        print(f"Waiting for a call on {server.local}. Ctrl-C ends it.", flush=True)
    failures = []
    try:
        with interrupts.undisturbed():
            for number in range(1, calls + 1):
                folder = base if calls == 1 else base / str(number)
                heard = options.heard
                if heard is not None and number > 1:
                    heard = heard.with_name(f"{heard.stem}-{number}{heard.suffix}")
                ended = _answered(server, options, heard, folder)
                if ended is not None:
                    failure = _keep(ended, options, heard, folder)
                    failures += [] if failure is None else [failure]
                if interrupts.came():
                    break
    finally:
        server.stop()
    if failures:
        raise BadInputError(visible("; ".join(failures)))


def _may_write(kept: CallOptions, folder: Path | None) -> None:
    """Raise BadInputError if what is heard, or the folder, cannot be written."""
    faults = Faults()
    for option, place in (("--heard", kept.heard), ("--out", folder)):
        if place is not None:
            there = next(p for p in (place, *place.absolute().parents) if p.exists())
            said = f"{option} {place}: {there} may not be written by this user"
            faults.add(said, unless=os.access(there, os.W_OK))
    faults.check()


def _answered(
    server: _core.Server, kept: CallOptions, file: Path | None, folder: Path
) -> Ended | None:
    """Wait for a call and its end, or a stop."""
    called = None
    began = time.monotonic()

    def in_progress() -> _core.CallWatch | None:
        time.sleep(calling.STEP_S)
        return server.call()

    while called is None and not interrupts.came():
        # A caller that leaves before the call begins leaves a line, and no results.
        for line in server.lines():
            if not kept.quiet:
                said = visible(f"{time.strftime('%H:%M:%S')} {line}")
                print(said, file=sys.stderr, flush=True)
        if server.call() is not None:
            began = time.monotonic()
            with _watching("Call", kept) as watch:
                calling.follow(
                    server,
                    in_progress,
                    _voice(kept).devices(),
                    lambda state: watch(None, state),
                    lambda half: _keep_half(half, kept, file, folder),
                )
        called = server.called()
        time.sleep(calling.STEP_S)
    return None if called is None else Ended.of(called, "A call answered", began)


def _keep_half(half: Ended, kept: CallOptions, file: Path | None, folder: Path) -> None:
    """Write what this end knows while the notes of both ends are exchanged.

    What prevents that, prevents the whole result, too, which tells it.
    """
    with contextlib.suppress(OSError):
        half.write_sound(file)
        if half.result is not None:
            _save(half.result, folder, kept, report=False)


def _keep(ended: Ended, kept: CallOptions, file: Path | None, folder: Path) -> str | None:
    """Write what was heard and the folder, print, and return what failed, if anything did."""
    ended.write_sound(file)
    result, about = ended.result, ended.about
    if result is not None:
        if kept.scores:
            result.score(kept.scores)
        _save(result, folder, kept)
    if kept.json:
        told = {} if result is None else document(result)
        heard = {"heard": file and str(file), "heard_s": ended.heard_s}
        print_json({**told, "call": about, **heard})
    elif not kept.quiet:
        if result is not None:
            say(result, folder, report=kept.report)
        for line in _sentences(about, file, ended.heard_s):
            print(visible(line), flush=True)
    if ended.broken is None:
        return None
    where = "" if file is None else f"; what was heard until then is in {file}"
    return f"{about['other']}: {ended.broken}{where}"


def _sentences(about: dict[str, Any], file: Path | None, length_s: float) -> Iterator[str]:
    """What to know about a call, a sentence each."""
    yield f"Codecs agreed: {', '.join(about['codecs'])}."
    if about["hung_up"] is not None:
        yield f"The {about['hung_up']} hung up."
    if not about["sound_exchanged"]:
        yield "The sound of the other end did not come: there are no signals to compare."
    if file is not None:
        yield f"Heard:   {file} ({length_s:.1f} s)"


@contextlib.contextmanager
def _watching(title: str, kept: CallOptions) -> Iterator[Watch]:
    """What shows a call while it lasts: a screen on a terminal, else a bar."""
    silent = kept.quiet or kept.json
    if not silent and sys.stdout.isatty() and sys.stderr.isatty():
        from talkspurt._terminal.call import Screen

        with Screen(title) as screen:
            yield lambda _, state: screen.show(None if state is None else json.loads(state))
    else:
        with Bar(title, shown=not silent) as bar:
            yield lambda share, _: None if share is None else bar.on_fraction(share)
