"""Emulation: a scenario in real time, with programs at some of its nodes.

:class:`Emulation` is a context manager. It turns nodes into network namespaces, starts the network
in a thread of Rust, starts commands in the nodes, and has a :class:`talkspurt.Result` at the end.
``namespaces`` creates the nodes, ``node`` runs in each, ``account`` compares what the system and
the network counted, ``command`` is ``talkspurt emulate``.
"""

from __future__ import annotations

import builtins
import contextlib
import json
import math
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from talkspurt import _core, api
from talkspurt._storage import interrupts
from talkspurt._text.format import offered
from talkspurt.emulating import account, namespaces
from talkspurt.emulating.namespaces import LISTEN_S, STEP_S, Node, User
from talkspurt.errors import BadInputError
from talkspurt.metrics import dictionary
from talkspurt.results.manifest import Manifest
from talkspurt.results.result import Result
from talkspurt.results.run_data import Scratch
from talkspurt.scenarios.resolved import values
from talkspurt.scenarios.source import Question, Sets, Source, read

__all__ = ["Command", "Emulation", "read_emulated"]

GRACE_S = 2.0
"""Time for commands to end after a signal, before they are killed."""
DRAIN_S = 0.02
"""Longer than the network sleeps while it reads what is sent after the end."""
MAX_READINGS = 50
"""Readings of the counters of a device that does not come to rest."""
FLOW_PORT = 5001
"""Of both ends of a flow on raw sockets: that of iperf."""
PRIORITY = 1
"""Of SCHED_FIFO: above all normal processes, below all other real-time ones."""


