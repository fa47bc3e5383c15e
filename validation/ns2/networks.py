#!/usr/bin/env python3
"""Random networks here and in ns-2.35: whose throughput differs, and by which rule.

    .venv/bin/python validation/ns2/networks.py [--again | --page]

Needs Debian's `ns2`. The generator, the rules below and their limits were fixed before the first
run.

* A network is one link with several flows. A *start* of it draws random losses and the times at
  which its flows begin again, equally in both simulators.
* ns-2's flow is dead in a start if ns-2 sends none of its data in the last quarter of the run, or
  its handshake fails (`Reader.faults`). Such a start is left out for all flows of the network,
  since the others get its share, and the next one takes its place; a network without STARTS sound
  ones is left out.
* A flow differs if the logarithm of our throughput over ns-2's in STARTS starts is significantly
  beyond MARGIN (Welch's t test of both one-sided hypotheses, Holm's correction over all flows,
  LEVEL).
* It counts as an outlier if as many further starts, tested alone and corrected over all that
  differ, confirm it.
* A rule explains an outlier if our throughput without it, in all these starts, differs by at most
  a fifth of the logarithm.

Results are stored after each network, ns-2's under a hash of its script, so that an interrupted run
continues. `--again` keeps ns-2's and runs ours again; `--page` only fills docs/validation/ns2.md.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from statistics import mean, median, stdev
from typing import Any

from cases import BULK, TFRC, UDP, cbr, dccp, flow, tcp

sys.path.append(str(Path(__file__).resolve().parents[1]))
from made import ROOT, line
from tables import fill, table

PAGE = ROOT / "docs" / "validation" / "ns2.md"
RESULTS = Path(__file__).with_name("networks.json")

SEED = 20261128
NETWORKS = 80
STARTS = 8
MAX_STARTS = 20
"""Starts tried for STARTS sound ones, and as many again for those that confirm."""
SECONDS, FROM = 60, 10
"""Duration of a run, and when the measurement begins."""
LEVEL = 0.05
MARGIN = math.log(1.1)
EXPLAINED = 0.8

TCPS = ("tahoe", "reno", "newreno", "sack")
RULES: dict[str, dict[str, Any]] = {
    "tcp": {
        "windows of the RFCs (`window_rule`)": {"window_rule": "ns2"},
        "F-RTO (`f_rto`)": {"f_rto": False},
        "RFC 6675 and PRR (`recovery`)": {"recovery": "newreno"},
    },
    "sctp": {"at most four packets at once (`max_burst`)": {"max_burst": 1000}},
    "dccp": {},
    "tfrc": {},
    "udp": {},
}
"""By transport, rules that a parameter switches off."""

Values = dict[str, float]


def networks() -> list[dict[str, Any]]:
    """The networks: a link, and the transports and sources of the flows over it."""
    random = Random(SEED)
    made = []
    for _ in range(NETWORKS):
        rate = round(math.exp(random.uniform(math.log(300), math.log(4000))))
        delay = round(math.exp(random.uniform(math.log(5), math.log(250))), 1)
        packets = round(math.exp(random.uniform(math.log(5), math.log(100))))
        loss = random.choice([0.0, 0.0, *(math.exp(random.uniform(-6.2, -2.303)) for _ in "abc")])
        names = random.choices(
            [*TCPS, "sctp", "sctp messages", "tfrc", "ccid2", "ccid3", "udp"],
            [2, 2, 2, 2, 2, 1, 2, 2, 2, 1],
            k=random.randint(3, 8),
        )
        made.append({
            "rate": f"{rate}kbit/s", "delay": f"{delay}ms", "packets": packets,
            "loss": round(loss, 4), "flows": names, "kbps": rate,
        })  # fmt: skip
    return made


def transport(name: str) -> dict[str, Any]:
    """The transport of a flow of this name."""
    known = {
        "sctp": {"kind": "sctp"},
        "sctp messages": {"kind": "sctp", "ack_clocked": True},
        "tfrc": TFRC,
        "ccid2": dccp(2),
        "ccid3": dccp(3),
        "udp": UDP,
    }
    return known.get(name) or tcp(name)


def scenario(network: dict[str, Any], start: int, **without: Any) -> dict[str, Any]:
    """A start of a network; `without` replaces parameters of the flows' transports, by kind."""
    random = Random(f"{network['rate']} {network['delay']} {start}")
    flows = {}
    for index, name in enumerate(network["flows"]):
        source: dict[str, Any] = BULK
        if name == "udp":
            source = cbr(f"{round(network['kbps'] / 2 / len(network['flows']))}kbit/s", "1000B")
        elif name == "sctp messages":
            # More than fits: ns-2's association is silent for ever once nothing waits.
            source = cbr(network["rate"], "1000B")
        made = transport(name)
        made = {**made, **without.get(made["kind"], {})}
        if name == "sack":
            # It has no windows of ns-2.
            made.pop("window_rule", None)
        begins = f"{random.uniform(0, 2):.4f}s"
        flows[f"f{index}"] = flow(made, source, **{"from": "a", "to": "b"}, start=begins)
    link = {
        "from": "a", "to": "b", "rate": network["rate"], "delay": network["delay"],
        "queue": {"kind": "droptail", "packets": network["packets"], "ns2": True},
    }  # fmt: skip
    if network["loss"]:
        link["loss"] = network["loss"]
    return {
        "title": "A random network",
        "duration": f"{SECONDS}s",
        "measure": {"from": f"{FROM}s"},
        "links": {"l": link},
        "flows": flows,
    }


