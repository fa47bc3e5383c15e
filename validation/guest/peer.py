"""A `Peer` that is the kernel of the guest: every conversation is held with the same boot of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from guest import STORE, Guest, Lane, unprepared
from harness import Peer, Result, converse
from made import line


class GuestPeer(Peer):
    """The kernel under qemu, and the programs in it."""

    needs = ("qemu-system-x86_64", "ip", "tshark")
    versions = (("kernel", "{kernel} ({kernel_package})"), ("qemu", "{qemu}"))
    cards = 1
    setup = "true"
    """A command in the guest before the first conversation."""
    sysctl: str
    """The folder of the protocol's settings under /proc/sys/net."""

    def unready(self) -> str | None:
        """Also whether the guest is up to date."""
        return super().unready() or unprepared()

    @contextlib.contextmanager
    def running(self, folder: Path) -> Iterator[dict]:
        """Boots the guest; yields the versions of kernel and emulator."""
        package = dict(row.split(": ", 1) for row in (STORE / "package").read_text().splitlines())
        with (
            contextlib.closing(Lane(self.cards)) as self.lane,
            contextlib.closing(Guest(self.lane)) as self.guest,
        ):
            self.guest.ask(self.setup)
            self.guest.dropped()
            yield {
                "kernel": self.guest.release,
                "kernel_package": f"{package['Package']} {package['Version']}",
                "kernel_sysctl": self.guest.ask(
                    f"cd /proc/sys/net/{self.sysctl}; grep . *"
                ).splitlines(),
                "qemu": line("qemu-system-x86_64", "--version"),
            }

    def our_words(self, case: Any, number: int) -> list[str]:
        """Arguments of our program, except role and capture."""
        raise NotImplementedError

    def their_words(self, case: Any, number: int) -> str:
        """The command in the guest; empty if it does not run."""
        raise NotImplementedError

    def dissect(self, case: Any, capture: Path, result: Result) -> dict:
        """What tshark says of the capture."""
        raise NotImplementedError

    def converse(self, case: Any, number: int, capture: Path, result: Result) -> None:
        """Holds one conversation, and counts what was dropped between the two."""
        # The counters have been read after the conversation before.
        before = self.lane.dropped() + self.guest.dropped(settle=0)
        ours = [*self.ours, "client" if case.opens == "ours" else "server"]
        ours += [*self.our_words(case, number), "--pcapng", str(capture)]
        theirs = self.their_words(case, number)
        converse(case, self.lane.inside(*ours), theirs, self.guest, result)
        result["dropped_between"] = self.lane.dropped() + self.guest.dropped() - before
        result["tshark"] = self.dissect(case, capture, result)
