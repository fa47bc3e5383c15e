"""A voice call over a real path, from the end that calls; and what both ends of one share."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from talkspurt import _core
from talkspurt._storage import file_access, interrupts
from talkspurt._terminal.progress import Bar
from talkspurt._text.escaping import visible
from talkspurt.errors import EndedEarlyError, Faults
from talkspurt.real_time import codecs, devices, measuring, serving
from talkspurt.results.audio import wav
from talkspurt.results.result import Result

PORT = 7863
"""TCP port of the end that answers unless told otherwise."""
OFFER = ("opus", "g722", "pcmu", "pcma")
LADDER = ("pcmu", "g726-40", "g726-32", "g726-24", "g726-16")
"""Codecs offered unless told otherwise; with TFRC-TB those of Maldonado et al. (2005)."""
STEP_S = 0.05
Watch = Callable[[float | None, str | None], None]
"""Is given the share of a call's time that has passed, and its state as JSON."""


@dataclass(frozen=True)
class Voice:
    """What is said at an end of a call, and where it is heard.

    Attributes:
        speech: WAV file of what is said; silence follows until the call ends.
        microphone: in place of ``speech``: a source of PulseAudio or PipeWire, or ``default``.
        loudspeaker: where what is heard is played: a sink of PulseAudio or PipeWire, or
            ``default``; default: nowhere.
        codecs: in order of preference, as in scenarios; default: opus, g722, pcmu, pcma, and over
            tfrc-tb pcmu and G.726 at four rates.
    """

    speech: str | os.PathLike[str] | None = None
    microphone: str | None = None
    loudspeaker: str | None = None
    codecs: str | Sequence[str] = ()

    def check(self, faults: Faults) -> None:
        """Find whether what is said comes from one place."""
        faults.add(
            "what is said: give one of --speech and --microphone",
            unless=(self.speech is None) != (self.microphone is None),
        )

    def open(self, default: Sequence[str]) -> _core.CallVoice:
        """The file and the codecs, checked like the devices.

        Raises:
            BadInputError: the file cannot be read, or a codec or a device is unknown.
        """
        devices.check(self.microphone, self.loudspeaker)
        codecs.load()
        named = [self.codecs] if isinstance(self.codecs, str) else self.codecs
        with serving.refused():
            return _core.CallVoice(
                self.speech, list(named or default), self.loudspeaker is not None
            )

    def devices(self) -> devices.Devices:
        """The sound devices, before they are started."""
        return devices.Devices(self.microphone, self.loudspeaker)


