#!/usr/bin/env python3
"""One conversation, in its own network namespace: `run.py` starts this with `unshare --net`.

Creates a TUN device, passes it to our program as standard input, exchanges data with it over a
kernel socket, and prints both outputs as JSON. The namespace, the device and all the kernel's
connection state end with this process.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]

from harness import address  # noqa: E402
from matrix import ALL, PORT, Case  # noqa: E402

# linux/if_tun.h
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x1, 0x1000
DEVICE = "lane"
# The kernel's address (the device's), and ours, behind it.
KERNEL = {4: "10.44.0.1", 6: "fd44::1"}
OURS = {4: "10.44.0.2", 6: "fd44::2"}
LIMIT = 240.0
"""Timeout of a conversation in seconds."""
# linux/tcp.h, struct tcp_info: offsets and kinds.
TCP_INFO = {
    "options": (5, "B"), "pmtu": (60, "I"), "rtt_us": (68, "I"), "cwnd": (80, "I"),
    "reordering": (88, "I"), "total_retrans": (100, "I"), "min_rtt_us": (148, "I"),
    "data_segs_in": (152, "I"), "data_segs_out": (156, "I"), "delivered_ce": (196, "I"),
    "bytes_retrans": (208, "Q"), "dsack_dups": (216, "I"), "reord_seen": (220, "I"),
    "rcv_ooopack": (224, "I"),
}  # fmt: skip


def main() -> int:
    """Runs the conversation in the 1st argument with the program in the 2nd, in folder 3."""
    name, peer, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    case = next(case for case in ALL if case.name == name)
    # Terminating this must also stop our program.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    tun = lane(case)
    print(json.dumps(hold(case, peer, folder, tun)))
    return 0


def lane(case: Case) -> int:
    """Creates the device with the kernel's addresses and settings; returns its descriptor."""
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
    for name, value in {"tcp_ecn": 0, **case.sysctl}.items():
        Path("/proc/sys/net/ipv4", name).write_text(str(value))
    # No router solicitations or listener reports on the lane.
    Path("/proc/sys/net/ipv6/conf/all/addr_gen_mode").write_text("1")
    Path(f"/proc/sys/net/ipv6/conf/{DEVICE}/addr_gen_mode").write_text("1")
    # The queue between kernel and program must not drop packets: losses are made on purpose.
    run("ip", "link", "set", DEVICE, "txqueuelen", "20000")
    run("ip", "addr", "add", f"{KERNEL[4]}/24", "dev", DEVICE)
    run("ip", "-6", "addr", "add", f"{KERNEL[6]}/64", "dev", DEVICE, "nodad")
    run("ip", "link", "set", DEVICE, "up")
    return tun


def hold(case: Case, peer: str, folder: Path, tun: int) -> dict:
    """Runs the conversation and returns its result."""
    out, back = (random.Random(f"{case.name} {way}").randbytes(length)
                 for way, length in zip(("out", "back"), case.bytes, strict=True))  # fmt: skip
    (folder / "out").write_bytes(out)
    family = socket.AF_INET if case.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_STREAM) as ear:
        ear.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, case.kernel.encode())
        ear.settimeout(LIMIT)
        if case.opens == "ours":
            ear.bind((KERNEL[case.version], PORT))
            ear.listen(1)
        with subprocess.Popen(words(case, peer, folder), stdin=tun, stdout=subprocess.PIPE,
                              text=True) as process:  # fmt: skip
            try:
                kernel, heard = talk(case, ear, process, back)
                said = process.communicate(timeout=LIMIT + 30)[0]
            finally:
                process.kill()
    kernel["counters"] = counters()
    kernel["dropped_between"] = dropped()
    came = (folder / "back").read_bytes() if (folder / "back").exists() else b""
    return {
        "ours": next(map(json.loads, filter(None, said.splitlines()[-1:])), None),
        "theirs": kernel,
        "digests": {
            "from us": {"sent": digest(out), "received": digest(heard)},
            "from the kernel": {"sent": digest(back), "received": digest(came)},
        },
    }


