"""``talkspurt measure``: traffic over a real path to a server, as tables of a run."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import secrets
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from talkspurt import _core
from talkspurt._storage import file_access, interrupts, output_folder
from talkspurt._terminal.progress import Bar
from talkspurt._text.escaping import print_json, visible
from talkspurt.errors import BadInputError, Faults
from talkspurt.real_time import serving
from talkspurt.real_time.notes import ends, notes
from talkspurt.results import manifest as manifests
from talkspurt.results.audio import Audio
from talkspurt.results.manifest import Measured
from talkspurt.results.result import Result
from talkspurt.scenarios.resolved import values

if TYPE_CHECKING:
    import polars as pl

    from talkspurt._commands.options import MeasureOptions

NOTE = "# This describes the traffic of a measurement. It cannot be run: the network is not known."
"""How the scenario of a measurement begins."""
PACKET_B = {"cbr": 160, "talkspurts": 160, "bulk": 1200}
"""Payload per packet unless told otherwise: 20 ms of G.711, or most of an Ethernet frame."""


def _way_of(options: MeasureOptions, way: str) -> tuple[str, int, int, str] | None:
    """What a direction sends, as Rust takes it; None for nothing."""
    if options.down if way == "up" else options.up:
        return None
    packet = options.packet if options.packet is not None else PACKET_B[options.traffic]
    return options.traffic, _core.rate_bps(options.rate), packet, options.codec


def _flows(options: MeasureOptions) -> list[tuple[str, str, Any, Any]]:
    """Name, transport, and both directions of each flow."""
    names: list[str] = []
    transports = options.transport or ["udp"]
    for transport in transports:
        name = transport
        while name in names:
            name = f"{transport}-{sum(n.startswith(transport) for n in names) + 1}"
        names.append(name)
    up, down = _way_of(options, "up"), _way_of(options, "down")
    both = zip(names, transports, strict=True)
    return [(name, transport, up, down) for name, transport in both]


def _check(options: MeasureOptions, faults: Faults) -> None:
    """Find what is wrong with each option."""
    for transport in options.transport or ["udp"]:
        with faults.gathered():
            _core.check_transport(transport, sends=not options.down)
    try:
        if _core.rate_bps(options.rate) == 0:
            faults.add(f"--rate {options.rate}: expected more than 0")
    except ValueError as error:
        faults.add(f"--rate: {error}")
    packet = options.packet
    faults.add(
        f"--packet {packet}: expected 8 to 9000 bytes", unless=packet is None or 8 <= packet <= 9000
    )
    check_mtu_and_seed(options.mtu, options.seed, faults)


def check_mtu_and_seed(mtu: int, seed: int | None, faults: Faults) -> None:
    """Find what is wrong with these options of measurements and calls."""
    faults.add(f"--mtu {mtu}: expected 576 to 9000 bytes", unless=576 <= mtu <= 9000)
    seed_fits = seed is None or 0 <= seed < 2**63
    faults.add(f"--seed {seed}: expected 0 to 9223372036854775807", unless=seed_fits)


def target(host: str, port_of: int = serving.PORT) -> tuple[str, int]:
    """Name and port of HOST, HOST:PORT, ADDRESS or [ADDRESS]:PORT.

    Raises:
        BadInputError: it is none of these.
    """
    # With two colons or more, an address of IPv6.
    found = re.fullmatch(r"\[([^\]]+)\](?::(\d+))?|([^:]+)(?::(\d+))?|([^:]*:[^:]*:.*)", host)
    if found is None:
        raise BadInputError(visible(f"{host}: expected HOST, HOST:PORT or [ADDRESS]:PORT"))
    name = found[1] or found[3] or found[5]
    port = int(found[2] or found[4] or port_of)
    if not name or not 1 <= port <= 65535:
        raise BadInputError(visible(f"{host}: expected HOST, HOST:PORT or [ADDRESS]:PORT"))
    serving.need_interface(host, name)
    return name, port


def run(host: str, options: MeasureOptions, secret_file: Path | None) -> None:
    """Measure, print, and write the folders."""
    serving.supported()
    faults = Faults()
    _check(options, faults)
    if not faults.found:
        with faults.gathered():
            _core.check_flows(_flows(options), options.mtu)
    with faults.gathered():
        _core.check_length("--for", options.duration)
    with faults.gathered():
        name, port = target(host)
    with faults.gathered():
        key = serving.secret(secret_file)
    faults.check()
    try:
        session = _core.Session(name, port, key)
    except _core.RunError as error:
        raise BadInputError(visible(str(error))) from None
    flows = _flows(options)
    out, as_json = options.out, options.json
    tests = [flows] if options.together else [[flow] for flow in flows]
    base = out or Path("runs") / f"measure-{file_access.plain_name(name)}"
    documents = []
    # What was measured so far is a result, too: a stop comes when it is written.
    with interrupts.undisturbed():
        for test in tests:
            folder = base if len(tests) == 1 else base / test[0][0]
            half = Half(None if out is None and as_json else folder, options.overwrite)
            result, broken = one(session, test, options, host, half)
            if half.folder is not None:
                result.save(folder, report=options.report, overwrite=options.overwrite)
            if as_json:
                documents.append(document(result))
            elif not options.quiet:
                say(result, folder, report=options.report)
            if interrupts.came() or broken is not None:
                break
        if as_json:
            print_json(documents[0] if len(tests) == 1 else documents)
        if broken is not None:
            kept = "" if as_json and out is None else f"; what was measured is in {folder}/"
            raise BadInputError(visible(f"{broken}{kept}"))


@dataclasses.dataclass(frozen=True)
class Half:
    """Where to keep what this end knows while the other end's notes come; None for nowhere."""

    folder: Path | None
    overwrite: bool

    def keep(self, result: Result) -> None:
        """Write it; what prevents that, prevents the whole result, too, which tells it."""
        if self.folder is not None:
            with contextlib.suppress(OSError):
                result.save(self.folder, report=False, overwrite=self.overwrite)