def call(
    host: str,
    voice: str | os.PathLike[str] | Voice,
    *,
    heard: str | os.PathLike[str] | None = None,
    transport: str = "udp",
    duration: str | None = None,
    mtu: int = 1500,
    seed: int | None = None,
    secret_file: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> Result:
    """Call a machine that runs ``talkspurt answer``. Needs Linux.

    Args:
        host: name or address of the answerer, with ``:PORT`` unless it is 7863;
            ``[ADDRESS]:PORT`` for IPv6.
        voice: WAV file of what is said here, or a :class:`Voice`.
        heard: WAV file to write with what is heard here, which the result has, too.
        transport: one of those of ``talkspurt measure``; followed by ``+gcc``, ``+nada`` or
            ``+fixed``, a session with this controller over it.
        duration: length of the call, up to 1h; default: that of the speech, and 1h with a
            microphone.
        mtu: longest IP packet on the path, in bytes.
        seed: of the random parts of the protocols; default: another one each time.
        secret_file: file with the shared secret, readable only by its owner; default: the
            environment variable TALKSPURT_SECRET has the secret.
        progress: whether to show progress on standard error.

    Returns:
        A result with the tables of a run and the sound of both directions, of the flows ``call``
        and ``call.reverse``; ``manifest["measured"]["call"]`` says what was agreed.

    Raises:
        talkspurt.errors.BadInputError: if an argument is wrong, where messages name the option of
            ``talkspurt call``, or if the other end cannot be reached or refuses.
        talkspurt.errors.EndedEarlyError: if the other end was lost, with the result if there is
            one.
        OSError: if a file cannot be read or written.
    """
    said = voice if isinstance(voice, Voice) else Voice(voice)
    file = None if heard is None else Path(heard)
    faults = Faults()
    said.check(faults)
    check_heard(file, faults)
    caller = Caller(
        host, said, transport=transport, duration=duration, mtu=mtu,
        seed=seed, secret_file=secret_file, faults=faults,
    )  # fmt: skip
    with interrupts.undisturbed(), Bar(caller.title, shown=progress) as bar:
        ended = caller.call(lambda share, _: bar.on_fraction(share or 0.0))
        ended.write_sound(file)
    if ended.broken is not None or ended.result is None:
        raise EndedEarlyError(visible(f"{ended.about['other']}: {ended.broken}"), ended.result)
    return ended.result


class Caller:
    """A connection to the end that answers: :func:`call` has the arguments."""

    def __init__(
        self,
        host: str,
        voice: Voice,
        *,
        transport: str,
        duration: str | None,
        mtu: int,
        seed: int | None,
        secret_file: str | os.PathLike[str] | None,
        faults: Faults,
    ) -> None:
        """Check the arguments, besides the ``faults`` found before, and connect."""
        serving.supported()
        self._voice = voice
        with faults.gathered():
            below, _, _ = transport.partition("+")
            self._said = voice.open(LADDER if below == "tfrc-tb" else OFFER)
        with faults.gathered():
            _core.check_transport(below, sends=True)
        if duration is not None:
            with faults.gathered():
                _core.check_length("--for", duration)
        measuring.check_mtu_and_seed(mtu, seed, faults)
        with faults.gathered():
            self.name, port = measuring.target(host, PORT)
        with faults.gathered():
            key = serving.secret(secret_file)
        faults.check()
        own = self._said.duration_s
        length = duration or ("1h" if own is None else f"{max(1.0, own):.3f}s")
        seed = seed if seed is not None else secrets.randbits(62)
        self._how = transport, length, mtu, seed
        self.title = f"Call to {host} over {transport}"
        self._began = time.monotonic()
        with serving.refused():
            self._session = _core.Session(self.name, port, key)

    def call(self, watch: Watch, keep: Callable[[Ended], None] = lambda _: None) -> Ended:
        """Call until the end or a stop; ``keep`` gets what this end knows at first."""
        with serving.refused():
            calling = self._session.call(self._said, *self._how)
            follow(
                calling,
                lambda: None if calling.wait(STEP_S) else calling.watch(),
                self._voice.devices(),
                lambda state: watch(calling.progress(), state),
                keep,
            )
            called = calling.result()
        return Ended.of(called, f"A {self.title[:1].lower()}{self.title[1:]}", self._began)


def check_heard(file: Path | None, faults: Faults) -> None:
    """Find whether what is heard can be written to a file."""
    if file is not None and (file.is_dir() or not file.absolute().parent.is_dir()):
        faults.add(f"--heard {file}: expected a file in a folder")


def follow(
    line: _core.Watched[_core.Called] | _core.Server,
    in_progress: Callable[[], _core.CallWatch | None],
    sound: devices.Devices,
    watch: Callable[[str | None], None],
    keep: Callable[[Ended], None],
) -> None:
    """Connect the devices to a call and watch it until it is over, or hang up after a stop."""
    with sound:
        while (call := in_progress()) is not None:
            if interrupts.came():
                call.stop()
            else:
                sound.attach(call.devices())
                watch(call.view())
            if (half := line.half()) is not None:
                keep(Ended.of(half, "A call", time.monotonic()))


@dataclass(frozen=True)
class Ended:
    """A call that has ended.

    Attributes:
        result: its tables, if there are any.
        sound: what was heard: samples of 16 bits, little endian, their rate, and channels.
        broken: why it is not what was asked for, if it is not.
    """

    result: Result | None
    about: dict[str, Any]
    sound: tuple[bytes, int, int]
    broken: str | None

    @classmethod
    def of(cls, called: _core.Called, title: str, began: float) -> Ended:
        """What the compiled part returns of a call that ``began`` at an instant."""
        outcome, text, scenario, sound, broken = called
        facts: dict[str, Any] = json.loads(text)
        about = facts["call"]
        result = None
        if outcome is not None:
            flows: list[measuring.Flow] = [("call", about["transport"], True, True)]
            wall_s = time.monotonic() - began
            measured: Any = {"server": about["other"], **facts}
            result = measuring.made("call", title, flows, outcome, scenario, measured, wall_s)
        return cls(result, about, sound, broken)

    @property
    def heard_s(self) -> float:
        """The length of what was heard."""
        pcm, rate, channels = self.sound
        return len(pcm) / 2 / channels / rate

    def write_sound(self, file: Path | None) -> None:
        """Write what was heard to a file, if one is wanted."""
        if file is not None:
            file_access.write_bytes(file, wav(*self.sound))
