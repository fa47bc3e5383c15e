"""``talkspurt call`` and ``talkspurt answer``: a voice call over a real path."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from talkspurt import _core
from talkspurt._storage import file_access, interrupts
from talkspurt._terminal.progress import Bar
from talkspurt._text.escaping import print_json, visible
from talkspurt.emulating.namespaces import User
from talkspurt.errors import BadInputError, Faults
from talkspurt.real_time import devices, measuring, serving
from talkspurt.results.audio import wav
from talkspurt.results.result import Result

if TYPE_CHECKING:
    from talkspurt._commands.options import CallOptions

PORT = 7863
"""TCP port of the end that answers unless told otherwise."""
OFFER = ("opus", "g722", "pcmu", "pcma")
LADDER = ("pcmu", "g726-40", "g726-32", "g726-24", "g726-16")
"""Codecs offered unless told otherwise; with TFRC-TB those of Maldonado et al. (2005)."""
STEP_S = 0.05


def _check(kept: CallOptions, faults: Faults) -> None:
    """Find everything that is wrong with the options."""
    if kept.scores:
        from talkspurt.scores import models

        with faults.gathered():
            models.check()
    faults.add(
        "what is said: give one of --speech and --microphone",
        unless=(kept.speech is None) != (kept.microphone is None),
    )
    faults.add(
        "what is heard: give --heard, --loudspeaker or both",
        unless=kept.heard or kept.loudspeaker,
    )
    if kept.heard is not None and (
        kept.heard.is_dir() or not kept.heard.absolute().parent.is_dir()
    ):
        faults.add(f"--heard {kept.heard}: expected a file in a folder")


def _voice(kept: CallOptions, default: tuple[str, ...]) -> _core.CallVoice:
    """The file and the codecs, checked like the devices.

    Raises:
        BadInputError: the file cannot be read, or a codec or a device is unknown.
    """
    devices.check(kept.microphone, kept.loudspeaker)
    from talkspurt.real_time import codecs

    codecs.load()
    names = list(default) if kept.codec is None else kept.codec.split(",")
    names = [name.strip() for name in names]
    try:
        return _core.CallVoice(kept.speech, names, kept.loudspeaker is not None)
    except _core.RunError as error:
        raise BadInputError(visible(str(error))) from None


def _heard_in(kept: CallOptions, number: int) -> Path | None:
    """The file for what is heard in a call, from 1."""
    if kept.heard is None or number == 1:
        return kept.heard
    return kept.heard.with_name(f"{kept.heard.stem}-{number}{kept.heard.suffix}")


def _sound(kept: CallOptions) -> devices.Devices:
    """The sound devices, before they are started."""
    return devices.Devices(kept.microphone, kept.loudspeaker)


def _shows(kept: CallOptions) -> bool:
    """Whether a terminal shows the call while it lasts."""
    return not kept.quiet and not kept.json and sys.stdout.isatty() and sys.stderr.isatty()


def call(
    host: str,
    kept: CallOptions,
    *,
    secret_file: Path | None,
    transport: str,
    duration: str | None,
    mtu: int,
    seed: int | None,
) -> None:
    """Call, print, and write what was heard and the folder."""
    serving.supported()
    faults = Faults()
    _check(kept, faults)
    with faults.gathered():
        voice = _voice(kept, LADDER if transport == "tfrc-tb" else OFFER)
    with faults.gathered():
        _core.check_transport(transport, sends=True)
    if duration is not None:
        with faults.gathered():
            _core.check_length("--for", duration)
    measuring.check_mtu_and_seed(mtu, seed, faults)
    with faults.gathered():
        name, port = measuring.target(host, PORT)
    with faults.gathered():
        key = serving.secret(secret_file)
    faults.check()
    seed = seed if seed is not None else secrets.randbits(62)
    length = duration or ("1h" if (own := voice.duration_s) is None else f"{max(1.0, own):.3f}s")
    folder = kept.out or Path("runs") / f"call-{file_access.plain_name(name)}"
    said = f"Call to {host} over {transport}"
    began = time.monotonic()
    try:
        session = _core.Session(name, port, key)
    except _core.RunError as error:
        raise BadInputError(visible(str(error))) from None
    # What was heard until a stop is a call, too: the stop comes when it is written.
    with interrupts.undisturbed():
        try:
            calling = session.call(voice, transport, length, mtu, seed)
            with (
                devices.Devices(kept.microphone, kept.loudspeaker) as sound,
                _watching(said, kept) as watch,
            ):
                while not calling.wait(STEP_S):
                    if interrupts.came():
                        calling.cancel()
                    else:
                        call = calling.watch()
                        sound.attach(call.devices())
                        watch(calling.progress(), call.view())
                    if (half := calling.half()) is not None:
                        _keep_half(half, kept, kept.heard, folder)
            called = calling.result()
        except (_core.RunError, ValueError) as error:
            raise BadInputError(visible(str(error))) from None
        title, wall_s = f"A call to {host} over {transport}", time.monotonic() - began
        failure = _keep(called, kept, kept.heard, folder, title, wall_s)
        if failure is not None:
            raise BadInputError(visible(failure))


def answer(
    kept: CallOptions,
    *,
    listen: str,
    secret_file: Path | None,
    calls: int,
    media_ports: str | None,
) -> None:
    """Answer calls, and write what was heard and the folder of each."""
    serving.supported()
    faults = Faults()
    faults.add(f"--calls {calls}: expected 1 or more", unless=calls >= 1)
    ports = None
    with faults.gathered():
        ports = None if media_ports is None else serving.ports(media_ports)
    with faults.gathered():
        listen = serving.local("--listen", listen)
        _core.check_address("--listen", listen)
    with faults.gathered():
        key = serving.secret(secret_file)
    _check(kept, faults)
    faults.check()
    user = User.behind_sudo()
    name = None if user is None else user.name
    try:
        # First: the sound's libraries start threads, which would keep their privileges.
        sockets = _core.CallSockets(listen, ports, name)
        if user is not None:
            os.environ |= user.environment
        server = _core.answer(sockets, key, _voice(kept, tuple(_core.call_codecs())))
    except (_core.RunError, ValueError) as error:
        raise BadInputError(visible(str(error))) from None
    base = kept.out or Path("runs") / "answer"
    # Only now: root has lost its privilege to write everywhere.
    _may_write(kept, None if kept.json and kept.out is None else base)
    says = not kept.quiet and not kept.json
    if says:
        print(f"Waiting for a call on {server.local}. Ctrl-C ends it.", flush=True)
    failures = []
    try:
        with interrupts.undisturbed():
            for number in range(1, calls + 1):
                folder = base if calls == 1 else base / str(number)
                heard = _heard_in(kept, number)
                called, wall_s = _answered(server, kept, heard, folder)
                if called is not None:
                    failure = _keep(called, kept, heard, folder, "A call answered", wall_s)
                    failures += [] if failure is None else [failure]
                if interrupts.came():
                    break
    finally:
        server.stop()
    if failures:
        raise BadInputError(visible("; ".join(failures)))


def _may_write(kept: CallOptions, folder: Path | None) -> None:
    """Raise BadInputError if what is heard, or the folder, cannot be written."""
    faults = []
    for option, place in (("--heard", kept.heard), ("--out", folder)):
        if place is not None:
            there = next(p for p in (place, *place.absolute().parents) if p.exists())
            if not os.access(there, os.W_OK):
                faults.append(f"{option} {place}: {there} may not be written by this user")
    if faults:
        raise BadInputError(visible("; ".join(faults)))


def _answered(
    server: _core.Server, kept: CallOptions, file: Path | None, folder: Path
) -> tuple[_core.Called | None, float]:
    """Wait for a call and its end, or a stop; the call's results, and its length in seconds."""
    called = None
    began = time.monotonic()
    while called is None and not interrupts.came():
        # A caller that leaves before the call begins leaves a line, and no results.
        _say_lines(server, kept)
        if server.call() is not None:
            began = time.monotonic()
            with (
                devices.Devices(kept.microphone, kept.loudspeaker) as sound,
                _watching("Call", kept) as watch,
            ):
                while (call := server.call()) is not None:
                    if interrupts.came():
                        call.stop()
                    else:
                        sound.attach(call.devices())
                        watch(None, call.view())
                    if (half := server.half()) is not None:
                        _keep_half(half, kept, file, folder)
                    time.sleep(STEP_S)
        called = server.called()
        time.sleep(STEP_S)
    return called, time.monotonic() - began