def one(
    session: _core.Session,
    flows: Sequence[tuple[str, str, Any, Any]],
    options: MeasureOptions,
    host: str,
    kept: Half,
) -> tuple[Result, str | None]:
    """Measure these flows at the same time.

    Also returns why less was measured than wanted, if it was not a stop.
    """
    seed = options.seed if options.seed is not None else secrets.randbits(62)
    names = [name for name, *_ in flows]
    began = time.monotonic()

    def result_of(outcome: _core.Outcome, facts: str, scenario: str) -> Result:
        measured: Any = {"server": session.server, **json.loads(facts)}
        title = f"{' and '.join(names)} to {host}"
        wall_s = time.monotonic() - began
        return made("measurement", title, flows, outcome, scenario, measured, wall_s)

    try:
        measuring = session.measure(list(flows), options.duration, options.mtu, seed)
        with contextlib.nullcontext() if options.quiet else Bar(", ".join(names)) as bar:
            while not measuring.wait(0.05):
                if bar is not None:
                    bar.on_fraction(measuring.progress())
                if interrupts.came():
                    measuring.cancel()
                if (half := measuring.half()) is not None:
                    kept.keep(result_of(*half[:3]))
        outcome, facts, scenario, broken = measuring.result()
    except (_core.RunError, ValueError) as error:
        raise BadInputError(visible(str(error))) from None
    return result_of(outcome, facts, scenario), broken


def made(
    name: str,
    title: str,
    flows: Sequence[tuple[str, str, Any, Any]],
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
        scenario="\n".join([NOTE, *_comments(flows), scenario]),
        topology=_topology(flows, ends(measured)),
        manifest={**manifest, "measured": measured},
        _read_table=partial(_table, outcome, known=known, complete=measured["complete"]),
        _read_audio=read_audio,
    )


def _comments(flows: Sequence[tuple[str, str, Any, Any]]) -> list[str]:
    """What the scenario does not tell, as comments in it."""
    of_kernel = [name for name, transport, *_ in flows if transport.split("-")[0] == "tcp"]
    return [
        f"# {name} was sent over the kernel's TCP, whose parameters are not known: those here are "
        "the simulator's."
        for name in of_kernel
    ]


BETWEEN_CLOCKS = {
    "series": ("delay_mean_s", "delay_max_s"),
    "frames": ("delivered_s", "playout_s"),
    "video_frames": ("complete_s",),
}
"""Columns that relate the times of both ends, by table."""


def _table(
    outcome: _core.Outcome, name: str, *, known: bool, complete: bool
) -> pl.DataFrame | None:
    """A table, with null for what is not known.

    Times of the other end are not ``known`` without the clocks' offset; without the server's notes
    the tables are not ``complete``: what arrived there is missing.
    """
    import polars as pl

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
    import polars as pl

    from talkspurt.metrics import dictionary

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


def _topology(flows: Sequence[tuple[str, str, Any, Any]], ends: tuple[str, str]) -> dict[str, Any]:
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
    link: dict[str, Any] = {
        "name": "path", "from": ends[0], "to": ends[1], "mtu": None, "fails": False, "back": {},
        "rate_bps": None, "delay_s": None, "jitter_s": None, "queue": None, "loss": None,
        "bursts": False, "bit_error_rate": None, "changes": False,
    }  # fmt: skip
    return {
        "nodes": [{"name": name, "colour": None} for name in there],
        "links": [link],
        "access_points": [],
        "flows": found,
    }


def say(result: Result, folder: Path, *, report: bool) -> None:
    """Print the table, what to know about it, and where the folder is."""
    from talkspurt._terminal import tables
    from talkspurt._terminal.console import say_line

    tables.print_result(result)
    for note in notes(result.manifest["measured"]):
        say_line(note)
    print(visible(f"Results: {folder}/"))
    if report:
        print(visible(f"Report:  {folder}/{output_folder.REPORT}"))


def document(result: Result) -> dict[str, Any]:
    """The JSON of ``--json``: that of a run, and the facts of the measurement."""
    return {**result.to_json(), "measured": result.manifest["measured"]}