def theirs(network: dict[str, Any], start: int, cache: dict[str, Any]) -> Values | None:
    """ns-2's throughput of each flow in bit/s; None if one of them is dead."""
    from talkspurt.ns2 import script
    from talkspurt.ns2.trace import Reader
    from talkspurt.scenarios.source import read

    class Timed(Reader):
        """Also when a packet of each flow was last sent."""

        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self.last = dict.fromkeys(self.flows, 0.0)
            self.by_count = {id(count): name for name, count in self.flows.items()}

        def _flow(self, count: Any, last: str, event: str, now: float, *rest: Any) -> None:
            if event == "+":
                self.last[self.by_count[id(count)]] = now
            super()._flow(count, last, event, now, *rest)

    made = script.write(read(scenario(network, start), seed=start))
    key = hashlib.sha256(made.text.encode()).hexdigest()[:16]
    if key not in cache:
        reader = Timed(made.ways, made.wires, made.window_s)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "case.tcl"
            file.write_text(made.text, encoding="utf-8")
            reading, writing = os.pipe()
            command = ["ns", str(file), f"/dev/fd/{writing}"]
            silent: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            process = subprocess.Popen(command, cwd=folder, pass_fds=(writing,), **silent)
            os.close(writing)
            with os.fdopen(reading, encoding="ascii") as lines:
                reader.read(lines)
            ended = process.wait() == 0
        sound = ended and not reader.faults() and min(reader.last.values()) > 0.75 * SECONDS
        rows = {name: count.row(SECONDS - FROM) for name, count in reader.flows.items()}
        rates = {name: round(row["throughput_bps"] or 0.0) for name, row in rows.items()}
        cache[key] = rates if sound else None
    return cache[key]


def ours(network: dict[str, Any], start: int, **without: Any) -> Values:
    """Our throughput of each flow in bit/s."""
    import talkspurt

    found = talkspurt.run(scenario(network, start, **without), seed=start).flows
    return {row["name"]: round(row["throughput_bps"] or 0.0) for row in found.to_dicts()}


def sound_starts(network: dict[str, Any], cache: dict[str, Any], first: int) -> list[int]:
    """STARTS starts from this one on in which ns-2 has no dead flow; fewer if there are not."""
    found: list[int] = []
    for start in range(first, first + MAX_STARTS):
        if len(found) < STARTS and theirs(network, start, cache) is not None:
            found.append(start)
    return found


def logarithms(rates: list[float]) -> list[float]:
    """Of throughputs; nothing is as much as one byte."""
    return [math.log(max(rate, 8 / (SECONDS - FROM))) for rate in rates]


