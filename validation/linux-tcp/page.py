"""The tables of docs/validation/linux-tcp.md, from results alone."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from pathlib import Path

from harness import Result, overview
from matrix import CASES, RACES, SEEDS, SHORT, Case, Way, races
from tables import table

CELLS = Path(__file__).resolve().parent / "cells.json"
UNDOS = ("TCPFullUndo", "TCPPartialUndo", "TCPDSACKUndo", "TCPLossUndo")


HEADS = (
    "conversation | path | opens | from us: Mbit/s | lost | again | blocks back (D)"
    " | from the kernel: Mbit/s | lost | again | blocks back (D)"
)


def parts(found: dict[str, Result]) -> dict[str, object]:
    """All parts besides the versions."""
    measured = json.loads(CELLS.read_text(encoding="utf-8")) if CELLS.exists() else {}
    return {
        "all-ones": sum(result["tshark"].get("all_ones", 0) for result in found.values()),
        "conversations": overview(HEADS, CASES, found, row, "lll" + "r" * 8, races()),
        "handshakes": handshakes(found),
        "race": race(found),
        **(alone(measured) if "verdicts" in measured else {}),
    }


def row(case: Case, result: Result) -> list[str]:
    """One conversation."""
    title = case.title if case.megabytes == 50 else f"{case.title}, {case.megabytes} MB"
    cells = [title, case.way.title, "we" if case.opens == "ours" else "the kernel"]
    if not result["ours"]:
        return [*cells, *[""] * 8]
    ways = zip(
        case.bytes, goodput(case, result), ("outbound", "inbound"), again(result),
        ("received", "sent"), strict=True,
    )  # fmt: skip
    for length, mbps, way, repeated, acknowledged in ways:
        lost = losses(result["ours"]["impairments"][way])
        sack = blocks(result["ours"]["segments"][acknowledged])
        cells += [f"{mbps:.1f}", lost, str(repeated), sack] if length else [""] * 4
    return cells


def again(result: Result) -> tuple[int, int]:
    """Segments sent again, by us and by the kernel."""
    sent = result["ours"]["segments"]["sent"]["again_segments"]
    return sent, result["theirs"]["info"]["total_retrans"]


def losses(impairment: dict) -> str:
    """Random losses, and those in the queue."""
    over = impairment["overflowed_packets"]
    return f"{impairment['lost_data_packets']}" + (f" + {over}" if over else "")


def blocks(segments: dict) -> str:
    """SACK blocks of one direction."""
    return f"{segments['sack_blocks']} ({segments['d_sacks']})" if segments["with_sack"] else ""


def goodput(case: Case, result: Result) -> tuple[float, float]:
    """Mbit/s of payload, ours and the kernel's.

    From the start of the connection to the end of the stream, as seen by the receiver.
    """
    events = dict(result["ours"]["record"]["events"])
    seconds = (events["PeerClosed"] - events["Connected"]) / 1e6
    out, back = (length * 8 / 1e6 for length in case.bytes)
    return out / result["theirs"]["seconds"], back / seconds


def handshakes(found: dict[str, Result]) -> str:
    """The options of the SYNs, each distinct pair once."""
    pairs: Counter[tuple[str, ...]] = Counter()
    for name, result in found.items():
        if result["ours"] and not name.startswith("race-"):
            segments = result["ours"]["segments"]
            pairs[tuple(", ".join(segments[way]["syn"]) for way in ("sent", "received"))] += 1
    rows = ((*pair, count) for pair, count in pairs.items())
    return table("ours | the kernel's | conversations", rows, "llr")


def race(found: dict[str, Result]) -> str:
    """Our sender and the kernel's, each alone over the same path with the same random losses."""
    heads = (
        "path | ours | its | our goodput | its goodput | ratio | again: ours | again: its"
        " | its undos"
    )
    laps = (lap(found, *it) for it in RACES)
    return table(heads, filter(None, laps), "lllllrrrr")


