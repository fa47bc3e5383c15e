"""Microphone and loudspeaker of a call, through PulseAudio or PipeWire.

``parec`` and ``pacat`` read and write raw samples at any rate; PipeWire speaks their protocol.
PortAudio would need a compiled library and ALSA's plug-in for PulseAudio to reach the same server.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from typing import IO

from talkspurt import _core
from talkspurt._text.escaping import visible
from talkspurt._text.format import offered
from talkspurt.errors import BadInputError

DEFAULT = "default"
"""The device that the sound server has chosen."""
BLOCK_S = 0.01
LATENCY_MS = 20
PROGRAMS = {"pactl": "pulseaudio-utils", "parec": "pulseaudio-utils", "pacat": "pulseaudio-utils"}
"""Programs, and Debian's packages that have them."""


def check(microphone: str | None, loudspeaker: str | None) -> None:
    """Raise BadInputError if a device cannot be used."""
    if microphone is None and loudspeaker is None:
        return
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        raise BadInputError(
            f"sound devices need {', '.join(missing)}: install {PROGRAMS[missing[0]]}"
        )
    for option, name, kind in (
        ("--microphone", microphone, "sources"),
        ("--loudspeaker", loudspeaker, "sinks"),
    ):
        if name is None:
            continue
        try:
            listed = subprocess.run(
                ["pactl", "list", "short", kind],
                capture_output=True, text=True, timeout=10, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise BadInputError(f"{option}: the sound server does not answer") from None
        if listed.returncode:
            why = listed.stderr.strip() or "no answer"
            raise BadInputError(visible(f"{option}: no sound server: {why}"))
        names = [line.split("\t")[1] for line in listed.stdout.splitlines() if "\t" in line]
        if not names or (name != DEFAULT and name not in names):
            raise BadInputError(visible(f"{option} {name}: unknown; {offered(name, names)}"))


class Devices:
    """The devices of one end; use as a context manager and call :meth:`attach` now and then."""

    def __init__(self, microphone: str | None, loudspeaker: str | None) -> None:
        self.microphone = microphone
        self.loudspeaker = loudspeaker
        self._over = threading.Event()
        self._running: list[tuple[subprocess.Popen[bytes], threading.Thread]] = []

    def __enter__(self) -> Devices:
        return self

    def attach(self, call: _core.CallDevices | None) -> None:
        """Start the devices of a call as soon as it has codecs, and thus a sample rate."""
        if call is None or self._running:
            return
        if self.microphone is not None:
            self._start("parec", self.microphone, call, _record)
        if self.loudspeaker is not None:
            self._start("pacat", self.loudspeaker, call, _play)

    def _start(
        self,
        program: str,
        device: str,
        call: _core.CallDevices,
        work: Callable[[subprocess.Popen[bytes], _core.CallDevices, threading.Event], None],
    ) -> None:
        rate, channels = call.format
        named = [] if device == DEFAULT else [f"--device={device}"]
        pipe = {"stdout" if program == "parec" else "stdin": subprocess.PIPE}
        process = subprocess.Popen(
            [program, "--raw", "--format=s16le", f"--rate={rate}", f"--channels={channels}",
             f"--latency-msec={LATENCY_MS}", "--client-name=talkspurt", *named],
            stderr=subprocess.DEVNULL, start_new_session=True, bufsize=0, **pipe,
        )  # type: ignore[call-overload]  # fmt: skip
        thread = threading.Thread(target=work, args=(process, call, self._over), daemon=True)
        thread.start()
        self._running.append((process, thread))

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for process, thread in self._running:
            process.terminate()
            thread.join(2)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(2)


def _block(call: _core.CallDevices) -> int:
    rate, channels = call.format
    return round(rate * BLOCK_S) * channels * 2


def _record(
    process: subprocess.Popen[bytes], call: _core.CallDevices, over: threading.Event
) -> None:
    source: IO[bytes] | None = process.stdout
    rest = b""
    while source is not None and not over.is_set():
        data = rest + source.read(_block(call))
        if not data:
            return
        whole = len(data) // 2 * 2
        call.say(data[:whole])
        rest = data[whole:]


def _play(process: subprocess.Popen[bytes], call: _core.CallDevices, over: threading.Event) -> None:
    sink: IO[bytes] | None = process.stdin
    with contextlib.suppress(BrokenPipeError):
        while sink is not None and not over.is_set():
            data = call.hear()
            if data:
                sink.write(data)
            else:
                time.sleep(BLOCK_S)