def chance(here: list[float], there: list[float]) -> float:
    """The probability of these throughputs if they differ by no more than MARGIN."""
    from scipy.stats import t

    ours_, ns2 = logarithms(here), logarithms(there)
    parts = [max(stdev(side), 1e-4) ** 2 / len(side) for side in (ours_, ns2)]
    error, excess = math.sqrt(sum(parts)), abs(mean(ours_) - mean(ns2)) - MARGIN
    freedom = sum(parts) ** 2 / sum(part**2 / (STARTS - 1) for part in parts)
    return float(min(1.0, 2 * t.sf(excess / error, freedom)))


def holm(chances: dict[str, float]) -> set[str]:
    """Those that are significant together."""
    found: set[str] = set()
    for rank, name in enumerate(sorted(chances, key=lambda name: chances[name])):
        if chances[name] > LEVEL / (len(chances) - rank):
            break
        found.add(name)
    return found


class Store:
    """Results on disk: ns-2's by script, ours by network and start, with rules switched off."""

    def __init__(self, again: bool) -> None:
        told: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        self.ns2: dict[str, Any] = told.get("ns2", {})
        self.starts: dict[str, Any] = told.get("starts", {})
        self.here: dict[str, Any] = {} if again else told.get("here", {})
        self.said: dict[str, str] = {} if again else told.get("said", {})

    def save(self) -> None:
        """Writes it."""
        if not self.said:
            self.said = {
                "commit": line("git", "rev-parse", "HEAD"),
                "peer": line("dpkg-query", "-W", "-f", "${Package} ${Version}", "ns2"),
            }
        rows = (
            f'"{key}": {json.dumps(vars(self)[key])}' for key in ("said", "starts", "here", "ns2")
        )
        RESULTS.write_text(
            "{" + ",\n".join(rows).replace('}, "', '},\n "') + "}\n", encoding="utf-8"
        )

    def sides(
        self, number: int, network: dict[str, Any], more: bool
    ) -> list[tuple[Values, Values]]:
        """Throughputs here and in ns-2 in each sound start, the first ones or `more`."""
        first = 1 + more * MAX_STARTS
        key = f"{number}/{first}"
        if key not in self.starts:
            self.starts[key] = sound_starts(network, self.ns2, first)
        runs = []
        for start in self.starts[key]:
            there = theirs(network, start, self.ns2)
            assert there is not None, "the script has changed"
            runs.append((self.ours(number, network, start), there))
        return runs

    def ours(self, number: int, network: dict[str, Any], start: int, rule: str = "") -> Values:
        """Our throughputs, without a rule."""
        key = f"{number}/{start}/{rule}".rstrip("/")
        if key not in self.here:
            kind, _, name = rule.partition(": ")
            without = {kind: RULES[kind][name]} if rule else {}
            self.here[key] = ours(network, start, **without)
        return self.here[key]


def columns(runs: list[tuple[Values, Values]], name: str) -> tuple[list[float], list[float]]:
    """The throughputs of a flow."""
    return [here[name] for here, _ in runs], [there[name] for _, there in runs]


def apart(here: list[float], there: list[float]) -> float:
    """The logarithm of the ratio, its mean."""
    return mean(logarithms(here)) - mean(logarithms(there))


def chances_of(store: Store, made: list[dict[str, Any]]) -> dict[str, float]:
    """The probability of each flow of the networks with enough sound starts."""
    chances: dict[str, float] = {}
    for number, network in enumerate(made):
        runs = store.sides(number, network, more=False)
        store.save()
        print(number, network, len(runs), flush=True)
        if len(runs) == STARTS:
            for name in runs[0][0]:
                chances[f"{number}/{name}"] = chance(*columns(runs, name))
    return chances


def measure(store: Store) -> None:
    """Runs what is missing."""
    made = networks()
    differing = holm(chances_of(store, made))
    for number, network in enumerate(made):
        if any(id_.startswith(f"{number}/") for id_ in differing):
            store.sides(number, network, more=True)
            store.save()
    for id_ in sorted(confirmed(store, made, differing)):
        number = int(id_.partition("/")[0])
        for _ in explanations(store, made[number], id_):
            store.save()
    store.save()


