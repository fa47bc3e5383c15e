"""One end of a call in Chromium; a command at a node of an emulation.

    python browser.py caller|answerer FOLDER SECONDS SPEECH.wav [MORE ...]

MORE are video, events, twice, dump, fake, soft, bare, first, picture=FILE, and most=BIT/S.
Playwright drives the browser over a pipe. FOLDER has the descriptions that both ends exchange, and
afterwards ROLE.json with the samples of getStats, and ROLE.webm with the sound received. With
``events``, the browser also writes its RTC event log into ROLE.events, samples only once a second,
records no sound, and encrypts no media, so that a capture shows what is in the packets. With
``twice``, the speech is sent a second time, ``LATER_S`` later, as another stream. With ``dump``,
the browser writes its log of encrypted media, all statistics are sampled once a second, the tracks
are stopped ``ARRIVED_S`` before the last sample, and the dump of chrome://webrtc-internals is saved
as ROLE.txt after it; the call ends when the log has been written. With ``fake``, sound and picture
are those of the browser's fake devices, encoded as it likes, the log is of encrypted media, and the
call ends when the log has been written; the caller's picture is that of a file, if one is given.
With ``video``, statistics are sampled as often as without ``events``, and media is encrypted;
``most`` is the highest rate of the video, ``soft`` gives the picture less contrast, and ``bare``
sends no parity (RED and ULPFEC) beside it. With ``first``, everything at the node has a priority of
real time once the call has begun, which needs root.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import sys
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
WAIT_S = 60
LATER_S = 3.1
ARRIVED_S, LOGGED_S = 2, 7
"""After the last packet: until all have arrived; and until the log, written every 5 s, has them."""
VIDEO_BPS = 12_000_000
"""The highest rate of the video: more than the links can carry."""


def main(role: str, folder: Path, seconds: float, speech: Path, more: list[str]) -> None:
    """Open the call, let it last, and write what was measured."""
    video, events, twice, dump, fake = (
        it in more for it in ("video", "events", "twice", "dump", "fake")
    )
    events |= dump or fake
    is_open = events and not (dump or fake or video)
    most = [int(it.removeprefix("most=")) for it in more if it.startswith("most=")]
    arguments = [
        "--no-sandbox", "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream",
        "--disable-gpu", "--autoplay-policy=no-user-gesture-required",
        "--disable-background-networking",
        "--disable-features=WebRtcHideLocalIpsWithMdns,MediaRouter",
    ]  # fmt: skip
    if not fake:
        arguments.append(f"--use-file-for-fake-audio-capture={speech}")
    arguments += [
        f"--use-file-for-fake-video-capture={it.removeprefix('picture=')}"
        for it in more
        if it.startswith("picture=") and role == "caller"
    ]
    if events:
        (folder / f"{role}.events").mkdir()
        arguments.append(f"--webrtc-event-logging={folder / f'{role}.events'}")
    if is_open:
        arguments.append("--disable-webrtc-encryption")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        if dump:
            internals = running.new_page()
            internals.goto("chrome://webrtc-internals/")
        page = running.new_page()
        page.on("console", lambda message: print(role, message.text, file=sys.stderr))
        page.on("pageerror", lambda error: print(role, error, file=sys.stderr))
        # A secure origin, without which there is no microphone; nothing is looked up.
        page.route("**/*", lambda route: route.fulfill(
            body=(HERE / "page.html").read_text(), content_type="text/html"
        ))  # fmt: skip
        page.goto("https://call.example/")
        other = "answerer" if role == "caller" else "caller"
        write(folder / f"{role}.ready", "")
        read(folder / f"{other}.ready")
        picture = (most or [VIDEO_BPS])[0] if video and role == "caller" else 0
        media = {"video": picture, "recorded": not events, "twice": LATER_S if twice else 0}
        media |= {"fake": fake, "soft": "soft" in more, "bare": "bare" in more}
        page.evaluate("(media) => open(media)", media)
        if role == "caller":
            write(folder / "caller.sdp", json.dumps(page.evaluate("() => offer()")))
            page.evaluate("(it) => accept(it)", json.loads(read(folder / "answerer.sdp")))
        else:
            offer = json.loads(read(folder / "caller.sdp"))
            write(folder / "answerer.sdp", json.dumps(page.evaluate("(it) => answer(it)", offer)))
        if "first" in more:
            come_first()
        page.evaluate("(how) => watch(how)", [100 if video or not events else 1000, dump])
        page.wait_for_timeout(seconds * 1000)
        if dump:
            page.evaluate("(wait_ms) => stop(wait_ms)", 1000 * ARRIVED_S)
            save(internals, folder / f"{role}.txt")
            page.wait_for_timeout(1000 * LOGGED_S)
        elif fake or (events and video):
            page.wait_for_timeout(1000 * LOGGED_S)
        found = page.evaluate("() => close()")
        if not events:
            (folder / f"{role}.webm").write_bytes(base64.b64decode(found["sound"]))
        (folder / f"{role}.json").write_text(json.dumps(found["samples"]))
        running.close()


def come_first() -> None:
    """Give all threads of the node a priority of real time; those that they start have it, too.

    That of the process which reads from sockets, and notes when, is above the others.
    """
    for task in Path("/proc").glob("[0-9]*/task/[0-9]*"):
        with contextlib.suppress(OSError):
            reads = b"network.mojom.NetworkService" in (task / "cmdline").read_bytes()
            priority = os.sched_param(2 if reads else 1)
            os.sched_setscheduler(int(task.name), os.SCHED_RR, priority)


def save(internals: Page, file: Path) -> None:
    """The dump of chrome://webrtc-internals, uncompressed."""
    with internals.expect_download() as saved:
        internals.evaluate(
            "() => { document.getElementById('dump-checkbox').checked = false;"
            " document.getElementById('dump-click-target').click(); }"
        )
    saved.value.save_as(file)


def write(file: Path, text: str) -> None:
    """A file that appears complete."""
    new = file.with_suffix(".new")
    new.write_text(text)
    new.rename(file)


def read(file: Path) -> str:
    """A file of the other end, once it is there."""
    until = time.monotonic() + WAIT_S
    while not file.exists():
        if time.monotonic() > until:
            raise TimeoutError(f"{file.name} does not appear")
        time.sleep(0.02)
    return file.read_text()


if __name__ == "__main__":
    role, folder, seconds, speech, *more = sys.argv[1:]
    main(role, Path(folder), float(seconds), Path(speech), more)
