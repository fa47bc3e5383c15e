"""Traffic over a real path to a server, as tables of a run."""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from talkspurt import _core
from talkspurt._lazy import pl
from talkspurt._storage import interrupts
from talkspurt._terminal.progress import Bar
from talkspurt._text.escaping import visible
from talkspurt._text.format import offered
from talkspurt.errors import BadInputError, EndedEarlyError, Faults
from talkspurt.metrics import dictionary
from talkspurt.real_time import serving
from talkspurt.real_time.notes import ends, notes
from talkspurt.results import manifest as manifests
from talkspurt.results.audio import Audio
from talkspurt.results.manifest import Measured
from talkspurt.results.result import Result
from talkspurt.scenarios.resolved import unknown_network, values

NOTE = "# This describes the traffic of a measurement. It cannot be run: the network is not known."
PACKET_B = {"cbr": 160, "talkspurts": 160, "bulk": 1200, "video": 1100}
"""Payload per packet unless told otherwise: 20 ms of G.711, or most of an Ethernet frame."""


DIRECTIONS = ("both", "up", "down")

Flow = tuple[str, str, Any, Any]
"""Name, transport, and what is sent up and down."""


@dataclass(frozen=True)
class Traffic:
    """What is sent over each transport of a measurement.

    Attributes:
        kind: ``cbr``, a constant bit rate; ``talkspurts``, speech with pauses in the codec;
            ``bulk``, as much as the transport permits, not over udp and tfrc-tb; ``video``, of an
            encoder that follows the controller, with repair.
        rate: payload rate of cbr, and the highest of video.
        packet: bytes of payload per packet of cbr (default: 160) and bulk (default: 1200).
        codec: codec of talkspurts, as in scenarios.
        direction: ``up`` is only from here to the server.
        controller: kind of the controller of video, as in scenarios; over udp it needs one.
    """

    kind: Literal["cbr", "talkspurts", "bulk", "video"] = "cbr"
    rate: str = "64kbit/s"
    packet: int | None = None
    codec: str = "pcmu"
    direction: Literal["both", "up", "down"] = "both"
    controller: str | None = None


def check_mtu_and_seed(mtu: int, seed: int | None, faults: Faults) -> None:
    """Find what is wrong with these options of measurements and calls."""
    faults.add(f"--mtu {mtu}: expected 576 to 9000 bytes", unless=576 <= mtu <= 9000)
    seed_fits = seed is None or 0 <= seed < 2**63
    faults.add(f"--seed {seed}: expected 0 to 9223372036854775807", unless=seed_fits)


def target(host: str, port_of: int = serving.PORT) -> tuple[str, int]:
    """Name and port of HOST, HOST:PORT, ADDRESS or [ADDRESS]:PORT."""
    # With two colons or more, an address of IPv6.
    found = re.fullmatch(r"\[([^\]]+)\](?::(\d+))?|([^:]+)(?::(\d+))?|([^:]*:[^:]*:.*)", host)
    name = found and (found[1] or found[3] or found[5])
    port = int(found[2] or found[4] or port_of) if found else 0
    if not name or not 1 <= port <= 65535:
        raise BadInputError(visible(f"{host}: expected HOST, HOST:PORT or [ADDRESS]:PORT"))
    serving.need_interface(host, name)
    return name, port