def confirmed(store: Store, made: list[dict[str, Any]], differing: set[str]) -> set[str]:
    """Those that further starts confirm in the same direction."""
    chances = {}
    for id_ in differing:
        number, _, name = id_.partition("/")
        first, more = (store.sides(int(number), made[int(number)], more) for more in (False, True))
        if len(more) == STARTS and apart(*columns(first, name)) * apart(*columns(more, name)) > 0:
            chances[id_] = chance(*columns(more, name))
    return holm(chances)


def explanations(store: Store, network: dict[str, Any], id_: str) -> Iterator[tuple[str, float]]:
    """Rules of the network's transports, and the share of the difference that goes without each."""
    number, _, name = id_.partition("/")
    both = [store.sides(int(number), network, more) for more in (False, True)]
    runs = [run for half in both for run in half]
    starts = [start for first in (1, 1 + MAX_STARTS) for start in store.starts[f"{number}/{first}"]]
    whole = apart(*columns(runs, name))
    kinds = {transport(flow_)["kind"] for flow_ in network["flows"]}
    for kind in sorted(kinds):
        for rule in RULES[kind]:
            here = [store.ours(int(number), network, start, f"{kind}: {rule}") for start in starts]
            left = apart([found[name] for found in here], columns(runs, name)[1])
            yield f"{kind}: {rule}", 1 - abs(left) / abs(whole)


def parts(store: Store) -> dict[str, object]:
    """The generated parts of the page."""
    made = networks()
    chances = chances_of(store, made)
    differing = holm(chances)
    found = confirmed(store, made, differing)
    rows, explained = [], 0
    for id_ in sorted(found, key=lambda id_: (int(id_.partition("/")[0]), id_)):
        number, _, name = id_.partition("/")
        network = made[int(number)]
        both = [store.sides(int(number), network, more) for more in (False, True)]
        ratio = math.exp(apart(*columns(both[0] + both[1], name)))
        shares = sorted((share, rule) for rule, share in explanations(store, network, id_))
        share, rule = shares[-1] if shares else (0.0, "")
        explained += share >= EXPLAINED
        what = f"{rule}: {share:.0%}" if share >= EXPLAINED else "open"
        if share < EXPLAINED and rule:
            what += f" (at most {rule}: {share:.0%})"
        rows.append([
            network["rate"], network["delay"], network["packets"], f"{network['loss']:.1%}",
            ", ".join(network["flows"]), network["flows"][int(name[1:])], f"{ratio:.2f}", what,
        ])  # fmt: skip
    left = [str(n) for n in range(len(made)) if f"{n}/f0" not in chances]
    medians = []
    for kind in sorted({name for network in made for name in network["flows"]}):
        logs = [
            apart(*columns(store.sides(int(number), made[int(number)], more=False), name))
            for number, _, name in (id_.partition("/") for id_ in chances)
            if made[int(number)]["flows"][int(name[1:])] == kind
        ]
        medians.append(f"{kind} {math.exp(median(logs)):.2f} ({len(logs)})")
    heads = "rate | delay | queue | loss | flows | differs | ratio | without the rule, removed"
    outliers = (
        f"{STARTS} further starts confirm {len(found)}. A single rule switched off removes at "
        f"least {EXPLAINED:.0%} of the difference of {explained}; the others are open."
        if differing
        else "no further starts were needed."
    )
    return {
        "networks": len(made),
        "starts": STARTS,
        "left": len(left),
        "flows": len(chances),
        "differing": len(differing),
        "outliers": outliers,
        "medians": ", ".join(medians),
        "differ": table(heads, rows, "llrrllrl") if rows else "",
        "networks-made": f"commit `{store.said.get('commit', '')}`, {store.said.get('peer', '')}",
    }


def main() -> None:
    """Measures, unless only the page is requested, and fills the page."""
    store = Store(sys.argv[1:] == ["--again"])
    if sys.argv[1:] != ["--page"]:
        measure(store)
    fill(PAGE, parts(store))


if __name__ == "__main__":
    main()
