"""The first process of a node: it sets up the namespaces it was started in and executes commands.

A script of its own, which imports nothing of talkspurt. Its argument is the descriptor of a socket
whose messages are JSON objects, some with descriptors. As the first process of its PID namespace it
takes all others with it when it ends, and it ends when the other end of the socket is closed: no
matter how the emulation ends, the kernel removes processes, mounts, device and network.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

DEVICE = "tun0"
STEP_S = 0.02
"""How soon the end of a command is reported."""
MAX_BYTES = 1 << 20

# linux/if_tun.h
TUNSETIFF = 0x400454CA
IFF_TUN = 0x0001
IFF_NO_PI = 0x1000
"""Packets without a header of the device's own."""


def main(number: int) -> None:
    """Set up the node and execute commands until the socket is closed."""
    link = socket.socket(fileno=number)
    link.set_inheritable(False)
    for each in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
        # Not SIG_IGN, which the commands would inherit.
        signal.signal(each, lambda *_: None)
    wanted, _ = receive(link)
    try:
        device = set_up(wanted)
    except (OSError, subprocess.SubprocessError) as error:
        said = error.stderr if isinstance(error, subprocess.CalledProcessError) else None
        send(link, {"error": (said or str(error)).strip()})
        return
    send(link, {"ready": True}, [device])
    # Only the emulation holds it from now on.
    os.close(device)
    Commands(link).serve()


def set_up(wanted: dict[str, Any]) -> int:
    """Create the device and make it the only way out; returns its descriptor."""
    import fcntl  # the other side of the socket, which imports this module, may be no Linux

    with contextlib.suppress(OSError):  # a name may be too long
        socket.sethostname(wanted["name"])
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
    # RFC 8200 §5: IPv6 needs links with an MTU of 1280 bytes.
    has_v6 = Path("/proc/sys/net/ipv6").is_dir() and wanted["mtu"] >= 1280
    if has_v6:
        # Nothing but the commands sends packets: no link-local address, no duplicate detection.
        set_value(f"net/ipv6/conf/{DEVICE}/addr_gen_mode", "1")
        set_value(f"net/ipv6/conf/{DEVICE}/accept_dad", "0")
        set_value(f"net/ipv6/conf/{DEVICE}/router_solicitations", "0")
    # ping without privileges.
    for groups in ("0 2147483647", "0 0"):
        if set_value("net/ipv4/ping_group_range", groups):
            break
    lines = [
        "link set lo up",
        f"link set {DEVICE} mtu {wanted['mtu']} txqueuelen {wanted['queue']} multicast off up",
        *(f"address add {it}/32 dev {DEVICE}" for it in wanted["v4"]),
        f"route add default dev {DEVICE} src {wanted['v4'][0]}",
    ]
    if has_v6:
        lines += [f"-6 address add {it}/128 dev {DEVICE} nodad" for it in wanted["v6"]]
        lines += [f"-6 route add default dev {DEVICE} src {wanted['v6'][0]}"]
    for line in lines:
        call("ip", *line.split())
    show_hosts(wanted["hosts"])
    return device


def call(*words: str) -> None:
    """Execute a program of the system; raises CalledProcessError with what it said."""
    subprocess.run(words, check=True, capture_output=True, text=True)


def set_value(name: str, value: str) -> bool:
    """Set a parameter of the kernel; false if it is not there or refused."""
    try:
        Path("/proc/sys", name).write_text(value)
    except OSError:
        return False
    return True


def show_hosts(hosts: str) -> None:
    """Names of nodes, in this mount namespace only; no other service is asked for names."""
    replace("/etc/hosts", hosts)
    with contextlib.suppress(OSError):
        lines = Path("/etc/nsswitch.conf").read_text().splitlines()
        lines = ["hosts: files dns" if it.startswith("hosts:") else it for it in lines]
        replace("/etc/nsswitch.conf", "\n".join(lines) + "\n")


def replace(file: str, text: str) -> None:
    """Show another text in place of a file, if there is one."""
    if not Path(file).exists():
        return
    number, path = tempfile.mkstemp()
    with os.fdopen(number, "w") as out:
        out.write(text)
        os.fchmod(out.fileno(), 0o644)
    try:
        call("mount", "--bind", path, os.path.realpath(file))
    finally:
        # The mount keeps it.
        Path(path).unlink()


