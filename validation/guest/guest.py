"""A Linux 6.1 kernel in qemu, and its network to this machine.

`Lane` is a network namespace with tap devices: `HOST` is our address on the first, `GUEST` the
kernel's; `further` returns addresses of others. `Guest` is the running kernel, controlled line by
line over a serial port. Needs root, qemu and the output of `prepare`; cleans up completely.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

HOST = {4: "10.33.0.1", 6: "fd33::1"}
GUEST = {4: "10.33.0.2", 6: "fd33::2"}
STORE = Path(
    os.environ.get("TALKSPURT_GUEST")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "talkspurt/guest"
)
TAP = "guest"


def unprepared() -> str | None:
    """What `prepare` must build first or again: a guest from other sources behaves differently."""
    here = Path(__file__).resolve().parent
    image = STORE / "initramfs.gz"
    if not image.exists():
        return f"there is no kernel in {STORE}; run {here / 'prepare'} first"
    peers = [here.parent / "talk.h", *here.parent.glob("linux-*/peer.c")]
    sources = [here / "prepare", here / "init", *peers]
    newer = [file for file in sources if file.stat().st_mtime > image.stat().st_mtime]
    if newer:
        return f"{newer[0].name} is newer than the guest in {STORE}; run {here / 'prepare'} again"
    return None


def further(card: int) -> tuple[str, str]:
    """IPv4 addresses of a further card, from 1: ours and the guest's."""
    return f"10.33.{card}.1", f"10.33.{card}.2"


class Lane:
    """A network namespace whose only neighbour is the guest, with one or more network cards."""

    def __init__(self, cards: int = 1) -> None:
        self.name = f"talkspurt-{os.getpid()}"
        self.taps = [TAP, *(f"{TAP}{card}" for card in range(1, cards))]
        run("ip", "netns", "add", self.name)
        try:
            run("ip", "-n", self.name, "link", "set", "lo", "up")
            for card, tap in enumerate(self.taps):
                at = further(card)[0] if card else HOST[4]
                run("ip", "-n", self.name, "tuntap", "add", tap, "mode", "tap")
                run("ip", "-n", self.name, "addr", "add", f"{at}/24", "dev", tap)
                run("ip", "-n", self.name, "link", "set", tap, "up")
            run("ip", "-n", self.name, "-6", "addr", "add", f"{HOST[6]}/64", "dev", TAP, "nodad")
        except BaseException:
            self.close()
            raise

    def inside(self, *command: str) -> list[str]:
        """The command that runs this one in the namespace."""
        return ["ip", "netns", "exec", self.name, *command]

    def dropped(self) -> int:
        """Packets dropped by the tap so far, in either direction.

        In a burst that exceeds the guest's capacity the tap drops: qemu leaves packets in it while
        the card is full.
        """
        folders = [f"/sys/class/net/{tap}/statistics" for tap in self.taps]
        counters = [f"{folder}/{way}_dropped" for folder in folders for way in ("rx", "tx")]
        told = subprocess.run(self.inside("cat", *counters), check=True, capture_output=True)
        return sum(map(int, told.stdout.split()))

    def close(self) -> None:
        """Removes the namespace, and the tap with it."""
        run("ip", "netns", "del", self.name)


