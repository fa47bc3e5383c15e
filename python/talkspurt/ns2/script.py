"""A scenario as a Tcl script for ns-2.35.

Every line names the scenario line it comes from. Unsupported features are reported by name, all at
once. Settings with no effect on packets, or a known one, are listed in the header.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from talkspurt import __version__
from talkspurt._storage.file_access import size as size_text
from talkspurt.ns2 import network, source, transport
from talkspurt.ns2.network import Wire
from talkspurt.ns2.reading import Findings, Part, SourceMap
from talkspurt.ns2.tcl import Tcl, number, word
from talkspurt.scenarios import units
from talkspurt.scenarios.resolved import Quantity, routed, values
from talkspurt.scenarios.source import Question

BYTES_A_HOP = 190
"""Bytes of three trace lines."""
Set = tuple[str, str, str, str]
"""A flow, the class of one of its agents, a variable and its value in the script."""
END = "talkspurt: the run is complete"
"""Printed when the script completes, independent of ns-2's exit status."""


@dataclass(frozen=True)
class Way:
    """One direction of a flow in a trace: our name, ns-2's numbers."""

    name: str
    number: int
    ends: tuple[int, int]


@dataclass(frozen=True)
class Script:
    """A script and the data needed to read its trace.

    Attributes:
        text: the Tcl.
        notes: differences from our simulation.
        ways: directions of flows with data.
        wires: directions of links.
        window_s: the measure window.
        trace_bytes: estimated length of the trace.
        settings: what is set of agents: flow, class, variable and value.
    """

    text: str
    notes: list[str]
    ways: list[Way]
    wires: list[Wire]
    window_s: tuple[float, float]
    trace_bytes: int
    settings: list[Set]


def write(question: Question, run: int | None = None) -> Script:
    """The script of a scenario, or of one of its replications.

    Raises:
        talkspurt.ScenarioError: with all features unsupported by ns-2.
    """
    findings = Findings(SourceMap(question))
    plan = question.plan
    if plan.axes:
        findings.refuse("axes", "a script is one run", "[]")
    if run is None and plan.replications > 1:
        findings.refuse("replications.count", "a script is one run", "1")
    run = 0 if plan.axes else run or 0
    scenario = Part(values(plan.resolved(run)), "", findings)
    topology = routed(json.loads(plan.topology(run)))
    return _Writer(question, run, findings, scenario, topology).write()


