"""A call from baresip to baresip, by its address, without a registrar: G.711 and Opus.

The caller plays our speech from a file. The answerer plays what it hears through ALSA into a null
sink of PulseAudio, which keeps time as a sound card does and from which it is recorded.

Loss is what the network counted, beside what baresip prints. Our calls have a fixed buffer of as
many packets as baresip waits for (`jitter_buffer_delay`), and the adaptive one. The bands are in
`hearing.py`.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import hearing
from networks import SECONDS, Case, crossed, networks

import talkspurt

NEEDS = ("baresip", "pulseaudio", "parec", "ffmpeg")
VERSION = ("baresip", "-h")
CALL_S = SECONDS + 3
PACKETS = 5
"""The answerer's jitter buffer."""
CODECS = {
    "pcmu": ("g711", 8000, "PCMU/8000/1", 8000, {"codec": "pcmu"}),
    "opus": ("opus", 48_000, "opus", 16_000, {
        "codec": "opus", "opus": {"bitrate": "32kbit/s", "rate_control": "vbr", "fec": True},
    }),
}  # fmt: skip
"""Module, sample rate of its sound, name, sample rate at which it is scored, our source."""
CONFIG = """\
poll_method epoll
sip_listen {at}:5060
audio_source aufile,{speech}
audio_player alsa,default
audio_alert alsa,default
ausrc_channels 1
auplay_channels 1
audio_buffer 20-160
jitter_buffer_delay {packets}-{most}
rtp_stats yes
module_path /usr/lib/baresip/modules
module stdio.so
module {module}.so
module plc.so
module aufile.so
module alsa.so
module_tmp uuid.so
module_tmp account.so
module_app menu.so
opus_bitrate 32000
opus_inbandfec yes
opus_stereo no
opus_sprop_stereo no
"""
SINKS = """\
load-module module-null-sink sink_name=b rate={rate} channels=1 format=s16le
load-module module-null-sink sink_name=a
load-module module-native-protocol-unix socket={folder}/pulse.sock auth-anonymous=1
"""


def cases(traces: Path | None) -> Iterator[Case]:
    """One for each network and codec."""
    for name, network in networks(traces):
        for codec in CODECS:
            yield f"{name} {codec}", partial(_crossed, name, network, codec)


def _crossed(name: str, network: dict[str, Any], codec: str) -> dict[str, Any]:
    _, rate, _, scored, source = CODECS[codec]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        told, _, late, row, start = crossed(name, network, "udp", partial(_call, folder, codec))
        speech = {**source, "kind": "speech", "repeat": True,
                  "file": str(hearing.speech(folder, rate))}  # fmt: skip
        buffers = {
            "fixed": {"kind": "fixed", "buffer": f"{20 * PACKETS}ms"},
            "adaptive": {"kind": "adaptive"},
        }
        return {
            "network": name, "codec": codec, "late": late,
            "program": {
                "lost": row["lost_packets"] / row["sent_packets"], "told_lost": told,
                "packets": row["sent_packets"],
                **hearing.judged(folder / "heard.wav", folder, scored, SECONDS),
            },
            "ours": {
                kind: hearing.ours(
                    name, network,
                    {"transport": {"kind": "udp"}, "playout": playout, "source": speech},
                    start, folder, rate=scored,
                )
                for kind, playout in buffers.items()
            },
        }  # fmt: skip


def _call(folder: Path, codec: str, network: talkspurt.Emulation) -> int:
    """Make the call; returns how many packets the answerer says were lost."""
    module, rate, name, *_ = CODECS[codec]
    (folder / "pulse.pa").write_text(SINKS.format(folder=folder, rate=rate))
    (folder / "pulse.sock").unlink(missing_ok=True)
    (folder / ".asoundrc").write_text("pcm.!default { type pulse }\nctl.!default { type pulse }\n")
    env = {**os.environ, "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder)}
    sink = {**env, "PULSE_SERVER": f"unix:{folder}/pulse.sock"}
    with (folder / "log").open("w+") as log, Path(os.devnull).open() as nothing:
        files = {"stdin": nothing, "stdout": log, "stderr": log}
        words = ["pulseaudio", "-n", "--daemonize=no", "--exit-idle-time=-1", "--disable-shm=yes"]
        network.start("b", [*words, "-F", str(folder / "pulse.pa")], env=env, **files)
        until = time.monotonic() + 10
        while not (folder / "pulse.sock").exists() and time.monotonic() < until:
            time.sleep(0.05)
        ends = []
        for node, seconds in (("b", CALL_S + 2), ("a", CALL_S)):
            home = folder / node
            home.mkdir(exist_ok=True)
            at = network.addresses[node][0]
            account = f"<sip:{node}@{at}>;regint=0;answermode=auto;audio_codecs={name}\n"
            (home / "accounts").write_text(account)
            (home / "contacts").write_text("")
            (home / "config").write_text(CONFIG.format(
                at=at, speech=hearing.speech(folder, rate), module=module, packets=PACKETS,
                most=2 * PACKETS,
            ))  # fmt: skip
            words = ["baresip", "-4", "-f", str(home), "-t", str(seconds)]
            if node == "a":
                words += ["-e", f"/dial sip:b@{network.addresses['b'][0]}"]
            out = (folder / f"{node}.log").open("w+")
            ends.append((network.start(
                node, words, env={**sink, "PULSE_SINK": node}, stdin=nothing, stdout=out,
                stderr=log,
            ), out))  # fmt: skip
            if node == "b":
                time.sleep(1)
        words = ["parec", "-d", "b.monitor", "--file-format=wav", f"--rate={rate}", "--channels=1"]
        heard = str(folder / "heard.wav")
        network.start("b", [*words, "--format=s16le", heard], env=sink, **files)
        for end, _ in reversed(ends):
            end.wait(CALL_S + 30)
        network.stop()
        _, out = ends[0]
        out.seek(0)
        lost = re.search(r"^lost: +\d+ +(\d+)", out.read(), re.MULTILINE)
        for _, each in ends:
            each.close()
    if lost is None:
        raise RuntimeError(f"baresip: no call; see {folder}")
    return int(lost[1])