class Commands:
    """Executes commands on request and reports their ends."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.numbers: dict[int, int] = {}
        """The numbers of the requests, by process."""

    def serve(self) -> None:
        """Answer requests until the socket is closed."""
        self.link.settimeout(STEP_S)
        while True:
            self.reap()
            try:
                request, files = receive(self.link)
            except TimeoutError:
                continue
            except EOFError:
                return
            try:
                self.answer(request, files)
            finally:
                for file in files:
                    os.close(file)

    def answer(self, request: dict[str, Any], files: list[int]) -> None:
        """Do what is requested."""
        match request["do"]:
            case "start":
                self.start(request["number"], files)
            case "signal":
                # All processes of this namespace except this one (kill(2)).
                with contextlib.suppress(ProcessLookupError):
                    os.kill(-1, request["signal"])
            case "signal one":
                for process, number in self.numbers.items():
                    if number == request["number"]:
                        os.kill(process, request["signal"])
            case "sockets":
                send(self.link, {"sockets": bound()})
            case "down":
                with contextlib.suppress(subprocess.CalledProcessError):
                    call("ip", "link", "set", DEVICE, "down")
                send(self.link, {"counters": counters()})
            case "counters":
                send(self.link, {"counters": counters()})

    def start(self, number: int, files: list[int]) -> None:
        """Start a command with the first three files, as the last one says."""
        request = json.loads(os.pread(files[3], os.fstat(files[3]).st_size, 0))
        user = request["user"] or {}
        try:
            process = subprocess.Popen(
                request["command"],
                stdin=files[0],
                stdout=files[1],
                stderr=files[2],
                cwd=request["cwd"],
                env=request["env"],
                user=user.get("uid"),
                group=user.get("gid"),
                extra_groups=user.get("groups"),
            )
        except OSError as error:
            send(self.link, {"failed": number, "errno": error.errno})
            return
        self.numbers[process.pid] = number
        # Reaped below, together with processes whose parents have ended.
        process.returncode = 0
        send(self.link, {"started": number})

    def reap(self) -> None:
        """Report commands that ended, and free the system of other processes that did."""
        with contextlib.suppress(ChildProcessError):
            while True:
                process, status = os.waitpid(-1, os.WNOHANG)
                if process == 0:
                    return
                number = self.numbers.pop(process, None)
                if number is not None:
                    code = os.waitstatus_to_exitcode(status)
                    send(self.link, {"ended": number, "status": code})


def bound() -> int:
    """Sockets of this network that wait for others: TCP's that listen, and UDP's."""
    count = 0
    for name, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        with contextlib.suppress(OSError):
            rows = Path("/proc/net", name).read_text().splitlines()[1:]
            count += sum(row.split()[3] == state for row in rows)
    return count


NAMES = ("bytes", "packets", "errors", "dropped")
"""The first of the eight columns for each direction."""


def counters() -> dict[str, int] | None:
    """What the system counted at the device, seen from it: it sends what the node receives."""
    for row in Path("/proc/net/dev").read_text().splitlines():
        name, _, values = row.partition(":")
        if name.strip() == DEVICE:
            numbers = [int(it) for it in values.split()]
            received = {f"received_{k}": v for k, v in zip(NAMES, numbers, strict=False)}
            sent = {f"sent_{k}": v for k, v in zip(NAMES, numbers[8:], strict=False)}
            return {**received, **sent, "socket_dropped": socket_dropped()}
    return None


def socket_dropped() -> int:
    """Datagrams that arrived while the buffer of their socket was full."""
    count = 0
    with contextlib.suppress(OSError):
        names, values = (
            row.split()
            for row in Path("/proc/net/snmp").read_text().splitlines()
            if row.startswith("Udp:")
        )
        count += int(dict(zip(names, values, strict=True))["RcvbufErrors"])
    with contextlib.suppress(OSError):
        for row in Path("/proc/net/snmp6").read_text().splitlines():
            if row.startswith("Udp6RcvbufErrors"):
                count += int(row.split()[1])
    return count


def send(link: socket.socket, message: dict[str, Any], files: list[int] | None = None) -> None:
    """Send a message with descriptors; nothing if the other end is closed."""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        socket.send_fds(link, [json.dumps(message).encode()], files or [])


def receive(link: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """The next message and its descriptors."""
    try:
        data, files, _, _ = socket.recv_fds(link, MAX_BYTES, 4)
    except ConnectionResetError:
        data, files = b"", []
    for file in files:
        os.set_inheritable(file, False)
    if not data:
        raise EOFError
    return json.loads(data), files


if __name__ == "__main__":
    with contextlib.suppress(EOFError):
        main(int(sys.argv[1]))