class _Writer:
    def __init__(
        self, question: Question, run: int, findings: Findings, scenario: Part,
        topology: dict[str, Any],
    ) -> None:  # fmt: skip
        self.question, self.run = question, run
        self.findings, self.scenario = findings, scenario
        self.settings: list[Set] = []
        self.flows = {flow["name"]: flow for flow in topology["flows"]}
        self.names = [node["name"] for node in topology["nodes"]]
        self.body = Tcl(findings.source_map)
        self.marks = False
        self.ways: list[Way] = []
        self.rates: list[tuple[str, float]] = []
        self.procedures: list[str] = []

    def write(self) -> Script:
        scenario, tcl = self.scenario, self.body
        scenario.ignore("title", "description", "axes", "replications", "record")
        if scenario.take("nodes"):
            self.findings.note("nodes: addresses and clocks are left out")
        self.duration_said = scenario.take("duration")
        self.duration = units.seconds(self.duration_said)
        self.seed = scenario.take("seed")
        measure = scenario.part("measure")
        begin, end = measure.take("from"), measure.take("to")
        window = units.seconds(begin), units.seconds(end) if end else self.duration
        network.write_nodes(tcl, self.names)
        links = scenario.part("links")
        self.wires = wires = network.write_links(tcl, links, self.names, self.findings)
        self.marks = "setbit_ true" in tcl.text()
        flows = scenario.part("flows")
        network.write_routes(tcl, list(self.flows.values()), self.findings)
        for index, name in enumerate(flows.names()):
            self._flow(flows.part(name), name, index)
        scenario.rest()
        self.findings.raise_if_any()
        if "lossy $n(" in tcl.text():
            self.procedures.append(network.LOSSY)
            self.findings.note("losses on links are random in ns-2; compare several seeds")
        if "\nclock {" in tcl.text():
            self.procedures.append(source.CLOCK)
        estimate = round(BYTES_A_HOP * self._hops(wires))
        tcl.say("")
        tcl.add(f'$ns at {number(self.duration)} "finish"', "duration", self.duration_said)
        tcl.say("$ns run")
        text = self._head(estimate) + tcl.text()
        return Script(text, self.findings.notes, self.ways, wires, window, estimate, self.settings)

    def _flow(self, part: Part, name: str, index: int) -> None:
        tcl, findings = self.body, self.findings
        ends = (part.take("from"), part.take("to"))
        start, stop = part.take("start"), part.take("stop")
        spread, sizing, version = part.take("start_spread"), part.take("sizing"), part.take("ip")
        part.ignore("via", "dscp", "quality", "group", "priority")
        if part.take("paths"):
            part.refuse("paths", "an association has one path in this script")
        speech = self.flows[name]["speech"]
        sources = [source.read(part.part("source"), speech[0])]
        if (reverse := part.peek("reverse")) is not None:
            sources.append(source.read(Part(reverse, part.at("reverse"), findings), speech[1]))
        self._speech(part, sources)
        flow = transport.Flow(part, part.part("transport"), sizing, version, sources, self.marks)
        agents = transport.write(flow)
        part.take("reverse")
        part.ignore("send_queue")
        self._fits(part, name, agents.packet_bytes)
        if agents.caller not in ("UDP", "TFRC") and sources[0].interval_s:
            findings.note(
                f"{part.path}: ns-2 opens the connection with the first message, "
                f"{number(sources[0].first_s)} s later than here"
            )
        stop_s = min(units.seconds(stop) if stop else self.duration, self.duration)
        tcl.say("", f"# {part.path}")
        self._start(part, name, start, spread, sources[0])
        number_ = index + 1
        nodes = [self.names.index(end) for end in ends]
        self._pair(part, name, ("a", "b"), agents, ends, number_)
        if agents.pairs > 1:
            self._pair(part, name, ("c", "d"), agents, ends[::-1], number_)
        if agents.listens:
            tcl.say(f'$ns at 0 "$b({name}) listen"')
        self.settings += [(name, agents.caller, *one[:2]) for one in agents.at_start]
        for variable, value, path, said in agents.at_start:
            tcl.add(f'$ns at $t({name}) "$a({name}) set {variable} {value}"', path, said)
        for side, own in enumerate(sources[: len(agents.unit_bytes)]):
            way = name if side == 0 else f"{name}.reverse"
            letter, unit = "a" if side == 0 else "abc"[agents.pairs], agents.unit_bytes[side]
            if agents.greedy:
                tcl.add(f'$ns at $t({name}) "$a({name}) start"', part.at("source.kind"), own.kind)
                tcl.say(f'$ns at {number(stop_s)} "$a({name}) stop"')
            else:
                source.write(tcl, own, way, f"${letter}({name})", unit, stop_s)
            mine = (nodes[0], nodes[1]) if side == 0 else (nodes[1], nodes[0])
            self.ways.append(Way(way, number_, mine))
            if own.interval_s:
                packets = (stop_s - units.seconds(start)) / own.interval_s * (1 + agents.acks)
                route = self.flows[name]["routes" if side == 0 else "back"][0]
                self.rates.append((name, packets * (len(route) - 1)))
            else:
                self.rates.append((name, -float(unit + 40) / (1 + agents.acks)))
            own.part.rest()

    def _pair(
        self, part: Part, name: str, letters: tuple[str, str], agents: transport.Agents,
        ends: tuple[str, str], number_: int,
    ) -> None:  # fmt: skip
        tcl = self.body
        for letter, agent, end, settings in (
            (letters[0], agents.caller, ends[0], agents.here),
            (letters[1], agents.callee, ends[1], agents.there),
        ):
            tcl.add(f"set {letter}({name}) [new Agent/{agent}]", part.at("transport.kind"))
            for variable, value, path, said in settings:
                self.settings.append((name, agent, variable, value))
                code = f"${letter}({name}) set {variable} {value}"
                tcl.add(code, path, said if path else None, "" if path else said)
            tcl.say(f"${letter}({name}) set fid_ {number_}")
            tcl.say(f"$ns attach-agent $n({end}) ${letter}({name})")
        tcl.say(f"$ns connect ${letters[0]}({name}) ${letters[1]}({name})")

    def _fits(self, part: Part, name: str, packet_bytes: int) -> None:
        """Report packets that exceed a link's MTU: ns-2 has no such limit."""
        flow = self.flows[name]
        for way in (flow["routes"][0], flow["back"][0]):
            for at, onward in itertools.pairwise(way):
                ends = (self.names.index(at), self.names.index(onward))
                wire = next((wire for wire in self.wires if wire.ends == ends), None)
                if wire is not None and packet_bytes > wire.mtu_bytes:
                    link = f"links.{wire.name.removesuffix('.back')}.mtu"
                    self.findings.refuse(
                        link,
                        f"packets of {part.path} are {packet_bytes} B long, and its links take all",
                        f"{packet_bytes}B",
                    )
                    return

    def _speech(self, part: Part, sources: list[source.Source]) -> None:
        rtcp = part.part("rtcp")
        enabled = rtcp.take("enabled")
        rtcp.ignore("bandwidth_fraction", "minimum_interval", "reduced_minimum")
        part.ignore("playout")
        if all(own.kind != "speech" for own in sources):
            return
        if enabled:
            rtcp.refuse("enabled", "its agents send no reports", "false")
        self.findings.note("playout and opinion scores are left out: ns-2 plays nothing")

    def _start(
        self,
        part: Part,
        name: str,
        start: Quantity,
        spread: Quantity | None,
        first: source.Source,
    ) -> None:
        bound = first.interval_s if spread is None else units.seconds(spread)
        opened = number(units.seconds(start))
        if not bound:
            self.body.add(f"set t({name}) {opened}", part.at("start"), start)
            return
        self.findings.note(f"{part.at('start_spread')}: random in ns-2; 0s for none")
        self.body.add(
            f"set t({name}) [expr {{{opened} + [$rng uniform 0 {number(bound)}]}}]",
            part.at("start_spread"), spread, "" if spread else "an interval",
        )  # fmt: skip

    def _hops(self, wires: list[Wire]) -> float:
        """Estimated packet hops: sources at their rates, bulk as links permit."""
        total = sum(hops for _, hops in self.rates if hops >= 0)
        rates = {wire.ends: wire.rate_bps for wire in wires}
        seen: set[tuple[tuple[int, int], ...]] = set()
        for name, size in self.rates:
            if size >= 0:
                continue
            route = [self.names.index(node) for node in self.flows[name]["routes"][0]]
            links = list(itertools.pairwise(route))
            slowest = min(links, key=lambda ends: rates.get(ends, 0))
            # Bulk flows over one bottleneck share it.
            if (slowest,) in seen:
                continue
            seen.add((slowest,))
            total += self.duration * rates.get(slowest, 0) / 8 / -size * len(links)
        return total

    def _head(self, estimate: int) -> str:
        name, tcl = self.question.name, Tcl(self.findings.source_map)
        file = Path(self.question.file).name if self.question.file else name
        for words in (
            self.question.plan.title,
            "",
            f"{file} for ns-2.35, written by talkspurt {__version__}.",
            "",
            f"  ns {name}.tcl [TRACE]      writes its trace, {name}.tr by default: "
            f"{size_text(estimate)} or less",
            "",
            "Each line ends with its source: a line of the scenario, --set, or a default.",
            *(f"* {note}" for note in self.findings.notes),
        ):
            tcl.comment(words)
        tcl.say(
            "",
            f"set trace_file {word(trace_name(name))}",
            "if {$argc > 0} { set trace_file [lindex $argv 0] }",
            "set ns [new Simulator]",
            "set rng [new RNG]",
        )
        # The numbers of ns-2's seed k are k times those of seed 1, modulo 1, and the first of seed
        # 1 is 0.0003: under a small k the first packet is lost if the loss ratio exceeds 0.0003 k.
        spread = hashlib.sha256(str(self.question.plan.seed(self.run)).encode()).digest()
        seed = int.from_bytes(spread[:4], "big") % 2147483646 + 1
        tcl.add(f"$rng seed {seed}", "seed", self.seed, "small seeds give ns-2 similar streams")
        tcl.say(
            "Trace set show_sctphdr_ 1",
            "set trace [open $trace_file w]",
            "$ns trace-all $trace",
            "# Only the routes written below.",
            "RouteLogic instproc configure {} { return 0 }",
            "proc finish {} {",
            "    global ns trace",
            "    $ns flush-trace",
            "    close $trace",
            f"    puts {{{END}}}",
            "    exit 0",
            "}",
            *("\n" + text for text in self.procedures),
        )
        return tcl.text()


def trace_name(name: str) -> str:
    """The trace's file name, in the folder where ns-2 runs.

    Without a folder prefix, Tcl's `open` would execute a name starting with ``|`` as a command and
    expand ``~`` to a home folder. Tcl 8.6 has no characters beyond the basic plane.
    """
    return "./" + "".join(c if ord(c) < 0x10000 else "_" for c in name) + ".tr"