class Guest:
    """The kernel. One command runs at a time."""

    def __init__(self, lane: Lane, patience: float = 90, at: Mapping[int, str] = GUEST) -> None:
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name)
        words = f"guest.v4={at[4]}/24 guest.v6={at[6]}/64"
        self.qemu = subprocess.Popen(
            lane.inside(
                "qemu-system-x86_64", "-machine", "q35", "-accel", "tcg", "-cpu", "max",
                "-m", "256", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                "-kernel", str(STORE / "vmlinuz"), "-initrd", str(STORE / "initramfs.gz"),
                "-append", f"console=ttyS0 quiet panic=-1 mitigations=off nokaslr {words}",
                "-serial", f"file:{path / 'console'}",
                "-serial", f"unix:{path / 'control'},server=on,wait=off",
                *(word for tap in lane.taps for word in card(tap)),
            ),
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        self.rest = b""
        try:
            self.control = self._connect(path / "control", patience)
            self.release = self._until("=ready ", patience)[1]
            for number in range(1, len(lane.taps)):
                self._add_card(number)
        except BaseException:
            print((path / "console").read_text(errors="replace")[-2000:])
            self.close()
            raise

    def _add_card(self, number: int) -> None:
        up = f"ip link set eth{number} up && ip addr add {further(number)[1]}/24 dev eth{number}"
        carrier = f"/sys/class/net/eth{number}/carrier"
        self.ask(f"{up}; while [ $(cat {carrier}) != 1 ]; do usleep 50000; done")

    def start(self, command: str) -> None:
        """Starts a command; `finish` collects its output."""
        self.control.sendall(command.encode() + b"\n")

    def wait_for(self, event: str, patience: float = 10) -> list[dict]:
        """Output of the running command up to and including this event."""
        said = []
        deadline = time.monotonic() + patience
        while not said or said[-1].get("event") != event:
            line = self._line(deadline)
            if line.startswith("=exit "):
                raise ChildProcessError(f"the guest's command ended without {event}: {said}")
            said.append(as_event(line))
        return said

    def finish(self, patience: float = 60) -> tuple[list[dict], int]:
        """Remaining output of the running command, and its exit status."""
        lines, status = self._until("=exit ", patience)
        return [as_event(line) for line in lines], int(status)

    def ask(self, command: str) -> str:
        """Runs a command with plain text output."""
        self.start(command)
        return "\n".join(self._until("=exit ", 30)[0])

    def dropped(self, settle: float = 2.2) -> int:
        """Packets dropped by its network card and its queues so far, in either direction.

        The driver reads the card's counters every two seconds: this waits for that first.
        """
        time.sleep(settle)
        names = "rx_dropped rx_missed_errors tx_dropped"
        folders = "/sys/class/net/eth*/statistics"
        card = self.ask(f"for card in {folders}; do cd $card; cat {names}; done").split()
        # The second column of a processor's row, in hexadecimal: drops due to a full backlog.
        backlog = [row.split()[1] for row in self.ask("cat /proc/net/softnet_stat").splitlines()]
        return sum(map(int, card)) + sum(int(count, 16) for count in backlog)

    def close(self) -> None:
        """Stops the guest."""
        if self.qemu.poll() is None:
            self.qemu.kill()
        self.qemu.wait()
        self.folder.cleanup()

    def _connect(self, path: Path, patience: float) -> socket.socket:
        deadline = time.monotonic() + patience
        control = socket.socket(socket.AF_UNIX)
        while True:
            try:
                control.connect(str(path))
                return control
            except OSError:
                if time.monotonic() > deadline or self.qemu.poll() is not None:
                    raise
                time.sleep(0.05)

    def _until(self, mark: str, patience: float) -> tuple[list[str], str]:
        lines = []
        deadline = time.monotonic() + patience
        while not (line := self._line(deadline)).startswith(mark):
            lines.append(line)
        return lines, line.removeprefix(mark)

    def _line(self, deadline: float) -> str:
        while b"\n" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.control], [], [], left)[0]:
                raise TimeoutError("the guest says nothing")
            more = self.control.recv(65536)
            if not more:
                raise ConnectionError("the guest is gone")
            self.rest += more
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode(errors="replace").rstrip("\r")


def card(tap: str) -> list[str]:
    """Arguments that attach a network card to this tap."""
    # Under bursts a virtio card has been seen to stop for good; this one keeps working.
    netdev = f"tap,id={tap},ifname={tap},script=no,downscript=no"
    return ["-netdev", netdev, "-device", f"e1000,netdev={tap},romfile="]


def as_event(line: str) -> dict:
    """A JSON line as an event; other text is wrapped."""
    try:
        event = json.loads(line)
    except ValueError:
        return {"event": "said", "text": line}
    return event if isinstance(event, dict) else {"event": "said", "text": line}


def run(*command: str) -> None:
    """Runs a command that must succeed."""
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