def lap(found: dict, name: str, way: Way, ours: str, kernel: str) -> list[str] | None:
    """One path and pair of controllers."""
    speeds: dict[str, list[float]] = {"ours": [], "theirs": []}
    repeated: dict[str, list[float]] = {"ours": [], "theirs": []}
    undone: list[float] = []
    for seed in SEEDS:
        for place, sends in enumerate(("ours", "theirs")):
            case = Case(f"race-{name}-{ours}-{seed}-{SHORT[sends]}", "", way, sends, megabytes=10)
            result = found.get(case.name)
            if not result or not result["ours"] or result["wrong"]:
                return None
            speeds[sends].append(goodput(case, result)[place])
            repeated[sends].append(again(result)[place])
            if sends == "theirs":
                undone.append(sum(result["theirs"]["counters"].get(name, 0) for name in UNDOS))
    ratios = [a / b for a, b in zip(speeds["ours"], speeds["theirs"], strict=True)]
    error = statistics.stdev(ratios) / len(ratios) ** 0.5
    told = [
        f"{statistics.mean(all_of):.1f} ({min(all_of):.1f} to {max(all_of):.1f})"
        for all_of in speeds.values()
    ]
    times = [f"{statistics.mean(all_of):.0f}" for all_of in [*repeated.values(), undone]]
    ratio = f"{statistics.mean(ratios):.2f} ± {error:.2f}"
    return [way.title, ours, kernel, *told, ratio, *times]


def alone(found: dict) -> dict[str, object]:
    """The senders of `cells.py`."""
    cells: dict[tuple[str, str], dict[str, dict]] = {}
    for verdict in found["verdicts"]:
        cell = cells.setdefault((verdict["network"], verdict["controller"]), {})
        cell[verdict["measure"]] = verdict
    differing = [verdict for verdict in found["verdicts"] if verdict["verdict"] == "differs"]
    rows = []
    for (network, controller), cell in cells.items():
        name = f"{network}, {controller}"
        theirs = [run for key, run in found["kernel"].items() if key.startswith(f"{name}, ")]
        most = [max(run["srtt_max_s"] for run in runs) for runs in (found["ours"][name], theirs)]
        columns = {it: [mean(cell[it], side) for side in ("ours", "kernel")] for it in UNITS}
        rows.append([
            network, controller, *columns["goodput_bps"], *columns["srtt_s"],
            *(f"{1e3 * value:.0f}" for value in most), *columns["timeouts"],
        ])  # fmt: skip
    causes = []
    for verdict in differing:
        best = verdict["cause"] or max(verdict["removes"], key=verdict["removes"].__getitem__)
        causes.append([
            f"{verdict['network']}, {verdict['controller']}: {UNITS[verdict['measure']][0]}",
            *(mean(verdict, side) for side in ("ours", "kernel")),
            best if verdict["cause"] else f"open; at most {best}",
            f"{100 * verdict['removes'][best]:.0f} %",
        ])  # fmt: skip
    heads = (
        "network | controller | goodput: ours | kernel | SRTT: ours | kernel"
        " | largest SRTT: ours | kernel | timeouts: ours | kernel"
    )
    return {
        "runs": len(found["kernel"]) // len(cells),
        "seeds": len(next(iter(found["ours"].values()))),
        "measures": len(found["verdicts"]),
        "agree": len(found["verdicts"]) - len(differing),
        "differ": len(differing),
        "explained": sum(verdict["cause"] is not None for verdict in differing),
        "alone": table(heads, rows, "ll" + "r" * 8),
        "causes": table("differs | ours | kernel | setting | removes", causes, "lrrlr"),
    }


UNITS = {"goodput_bps": ("goodput", 1e3), "srtt_s": ("SRTT", 1e-3), "timeouts": ("timeouts", 1)}
"""Name and unit of each measure."""


def mean(row: dict, side: str) -> str:
    """A mean with its interval, bold where it differs."""
    value, half = (value / UNITS[row["measure"]][1] for value in row[side])
    digits = 1 if value < 100 else 0
    text = f"{value:.{digits}f} ± {half:.{digits}f}"
    return f"**{text}**" if row["verdict"] == "differs" else text