@dataclass
class Command:
    """A command at a node.

    Attributes:
        node: the node.
        words: the command and its arguments.
        status: its exit status; negative for a signal; None while it executes.
        is_stopped: whether the emulation ended it.
    """

    node: str
    words: tuple[str, ...]
    status: int | None = None
    is_stopped: bool = False
    _number: int = field(default=0, repr=False)
    _of: Emulation | None = field(default=None, repr=False)

    def poll(self) -> int | None:
        """Its exit status, None while it executes."""
        self._emulation()._listen(0.0)
        return self.status

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return its exit status.

        Raises:
            TimeoutError: if it still executes after ``timeout`` seconds.
        """
        until = math.inf if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() >= until:
                raise TimeoutError(f"{self.words[0]} at {self.node} still executes")
            self._emulation()._listen(STEP_S)
        assert self.status is not None
        return self.status

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        self._emulation()._nodes[self.node].signal(number, self._number)

    def _emulation(self) -> Emulation:
        assert self._of is not None
        return self._of


def read_emulated(
    scenario: Source,
    nodes: Sequence[str],
    *,
    set: Sets | None = None,
    seed: int | None = None,
) -> Question:
    """Read a scenario of one run, and check that it has these nodes.

    Raises:
        talkspurt.ScenarioError: if the scenario is invalid, with all errors.
        BadInputError: if it is a study, or has no such nodes.
    """
    namespaces.check_platform()
    question = read(scenario, set=set, seed=seed, hosts=True)
    if api.is_study(question.plan):
        raise BadInputError(
            f"{question.name}: has axes or replications, and an emulation is a single run; "
            "--set replaces the value of a field"
        )
    known = [node["name"] for node in json.loads(_core.nodes(question.plan, 0)) if node["mtu"]]
    wrong = [name for name in dict.fromkeys(nodes) if name not in known]
    if wrong:
        said = ", ".join(map(repr, wrong))
        raise BadInputError(
            f"{question.name}: {said}: no such node; {offered(wrong[0], sorted(known))}"
        )
    return question


class Emulation:
    """A scenario in real time, with programs at some of its nodes.

    >>> with Emulation("bufferbloat.toml", ["laptop", "server"]) as network:  # doctest: +SKIP
    ...     network.start("server", ["iperf3", "-s"])
    ...     print(network.run("laptop", ["iperf3", "-c", "server"]).stdout)
    >>> network.result.flows  # doctest: +SKIP

    It starts with the ``with`` block and lasts until its end, or for the scenario's duration. It
    needs Linux, and root or user namespaces.
    """

    def __init__(
        self,
        scenario: Source | Question,
        nodes: Sequence[str],
        *,
        set: Sets | None = None,
        seed: int | None = None,
        folder: Path | None = None,
    ) -> None:
        """Read the scenario.

        Args:
            scenario: path of a TOML file, TOML text, or a dict.
            nodes: names of the nodes that get a network namespace.
            set: overrides of scenario fields.
            seed: replaces the scenario's seed.
            folder: where tables, captures and packets are written during the emulation; default:
                tables stay in memory, captures and packets are in a temporary folder.

        Raises:
            talkspurt.ScenarioError: if the scenario is invalid, with all errors.
            BadInputError: if it is a study, or has no such nodes.
        """
        self.names = tuple(dict.fromkeys(nodes))
        self.question = (
            scenario
            if isinstance(scenario, Question)
            else read_emulated(scenario, self.names, set=set, seed=seed)
        )
        if not self.names:
            raise BadInputError("emulate: names no node for programs")
        self.commands: list[Command] = []
        self.is_real_time = False
        self._folder: Path | Scratch = folder or Scratch()
        self._tables = "folder" if folder else "memory"
        self._user = User.behind_sudo()
        self._nodes: dict[str, Node] = {}
        self._gone: builtins.set[str] = builtins.set()
        """Nodes whose first process was killed, by somebody else."""
        self._core: _core.Emulation | None = None
        self._began = 0.0
        self._result: Result | None = None

    def __enter__(self) -> Emulation:
        namespaces.check_system()
        try:
            self._set_up()
        except BaseException:
            self._abandon()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.finish()
        finally:
            self._abandon()

    @property
    def result(self) -> Result:
        """The result, after the end.

        Raises:
            RuntimeError: if the emulation has not ended.
        """
        if self._result is None:
            raise RuntimeError("the emulation has not ended")
        return self._result

    @property
    def addresses(self) -> dict[str, list[str]]:
        """The addresses of each node with a namespace."""
        every = json.loads(_core.nodes(self.question.plan, 0))
        found = {it["name"]: [*it["v4"], *it["v6"]] for it in every}
        return {name: found[name] for name in self.names}

    def start(
        self,
        node: str,
        command: Sequence[str],
        *,
        stdin: IO[Any] | int | None = None,
        stdout: IO[Any] | int | None = None,
        stderr: IO[Any] | int | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
    ) -> Command:
        """Start a command at a node; files default to those of this process.

        Raises:
            FileNotFoundError: if there is no such command, and other errors of its start.
            BadInputError: if this is no node with a namespace, or the emulation has ended.
        """
        if node not in self.names:
            raise BadInputError(f"emulate: {node!r}: no such node; {offered(node, self.names)}")
        if node not in self._nodes:
            raise BadInputError(f"emulate: {node}: the emulation does not execute")
        if node in self._gone:
            raise BadInputError(f"emulate: {node}: its processes were killed")
        if isinstance(command, str) or not command:
            raise BadInputError("emulate: a command is a list, such as ['ping', 'server']")
        number = len(self.commands)
        given = (stdin, 0), (stdout, 1), (stderr, 2)
        files = [default if it is None else it for it, default in given]
        numbers = [it if isinstance(it, int) else it.fileno() for it in files]
        found = Command(node, tuple(command), _number=number, _of=self)
        self.commands.append(found)
        where = os.fspath(cwd) if cwd is not None else str(Path.cwd())
        there = os.environ if env is None else env
        self._nodes[node].start(number, command, numbers, self._user, there, where)
        until = time.monotonic() + namespaces.READY_S
        while (answer := self._answers.pop(number, None)) is None:
            self._listen(STEP_S)
            if time.monotonic() > until:
                raise BadInputError(f"emulate: {node} does not start {command[0]}")
        if answer.get("errno"):
            code = int(answer["errno"])
            found.status = 127 if code == 2 else 126
            raise OSError(code, os.strerror(code), command[0])
        return found

    def serve(self, node: str, command: Sequence[str], **files: Any) -> Command:
        """Start a command that others connect to, and wait until it has a socket, for a second."""
        with self.listening([node]):
            return self.start(node, command, **files)

    @contextlib.contextmanager
    def listening(self, nodes: Sequence[str]) -> Iterator[None]:
        """After a block that starts a command at each of these nodes, wait until all have sockets.

        The wait lasts a second at most, because some have none.
        """
        first = len(self.commands)
        wanted = {node: self._sockets(node) + nodes.count(node) for node in nodes}
        yield
        waiting = self.commands[first:]
        until = time.monotonic() + LISTEN_S
        while waiting and time.monotonic() < until and not self.has_ended():
            time.sleep(STEP_S)
            waiting = [
                it
                for it in waiting
                if it.poll() is None and self._sockets(it.node) < wanted[it.node]
            ]

    def _sockets(self, node: str) -> int:
        return self._ask(self._nodes[node], "sockets", "sockets") or 0

    def run(
        self, node: str, command: Sequence[str], *, timeout: float | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Execute a command at a node and return its output and exit status.

        Raises:
            TimeoutError: if it still executes after ``timeout`` seconds; it is killed.
        """
        with (
            Path(os.devnull).open() as nothing,
            tempfile.TemporaryFile("w+") as out,
            tempfile.TemporaryFile("w+") as err,
        ):
            found = self.start(node, command, stdin=nothing, stdout=out, stderr=err)
            try:
                status = found.wait(timeout)
            except TimeoutError:
                found.send_signal(signal.SIGKILL)
                raise
            texts = [(it.seek(0), it.read())[1] for it in (out, err)]
        return subprocess.CompletedProcess(list(command), status, *texts)

    def flow(
        self, question: Question, name: str, ends: tuple[str, str]
    ) -> tuple[_core.FlowEnd, _core.FlowEnd]:
        """Start both ends of a flow over DCCP on raw sockets at two nodes, ``from`` and ``to``.

        The flow is one of another scenario, in which time begins now. Needs root.

        Raises:
            BadInputError: without root.
            RunError: when the result is taken, if the socket could not be opened.
        """
        if os.getuid() != 0:
            raise BadInputError("raw sockets in network namespaces need root; use sudo")
        at = [f"{self.addresses[node][0]}:{FLOW_PORT}" for node in ends]
        opened = []
        for side in (1, 0):
            node = self._nodes[ends[side]]
            with namespaces.privileged(), node.network() as network:
                which, addresses = (name, side), (at[side], at[1 - side])
                opened.append(_core.flow_end(question.plan, 0, which, addresses, network))
        to, sender = opened
        return sender, to

    @property
    def now_s(self) -> float:
        """The scenario's time."""
        assert self._core is not None
        return self._core.progress() * float(values(self.question.plan.resolved(0))["duration"])

    def has_ended(self) -> bool:
        """Whether the network has come to its end, or a node was killed."""
        return self._core is None or bool(self._gone) or self._core_ended(self._core)

    def wait(self, commands: Sequence[Command], timeout: float | None = None) -> bool:
        """Wait until all these commands have ended, or the network has, for so many seconds.

        Returns whether they have.
        """
        until = math.inf if timeout is None else time.monotonic() + timeout
        while any(it.status is None for it in commands) and not self.has_ended():
            self._listen(STEP_S)
            if time.monotonic() >= until:
                return False
        return True

    def finish(self) -> None:
        """End the network, then the commands; afterwards there is a result.

        It cannot be made again: Ctrl-C, SIGTERM and SIGHUP are raised when it is there.
        """
        if self._core is not None:
            with interrupts.undisturbed():
                self._finish(self._core)

    def _finish(self, core: _core.Emulation) -> None:
        core.end()
        while not self._core_ended(core):
            core.wait(STEP_S)
        self.stop()
        counted = self._counted()
        # Its figures and files are no real-time work.
        self._schedule(os.SCHED_OTHER, 0)
        core.close()
        self._core = None
        outcome, said, packets = core.result()
        wall_s = time.monotonic() - self._began
        found = Result.of_outcome(self.question, 0, outcome, wall_s=wall_s, written=self._folder)
        real_time = account.joined(json.loads(said), counted, self._gone)
        window = found.resolved["measure"]
        real_time["window_s"] = [float(window["from"]), found.duration_s]
        real_time["priority"] = "real-time" if self.is_real_time else "normal"
        real_time["commands"] = [
            {
                # Words need not be UTF-8, as the names of files.
                "node": it.node,
                "command": [os.fsencode(at).decode(errors="replace") for at in it.words],
                "status": it.status, "stopped": it.is_stopped,
            }
            for it in self.commands
        ]  # fmt: skip
        topology = {**found.topology}
        topology["flows"] = [*topology["flows"], *self._real_flows(found)]
        manifest: Manifest = {**found.manifest, "digest": None, "real_time": real_time}
        tables = {}
        if packets is not None:
            import polars as pl

            begins, from_s, to_s, table = packets
            manifest["excerpt"] = {"begins": begins, "from_s": from_s, "to_s": to_s}
            tables["excerpt"] = pl.DataFrame(table)
        self._result = replace(found, manifest=manifest, topology=topology, _tables=tables)

    @staticmethod
    def _core_ended(core: _core.Emulation) -> bool:
        return core.ended() or core.wait(0.0)

    def stop(self) -> None:
        """End all processes: by SIGTERM, and the commands after two seconds by SIGKILL."""
        left = [it for it in self.commands if it.status is None]
        for it in left:
            it.is_stopped = True
        for number in (signal.SIGTERM, signal.SIGKILL):
            for node in self._nodes.values():
                node.signal(number)
            until = time.monotonic() + GRACE_S
            while any(it.status is None for it in left) and time.monotonic() < until:
                self._listen(STEP_S)
            if all(it.status is not None for it in left):
                break

    def _set_up(self) -> None:
        every = json.loads(_core.nodes(self.question.plan, 0))
        lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback"]
        lines += [f"{at} {it['name']}" for it in every for at in (*it["v4"], *it["v6"])]
        hosts = "\n".join([*lines, ""])
        mine = {it["name"]: it for it in every}
        for name in self.names:
            wanted = {
                "name": name, "hosts": hosts, "queue": namespaces.QUEUE_PACKETS,
                "mtu": min(mine[name]["mtu"], MAX_MTU), "v4": mine[name]["v4"],
                "v6": mine[name]["v6"],
            }  # fmt: skip
            self._nodes[name] = Node(name, wanted)
        meanings = None
        if self._tables == "folder":
            meanings = _core.Meanings(dictionary.json_columns())
        devices = [(name, node.device) for name, node in self._nodes.items()]
        self._answers: dict[int, dict[str, Any]] = {}
        try:
            self._core = _core.Emulation(
                self.question.plan, 0, devices, os.fspath(self._folder), self._tables, meanings
            )
        except ValueError as error:
            raise BadInputError(f"{self.question.name}: {error}") from None
        self._began = time.monotonic()
        while self._core.thread() == 0 and not self._core.wait(0.001):
            pass
        self.is_real_time = self._schedule(os.SCHED_FIFO, PRIORITY)

    def _schedule(self, policy: int, priority: int) -> bool:
        """Set the priority of the network's thread.

        False without the privilege, in a container without real-time processes, and without the
        thread, which failed before it began.
        """
        thread = self._core.thread() if self._core is not None else 0
        if thread == 0:
            return False
        with namespaces.privileged(), contextlib.suppress(OSError):
            os.sched_setscheduler(thread, policy, os.sched_param(priority))
            return True
        return False

    def _listen(self, seconds: float) -> None:
        """Handle what nodes report; waits so long at most."""
        nodes = [it for it in self._nodes.values() if it.name not in self._gone]
        select.select(nodes, [], [], seconds)
        for node in nodes:
            self._heard(node, node.messages())

    def _heard(self, node: Node, messages: Sequence[Mapping[str, Any]]) -> None:
        for it in messages:
            if "ended" in it:
                self.commands[it["ended"]].status = it["status"]
            elif "started" in it or "failed" in it:
                self._answers[it.get("started", it.get("failed"))] = dict(it)
            elif "gone" in it:
                for command in self.commands:
                    if command.node == node.name and command.status is None:
                        command.status = -signal.SIGKILL
                self._gone.add(node.name)

    def _ask(self, node: Node, what: str, key: str) -> Any:
        found, others = node.ask(what, key)
        self._heard(node, [it for it in others if "gone" not in it])
        return found

    def _counted(self) -> dict[str, dict[str, int] | None]:
        """What the system counted at each device.

        The network may still read what waited at a device when that went down, and the device
        counts what is read.
        """
        counted = {name: self._ask(it, "down", "counters") for name, it in self._nodes.items()}
        for _ in range(MAX_READINGS):
            time.sleep(DRAIN_S)
            again = {
                name: self._ask(self._nodes[name], "counters", "counters")
                for name, found in counted.items()
                if found is not None
            }
            if again.items() <= counted.items():
                break
            counted |= again
        return counted

    def _abandon(self) -> None:
        """End whatever is left, without a result."""
        if self._core is not None:
            self._core.cancel()
            self._core.wait(GRACE_S)
            self._core = None
        for node in self._nodes.values():
            node.stopped()
        self._nodes.clear()

    def _real_flows(self, found: Result) -> Iterator[dict[str, Any]]:
        """Flows of the commands' packets, for drawing."""
        simulated = {flow["name"] for flow in found.topology["flows"]}
        for row in found.flows.iter_rows(named=True):
            name = row["name"].removesuffix(".reverse")
            if row["name"] != name or name in simulated:
                continue
            there, back = (
                _core.way(self.question.plan, 0, a, b)
                for a, b in ((row["from"], row["to"]), (row["to"], row["from"]))
            )
            yield {
                "name": name, "transport": row["transport"], "from": row["from"], "to": row["to"],
                "routes": [there[0]], "back": [back[0]],
                "links": {"from": [there[1]], "to": [back[1]]}, "speech": [None, None],
            }  # fmt: skip


MAX_MTU = 65_000
"""A TUN device's packets are not longer."""