def _say_lines(server: _core.Server, kept: CallOptions) -> None:
    for line in server.lines():
        if not kept.quiet:
            print(visible(f"{time.strftime('%H:%M:%S')} {line}"), file=sys.stderr, flush=True)


def _keep_half(half: _core.Called, kept: CallOptions, file: Path | None, folder: Path) -> None:
    """Write what this end knows while the notes of both ends are exchanged.

    What prevents that, prevents the whole result, too, which tells it.
    """
    outcome, text, scenario, sound, _ = half
    with contextlib.suppress(OSError):
        if file is not None:
            file_access.write_bytes(file, wav(*sound))
        if outcome is not None and (kept.out is not None or not kept.json):
            result = _result(outcome, json.loads(text), scenario, "A call", 0.0)
            result.save(folder, report=False, overwrite=kept.overwrite)


def _result(
    outcome: _core.Outcome, facts: dict[str, Any], scenario: str, title: str, wall_s: float
) -> Result:
    about = facts["call"]
    flows = [("call", about["transport"], True, True)]
    measured: Any = {"server": about["other"], **facts}
    return measuring.made("call", title, flows, outcome, scenario, measured, wall_s)


def _keep(
    called: _core.Called,
    kept: CallOptions,
    file: Path | None,
    folder: Path,
    title: str,
    wall_s: float,
) -> str | None:
    """Write what was heard and the folder, print, and return what failed, if anything did."""
    outcome, text, scenario, (pcm, rate, channels), broken = called
    if file is not None:
        file_access.write_bytes(file, wav(pcm, rate, channels))
    facts: dict[str, Any] = json.loads(text)
    about = facts["call"]
    length_s = len(pcm) / 2 / channels / rate
    result = None
    if outcome is not None:
        result = _result(outcome, facts, scenario, title, wall_s)
        if kept.scores:
            _ = result.scores
        if kept.out is not None or not kept.json:
            result.save(folder, report=kept.report, overwrite=kept.overwrite)
    if kept.json:
        document = {} if result is None else measuring.document(result)
        print_json({**document, "call": about, "heard": file and str(file), "heard_s": length_s})
    elif not kept.quiet:
        if result is not None:
            measuring.say(result, folder, report=kept.report)
        for line in _sentences(about, file, length_s):
            print(visible(line), flush=True)
    if broken is None:
        return None
    where = "" if file is None else f"; what was heard until then is in {file}"
    return f"{about['other']}: {broken}{where}"


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
def _watching(
    title: str, kept: CallOptions
) -> Iterator[Callable[[float | None, str | None], None]]:
    """What shows a call while it lasts, given the share of its time and its state as JSON."""
    if _shows(kept):
        from talkspurt._terminal.call import Screen

        with Screen(title) as screen:
            yield lambda _, state: screen.show(None if state is None else json.loads(state))
    elif kept.quiet or kept.json:
        yield lambda *_: None
    else:
        with Bar(title) as bar:
            yield lambda share, _: None if share is None else bar.on_fraction(share)
