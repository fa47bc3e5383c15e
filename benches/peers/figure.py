"""The figure of the page: speed compared with the peers, and scaling."""

from __future__ import annotations

import io
from statistics import median
from typing import TYPE_CHECKING, Any

from benches.peers import tables
from benches.peers.matches import MATCHES
from benches.peers.plan import GROWTH_FLOWS, GROWTH_S, WATCHES
from benches.peers.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIDES = ("talkspurt", "ns-2 lean", "ns-2", "ns-3")


def draw(results: Results) -> bytes:
    """Four panels, as SVG."""
    from matplotlib import pyplot

    from talkspurt.figures.style import BLUE, GREEN, ORANGE, VERMILLION, styled

    colours = dict(zip(SIDES, (BLUE, GREEN, ORANGE, VERMILLION), strict=True))
    with styled():
        figure, panels = pyplot.subplots(2, 2, figsize=(10, 7), constrained_layout=True)
        _speeds(panels[0][0], results, colours)
        _flows(panels[0][1], results, colours)
        _time(panels[1][0], results, colours["talkspurt"])
        _watches(panels[1][1], results, colours["talkspurt"])
        file = io.BytesIO()
        figure.savefig(file, format="svg", metadata={"Date": None})
        pyplot.close(figure)
    return file.getvalue()


def _speeds(ax: Axes, results: Results, colours: dict[str, str]) -> None:
    """Hops per CPU-second of each workload."""
    names = [
        name for name in ("w1", "w2", "w3", "w3d", "w4", "w5-1000") if tables.full(results, name)
    ]
    for place, name in enumerate(names):
        bars = speeds(results, name)
        for side, value in bars.items():
            at = place + 0.2 * (SIDES.index(side) - 1.5)
            ax.bar(at, value, 0.19, color=colours[side], label=side if place == 0 else None)
    ax.set_yscale("log")
    # Space for the legend above the bars.
    ax.set_ylim(top=10 * ax.get_ylim()[1])
    ax.set_xticks(range(len(names)), [tables.called(name) for name in names])
    ax.set_ylabel("M packet-hops a CPU-second")
    ax.set_title("Speed, whole processes", loc="left")
    ax.legend(loc="upper right", ncols=2)


def speeds(results: Results, workload: str) -> dict[str, float]:
    """Hops per CPU-second here and in each peer with a valid ratio."""
    found: dict[str, float] = {}
    for match in MATCHES:
        outcome = results.outcome(match) if match.workload == workload else None
        if outcome is None:
            continue
        found.setdefault("talkspurt", tables.speed(outcome, "here"))
        if match.peer in SIDES and not outcome.unlike():
            found.setdefault(match.peer, tables.speed(outcome, "there"))
    return found


def _flows(ax: Axes, results: Results, colours: dict[str, str]) -> None:
    """Cost of a hop by number of flows."""
    lines: dict[str, list[tuple[int, float]]] = {side: [] for side in SIDES}
    for flows in GROWTH_FLOWS:
        if each := tables.each_hop(results, flows):
            lines["talkspurt"].append((flows, 1e9 * each))
        for side, value in speeds(results, f"w5-{flows}").items():
            if side != "talkspurt":
                lines[side].append((flows, 1e3 / value))
    for side, points in lines.items():
        if points:
            ax.plot(*zip(*points, strict=True), "o-", color=colours[side], label=side)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("flows (W5, 10 s)")
    ax.set_ylabel("CPU a hop / ns")
    ax.set_title("With the number of flows", loc="left")
    ax.legend(loc="best")


def _time(ax: Axes, results: Results, colour: str) -> None:
    """CPU and memory by simulated time."""
    points = [(s, results.numbered(f"seconds {s}")) for s in GROWTH_S]
    seconds = [s for s, costs in points if costs]

    def middle(what: str) -> list[Any]:
        return [median(one[what] for one in costs) for _, costs in points if costs]

    ax.plot(seconds, middle("cpu_s"), "o-", color=colour)
    ax.set_xlabel("simulated time of W1 / s")
    ax.set_ylabel("CPU / s (dots)")
    ax.set_ylim(bottom=0)
    memory = ax.twinx()
    peaks = middle("peak_mb")
    memory.plot(seconds, peaks, "x--", color="#6b7280")
    memory.set_ylabel("peak memory / MB (crosses)")
    memory.set_ylim(0, 1.2 * max(peaks, default=1))
    ax.set_title("With duration", loc="left")


def _watches(ax: Axes, results: Results, colour: str) -> None:
    """Cost of a hop with each probe."""
    names = [name for name in WATCHES if results.numbered(f"while {name}")]
    values = [
        median(
            1e9 * one["cpu_s"] / one["said"]["hops"] for one in results.numbered(f"while {name}")
        )
        for name in names
    ]
    ax.barh(names, values, color=colour)
    ax.invert_yaxis()
    ax.set_xlabel("CPU a hop / ns (W1, 20 s)")
    ax.set_title("With what is recorded", loc="left")