def words(case: Case, peer: str, folder: Path) -> list[str]:
    """The command line of our program."""
    role = "client" if case.opens == "ours" else "server"
    command = [peer, "tcp", role, "--local", address(OURS[case.version], PORT)]
    command += ["--tcp", case.ours()]
    command += ["--remote", address(KERNEL[case.version], PORT)] if role == "client" else []
    command += ["--send", str(folder / "out"), "--receive", str(folder / "back")]
    command += ["--limit", f"{LIMIT:.0f}s", "--seed", str(case.seed)]
    command += ["--pcapng", str(folder / f"{case.name}.pcapng")]
    # A pure listener closes after the peer; if both send, the first to finish closes.
    command += ["--closes"] if case.sends != "theirs" else []
    command += ["--mirrored"] if case.mirrored else []
    return [*command, *case.way.words()]


def talk(
    case: Case, ear: socket.socket, process: subprocess.Popen[str], back: bytes
) -> tuple[dict, bytes]:
    """The kernel's side: its counts, and the received data."""
    assert process.stdout
    if case.opens == "ours":
        line, _ = ear.accept()
    else:
        if not select.select([process.stdout], [], [], 30)[0]:
            raise TimeoutError("our side does not listen")
        process.stdout.readline()
        line = ear
        line.connect((OURS[case.version], PORT))
    began = time.monotonic()
    line.settimeout(LIMIT)
    end = "closed"
    heard: list[bytes] = []
    sender = threading.Thread(target=say, args=(case, line, back), daemon=True)
    try:
        sender.start()
        if case.slow:
            time.sleep(3)  # the pause that fills its buffer
        while piece := line.recv(1 << 18):
            heard.append(piece)
        seconds = time.monotonic() - began
        sender.join(LIMIT)
    except OSError as error:
        seconds, end = time.monotonic() - began, f"{type(error).__name__}: {error}"
    told = {"end": end, "seconds": seconds, "info": info(line)}
    line.close()
    return told, b"".join(heard)


def say(case: Case, line: socket.socket, back: bytes) -> None:
    """Sends all data and closes that direction: at once, or, without data, at the end."""
    try:
        if case.sends != "ours":
            line.sendall(back)
            line.shutdown(socket.SHUT_WR)
    except OSError as error:
        print(f"the kernel's sender: {error}", file=sys.stderr)


def info(line: socket.socket) -> dict:
    """The kernel's state of the connection."""
    raw = line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512)
    return {
        name: struct.unpack_from("=" + kind, raw, where)[0]
        for name, (where, kind) in TCP_INFO.items()
        if len(raw) >= where + struct.calcsize(kind)
    }


def counters() -> dict:
    """The namespace's own non-zero TCP counters; it has had no other traffic."""
    all_of_them: dict[str, int] = {}
    for path in ("/proc/net/snmp", "/proc/net/netstat"):
        rows = [row.split() for row in Path(path).read_text().splitlines()]
        for names, values in zip(rows[::2], rows[1::2], strict=True):
            if names[0] in ("Tcp:", "TcpExt:"):
                all_of_them |= dict(zip(names[1:], map(int, values[1:]), strict=True))
    return {name: value for name, value in all_of_them.items() if value}


def dropped() -> int:
    """Packets dropped by the device, in either direction."""
    told = subprocess.run(["ip", "-s", "-j", "link", "show", DEVICE], check=True,
                          capture_output=True)  # fmt: skip
    stats = json.loads(told.stdout)[0]["stats64"]
    return stats["rx"]["dropped"] + stats["tx"]["dropped"]


def digest(data: bytes) -> str:
    """Bytes and SHA-256."""
    return f"{len(data)} {hashlib.sha256(data).hexdigest()}"


def run(*command: str) -> None:
    """Runs a command that must succeed."""
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
