"""Nodes as network namespaces, seen from the emulation: privileges, start, commands, end.

A node's processes are in namespaces of their own (network, mounts, processes, host name), created
by util-linux's ``unshare``; :mod:`talkspurt.emulating.node` is the first of them.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from talkspurt._storage.interrupts import undisturbed
from talkspurt.emulating.node import receive, send
from talkspurt.errors import BadInputError

TUN = Path("/dev/net/tun")
QUEUE_PACKETS = 20_000
"""Packets that a device holds until the emulation reads them: the default of 500 is lost in bursts
that are longer than the time for which the emulation may be delayed."""
READY_S = 10.0
"""As long as a node may take to be set up."""
LISTEN_S = 1.0
"""As long as the other commands wait for a serving command's socket."""
STEP_S = 0.02


@dataclass(frozen=True)
class User:
    """Who executes the commands and owns the files."""

    name: str
    uid: int
    gid: int
    groups: list[int]
    home: str

    @classmethod
    def behind_sudo(cls) -> User | None:
        """The user who called sudo, if any."""
        number = os.environ.get("SUDO_UID", "")
        if os.getuid() != 0 or not number.isdigit() or number == "0":
            return None
        import pwd  # not on Windows

        try:
            found = pwd.getpwuid(int(number))
        except KeyError:
            return None
        groups = os.getgrouplist(found.pw_name, found.pw_gid)
        return cls(found.pw_name, found.pw_uid, found.pw_gid, groups, found.pw_dir)

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which programs find this user's files."""
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name}


def act_as(user: User | None) -> None:
    """Write files as this user from now on, and find their settings; root remains available."""
    if user is None or os.geteuid() != 0:
        return
    os.setgroups(user.groups)
    os.setegid(user.gid)
    os.seteuid(user.uid)
    os.environ |= user.environment
    for file in (os.__file__, __file__):
        if not os.access(file, os.R_OK, effective_ids=True):
            raise BadInputError(
                f"emulate: acts as {user.name}, who may not read {Path(file).parent}: install "
                f"Python and talkspurt where {user.name} may read them"
            )


@contextlib.contextmanager
def privileged() -> Iterator[None]:
    """As root again, if this process was started by root."""
    uid, gid = os.geteuid(), os.getegid()
    if os.getuid() != 0 or uid == 0:
        yield
        return
    os.seteuid(0)
    os.setegid(0)
    try:
        yield
    finally:
        os.setegid(gid)
        os.seteuid(uid)


def check_platform() -> None:
    """Refuse all systems but Linux."""
    if sys.platform != "linux":
        raise BadInputError(f"emulate: needs Linux with network namespaces, not {sys.platform}")


def check_system() -> None:
    """Refuse systems that cannot emulate; the message names everything that is missing."""
    check_platform()
    missing = [
        f"the program {name} (Debian's package {package})"
        for name, package in (("unshare", "util-linux"), ("ip", "iproute2"), ("mount", "mount"))
        if shutil.which(name) is None
    ]
    with privileged():
        try:
            os.close(os.open(TUN, os.O_RDWR))
        except OSError as error:
            why = os.strerror(error.errno or 0)
            if error.errno in (errno.ENOENT, errno.ENODEV, errno.ENXIO):
                why = f"{why}; load the module tun"
            elif os.getuid() != 0:
                why = f"{why}; use sudo"
            missing.append(f"TUN devices ({TUN}: {why})")
    if missing:
        raise BadInputError(f"emulate: needs {', and '.join(missing)}")


class Node:
    """A node's namespaces, and the commands in them.

    Attributes:
        device: the descriptor of its TUN device.
    """

    def __init__(self, name: str, wanted: Mapping[str, Any]) -> None:
        self.name = name
        self.device = -1
        self._user: User | None = None
        self._link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = _unshared(theirs.fileno())
        send(self._link, dict(wanted))
        try:
            ready, files = self._answer(READY_S)
        except (EOFError, TimeoutError):
            raise _no_node(self.stopped()) from None
        if "error" in ready:
            raise _no_node([ready["error"]], self.stopped())
        (self.device,) = files

    def _answer(self, seconds: float) -> tuple[dict[str, Any], list[int]]:
        if not select.select([self._link], [], [], seconds)[0]:
            raise TimeoutError
        return receive(self._link)

    def start(
        self,
        number: int,
        command: Sequence[str],
        files: Sequence[int],
        user: User | None,
        env: Mapping[str, str],
        cwd: str,
    ) -> None:
        """Ask for the start of a command; ``messages`` has the answer."""
        who = None if user is None else {"uid": user.uid, "gid": user.gid, "groups": user.groups}
        request = {"command": list(command), "cwd": cwd, "env": dict(env), "user": who}
        # Arguments and variables may be longer than a message of a socket.
        with os.fdopen(os.memfd_create("request"), "wb") as words:
            words.write(json.dumps(request).encode())
            words.flush()
            send(self._link, {"do": "start", "number": number}, [*files, words.fileno()])

    def messages(self) -> list[dict[str, Any]]:
        """What it reported since the last call; ``{"gone": True}`` if it has ended."""
        found: list[dict[str, Any]] = []
        while self._link.fileno() >= 0:
            try:
                found.append(self._answer(0.0)[0])
            except TimeoutError:
                break
            except EOFError:
                found.append({"gone": True})
                break
        return found

    def fileno(self) -> int:
        """Of the socket, for select."""
        return self._link.fileno()

    @contextlib.contextmanager
    def network(self) -> Iterator[int]:
        """A descriptor of its network namespace."""
        number = os.open(f"/proc/{self._process.pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield number
        finally:
            os.close(number)

    def signal(self, number: int, command: int | None = None) -> None:
        """Send a signal to a command, or to all processes of the node."""
        if command is None:
            send(self._link, {"do": "signal", "signal": number})
        else:
            send(self._link, {"do": "signal one", "signal": number, "number": command})

    def ask(self, what: str, key: str) -> tuple[Any, list[dict[str, Any]]]:
        """Ask for a value; returns it, None if the node is gone, and other messages before it."""
        send(self._link, {"do": what})
        others: list[dict[str, Any]] = []
        until = time.monotonic() + READY_S
        while True:
            try:
                message, _ = self._answer(max(0.0, until - time.monotonic()))
            except (EOFError, TimeoutError):
                return None, others
            if key in message:
                return message[key], others
            others.append(message)

    def stopped(self) -> list[str]:
        """End it with all its processes; returns what it said."""
        self._link.close()
        if self.device >= 0:
            os.close(self.device)
            self.device = -1
        with undisturbed():
            try:
                _, said = self._process.communicate(timeout=READY_S)
            except subprocess.TimeoutExpired:
                with privileged():
                    self._process.kill()
                _, said = self._process.communicate()
        return [line for line in said.splitlines() if line]


def _unshared(link: int) -> subprocess.Popen[str]:
    spaces = ["--net", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.getuid() != 0:
        spaces = ["--user", "--map-root-user", *spaces]
    script = Path(__file__).with_name("node.py")
    words = ["unshare", *spaces, sys.executable, "-I", "-S", str(script), str(link)]
    with privileged():
        return subprocess.Popen(
            words,
            pass_fds=[link],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )


def _no_node(*said: list[str]) -> BadInputError:
    words = "; ".join(line for lines in said for line in lines) or "it does not answer"
    hint = "" if os.getuid() == 0 else "; use sudo, or a system that permits user namespaces"
    return BadInputError(f"emulate: a network namespace could not be set up: {words}{hint}")