def measure(
    host: str,
    transport: str | Sequence[str] = "udp",
    traffic: Traffic = Traffic(),
    *,
    duration: str = "10s",
    mtu: int = 1500,
    seed: int | None = None,
    secret_file: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> Result:
    """Measure the path to a machine that runs ``talkspurt serve``. Needs Linux.

    Args:
        host: name or address of the server, with ``:PORT`` unless it is 7862; ``[ADDRESS]:PORT``
            for IPv6.
        transport: one of those of ``talkspurt measure``, such as ``udp``, ``tfrc``, ``dccp-ccid3``
            or ``tcp-cubic``; several are measured at the same time. For one after another, call
            this function for each.
        traffic: what is sent; default: 64 kbit/s in both directions.
        duration: duration of the traffic, from 1s to 1h.
        mtu: longest IP packet on the path, in bytes.
        seed: of the random parts of the traffic; default: another one each time.
        secret_file: file with the shared secret, readable only by its owner; default: the
            environment variable TALKSPURT_SECRET has the secret.
        progress: whether to show progress on standard error.

    Returns:
        A result with the tables of a run. One-way delays have the clocks' drift removed;
        ``manifest["measured"]`` has the bound of their offset and what else was found.

    Raises:
        talkspurt.errors.BadInputError: if an argument is wrong, where messages name the option of
            ``talkspurt measure``, or if the server cannot be reached or refuses.
        talkspurt.errors.EndedEarlyError: if less was measured than wanted, with the result.
        OSError: if the file of the secret cannot be read.
    """
    transports = [transport] if isinstance(transport, str) else transport
    measurement = Measurement(
        host, transports, traffic, duration=duration, mtu=mtu, seed=seed, secret_file=secret_file
    )
    with interrupts.undisturbed():
        (result,) = measurement.results(progress=progress)
    return result


class Measurement:
    """A session with a server, and what is measured in it: :func:`measure` has the arguments.

    Attributes:
        several: whether the transports are measured one after another, not ``together``.
    """

    def __init__(
        self,
        host: str,
        transports: Sequence[str],
        traffic: Traffic,
        *,
        duration: str,
        mtu: int,
        seed: int | None,
        secret_file: str | os.PathLike[str] | None,
        together: bool = True,
    ) -> None:
        """Check the arguments and connect."""
        serving.supported()
        faults = Faults()
        faults.add("no transport is named", unless=transports)
        for transport in transports:
            with faults.gathered():
                _core.check_transport(transport, sends=traffic.direction != "down")
        for what, given, known in (
            ("kind", traffic.kind, PACKET_B),
            ("direction", traffic.direction, DIRECTIONS),
        ):
            words = f"{what} of traffic {given}: {offered(given, known)}"
            faults.add(words, unless=given in known)
        bps = 0
        try:
            bps = _core.rate_bps(traffic.rate)
            faults.add(f"--rate {traffic.rate}: expected more than 0", unless=bps)
        except ValueError as error:
            faults.add(f"--rate: {error}")
        size = PACKET_B.get(traffic.kind, 160) if traffic.packet is None else traffic.packet
        faults.add(f"--packet {size}: expected 8 to 9000 bytes", unless=8 <= size <= 9000)
        check_mtu_and_seed(mtu, seed, faults)
        sent = traffic.kind, bps, size, traffic.codec, traffic.controller
        words = f"--controller {traffic.controller}: only video has one; add --traffic video"
        faults.add(words, unless=traffic.controller is None or traffic.kind == "video")
        up, down = (None if traffic.direction == other else sent for other in ("down", "up"))
        flows: dict[str, Flow] = {}
        for transport in transports:
            name = transport
            while name in flows:
                name = f"{transport}-{sum(n.startswith(transport) for n in flows) + 1}"
            flows[name] = name, transport, up, down
        if not faults.found:
            with faults.gathered():
                _core.check_flows(list(flows.values()), mtu)
        with faults.gathered():
            _core.check_length("--for", duration)
        with faults.gathered():
            self.name, port = target(host)
        with faults.gathered():
            key = serving.secret(secret_file)
        faults.check()
        self._tests = [list(flows.values())] if together else [[it] for it in flows.values()]
        self.several = len(self._tests) > 1
        self._host, self._how, self._seed = host, (duration, mtu), seed
        with serving.refused():
            self._session = _core.Session(self.name, port, key)

    def results(
        self, keep: Callable[[Result], None] = lambda _: None, *, progress: bool = False
    ) -> Iterator[Result]:
        """Measure until a stop or the end; ``keep`` gets what this end knows of each first.

        Raises:
            talkspurt.errors.EndedEarlyError: as :func:`measure`.
        """
        for flows in self._tests:
            yield self._measured(flows, keep, progress)
            if interrupts.came():
                break

    def _measured(
        self, flows: list[Flow], keep: Callable[[Result], None], progress: bool
    ) -> Result:
        seed = self._seed if self._seed is not None else secrets.randbits(62)
        names = [name for name, *_ in flows]
        began = time.monotonic()

        def result_of(outcome: _core.Outcome, facts: str, scenario: str) -> Result:
            measured: Any = {"server": self._session.server, **json.loads(facts)}
            title = f"{' and '.join(names)} to {self._host}"
            wall_s = time.monotonic() - began
            return made("measurement", title, flows, outcome, scenario, measured, wall_s)

        with serving.refused():
            measuring = self._session.measure(flows, *self._how, seed)
            with Bar(", ".join(names), shown=progress) as bar:
                while not measuring.wait(0.05):
                    bar.on_fraction(measuring.progress())
                    if interrupts.came():
                        measuring.cancel()
                    if (half := measuring.half()) is not None:
                        keep(result_of(*half[:3]))
            outcome, facts, scenario, broken = measuring.result()
        result = result_of(outcome, facts, scenario)
        if broken is not None:
            raise EndedEarlyError(visible(broken), result)
        return result


def made(
    name: str,
    title: str,
    flows: Sequence[Flow],
    outcome: _core.Outcome,
    scenario: str,
    measured: Measured,
    wall_s: float,
) -> Result:
    """The result of a measurement or a call that has ended."""
    seed = int(values(scenario)["seed"])
    manifest = manifests.made(
        name,
        seed=seed,
        digest=None,
        machine_dependent=True,
        duration_s=outcome.duration_s,
        hops=outcome.hops,
        events=outcome.events,
        cpu_s=outcome.cpu_s,
        wall_s=wall_s,
    )
    known = measured["clock_offset_s"] is not None
    of_kernel = (
        f"# {name} was sent over the kernel's TCP, whose parameters are not known: those here are "
        "the simulator's."
        for name, transport, *_ in flows
        if transport.split("-")[0] == "tcp"
    )

    def read_audio(flow: str) -> Audio | None:
        found = outcome.audio(flow)
        return None if found is None else Audio(flow, *found)

    return Result(
        name=name,
        title=title,
        description="\n".join(
            ["Measured on a real path.", "", *(f"* {n}" for n in notes(measured))]
        ),
        settings={},
        replicate=0,
        seed=seed,
        scenario="\n".join([NOTE, *of_kernel, scenario]),
        topology=_topology(flows, ends(measured)),
        manifest={**manifest, "measured": measured},
        _read_table=partial(_table, outcome, known=known, complete=measured["complete"]),
        _read_audio=read_audio,
    )


BETWEEN_CLOCKS = {
    "series": ("delay_mean_s", "delay_max_s"),
    "frames": ("delivered_s", "playout_s"),
    "video_frames": ("complete_s", "decodable_s", "shown_s"),
}
"""Columns that relate the times of both ends, by table."""


def _table(
    outcome: _core.Outcome, name: str, *, known: bool, complete: bool
) -> pl.DataFrame | None:
    """A table, with null for what is not known.

    Times of the other end are not ``known`` without the clocks' offset; without the server's notes
    the tables are not ``complete``: what arrived there is missing.
    """
    if name in ("packets", "scores"):
        return None
    table = pl.DataFrame(outcome.table(name))
    if not known:
        present = [column for column in BETWEEN_CLOCKS.get(name, ()) if column in table.columns]
        table = table.with_columns(pl.lit(None, pl.Float64).alias(column) for column in present)
    if name in ("flows", "series", "frames", "video_frames") and not complete:
        flows = pl.DataFrame(outcome.table("flows"))
        table = _known_to_one(table, flows, name)
    return table


def _known_to_one(table: pl.DataFrame, flows: pl.DataFrame, name: str) -> pl.DataFrame:
    """The table with null for what the end that connected first does not know alone."""
    key = "name" if name == "flows" else "flow"
    ends = dictionary.known(name)
    arrivals = [column for column, end in ends.items() if end != "sender"]
    # Of the last packets that were sent, and which frames there were, arrivals say nothing.
    departures = [column for column, end in ends.items() if end != "receiver"]
    ours = pl.col("from").is_in(["client", "caller"])
    there, back = flows.filter(ours)["name"], flows.filter(~ours)
    # Frames of speech count as delivered only if it is known that they were generated.
    speech = back.filter(pl.col("late_packets").is_not_null())["name"]
    # Those that the sender's end rejected count for its direction if the other way has none.
    one_way = back.filter(~pl.col("name").str.ends_with(".reverse"))["name"]
    unknown = [
        (there, arrivals),
        (back["name"], departures),
        (speech, ("goodput_bps", "jitter_s")),
        (one_way, ("rejected_packets", "damaged_packets")),
    ]
    for names, columns in unknown:
        known = pl.when(pl.col(key).is_in(names.implode()).not_())
        present = [each for each in columns if each in table.columns]
        table = table.with_columns(known.then(pl.col(each)).alias(each) for each in present)
    return table


def _topology(flows: Sequence[Flow], ends: tuple[str, str]) -> dict[str, Any]:
    """The two ends and the path between them, of which nothing is known."""
    there, back = list(ends), list(reversed(ends))
    found = []
    for name, transport, up, _ in flows:
        routes = (there, back) if up else (back, there)
        links = ("path", "path.back") if up else ("path.back", "path")
        found.append(
            {"name": name, "transport": transport, "from": routes[0][0], "to": routes[0][1],
             "routes": [routes[0]], "back": [routes[1]],
             "links": {"from": [[links[0]]], "to": [[links[1]]]}, "speech": [None, None]}
        )  # fmt: skip
    return unknown_network(there, {"path": ends}, found)
