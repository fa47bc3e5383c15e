"""The parts of docs/validation/ns2.md on long and lossy paths, from `sweep.json`."""

from __future__ import annotations

import json
from statistics import mean
from typing import Any

from sweep import (
    LOSSES,
    RESULTS,
    ROOT,
    RTTS_MS,
    SEEDS,
    STARTS_MS,
    TRANSPORTS,
    WINDOWED,
)
from tables import table

Cell = dict[str, Any]


def ratio(cell: Cell, name: str = "flow") -> float | None:
    """Our mean throughput over ns-2's, over the comparable seeds."""
    sides = cell[name]
    return mean(sides["here"]) / mean(sides["ns2"]) if sides["here"] else None


def shown(cell: Cell) -> str:
    """A cell of the table: the ratio, those of single seeds, and the number rejected."""
    found = ratio(cell)
    if found is None:
        return f"not comparable ({len(cell['refused'])} refused)"
    text = f"{found:.3f}" if cell["loss"] == 0 else f"{found:.2f}"
    sides = cell["flow"]
    if len(sides["here"]) > 1:
        pairs = zip(sides["here"], sides["ns2"], strict=True)
        single = [a / b if b else float("inf") for a, b in pairs]
        text += f" ({least(min(single))}–{least(max(single))})"
    return text + (f", {len(cell['refused'])} refused" if cell["refused"] else "")


def least(value: float) -> str:
    """Two decimals where they are significant."""
    if value == float("inf"):
        return "∞"
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def spread(cell: Cell) -> float:
    """The maximum throughput of ns-2's own seeds over the smallest non-zero one."""
    values = [value for value in cell["flow"]["ns2"] if value]
    return max(values) / min(values) if values else 1.0


def percent(value: float) -> str:
    """With a decimal if significant."""
    return f"{value:.1%}" if value < 0.1 else f"{value:.0%}"


class Sweep:
    """The stored results."""

    def __init__(self) -> None:
        """Reads them."""
        stored = json.loads(RESULTS.read_text(encoding="utf-8"))
        self.said: dict[str, str] = stored["said"]
        self.cells: list[Cell] = stored["cells"]

    def of(self, table: str, **keys: Any) -> list[Cell]:
        """The cells of a table with these values."""
        return [
            cell
            for cell in self.cells
            if cell["table"] == table and all(cell[key] == keys[key] for key in keys)
        ]

    def worst(self, name: str, loss: float, **keys: Any) -> float:
        """Maximum deviation of a transport, over the round-trip times."""
        ratios = [ratio(cell) for cell in self.of("grid", name=name, loss=loss, **keys)]
        return max(abs(found - 1) for found in ratios if found is not None)

    def spread(self, loss: float) -> float:
        """Maximum spread of ns-2's own seeds; without UDP, whose source never waits."""
        return max(spread(c) for c in self.of("grid", loss=loss) if c["name"] != "UDP")


HEADS = [f"{loss:.0%} lost" if loss else "queue only" for loss in LOSSES]


def grid(sweep: Sweep) -> str:
    """Every cell."""
    rows = (
        [name, rtt, *(shown(sweep.of("grid", name=name, rtt_ms=rtt, loss=it)[0]) for it in LOSSES)]
        for name in TRANSPORTS
        for rtt in RTTS_MS
    )
    return table(["", "RTT, ms", *HEADS], rows, "l" + "r" * (1 + len(LOSSES)))


def largest(sweep: Sweep) -> str:
    """The maximum deviation of each transport."""
    rows = [[name, *(percent(sweep.worst(name, loss)) for loss in LOSSES)] for name in TRANSPORTS]
    spreads = [f"{sweep.spread(loss):.1f}" if loss else "" for loss in LOSSES]
    rows.append(["*ns-2's best seed / its worst, at most*", *spreads])
    return table(["largest deviation from ns-2", *HEADS], rows, "l" + "r" * len(LOSSES))


def refused(sweep: Sweep) -> str:
    """Cases that cannot be compared, with the reason."""
    reasons: dict[str, list[str]] = {}
    grid: dict[tuple[str, str], list[str]] = {}
    for cell in sweep.of("grid"):
        for seed, reason in cell["refused"]:
            key = " ".join(reason.split()), f"{cell['name']}, {cell['loss']:.0%} lost, seed {seed}"
            grid.setdefault(key, []).append(str(cell["rtt_ms"]))
    for (reason, where), rtts in grid.items():
        reasons.setdefault(reason, []).append(f"{where}, {', '.join(rtts)} ms")
    for cell in sweep.of("short") + sweep.of("rules"):
        for seed, reason in cell["refused"]:
            where = f"{cell['name']}, 10 Mbit/s, 300 ms, queue of 50 packets, seed {seed}"
            reasons.setdefault(" ".join(reason.split()), []).append(where)
    assert not any(cell["refused"] for cell in sweep.of("beside"))
    if not reasons:
        return "`crosscheck` rejected none of these runs."
    lines = ["Not comparable, because `crosscheck` rejects ns-2's run:", ""]
    lines += [f"* {'; '.join(cells)}: *{reason}*" for reason, cells in reasons.items()]
    return "\n".join(lines)


def short(sweep: Sweep) -> str:
    """The long path with a short queue."""
    rows = []
    for cell in sweep.of("short") + sweep.of("rules"):
        name, sides = cell["name"], cell["flow"]
        if cell["table"] == "rules":
            if name == "as in the table above":
                continue
            name = f"newreno, {name}"
        values = ["", "refused, see above", ""]
        if sides["here"]:
            values = [f"{sides[side][0] / 1e3:,.0f}" for side in ("here", "ns2")]
            values.append(f"{ratio(cell):.3f}")
        rows.append([name, cell.get("duration", 60), *values])
    heads = "10 Mbit/s, 300 ms, 50 packets | run, s | kbit/s here | ns-2 | ratio"
    return table(heads, rows, "lrrrr")


def beside(sweep: Sweep) -> str:
    """CCID 3 and TFRC over one bottleneck."""
    heads = (
        "CCID 3 beside TFRC: RTT, ms | queue, packets | of the first, s | CCID 3 here / ns-2"
        " | TFRC here / ns-2 | CCID 3, kbit/s here | in ns-2"
    )
    rows = (
        [
            c["rtt_ms"], c["packets"], c["duration"],
            *(f"{ratio(c, name):.2f}" for name in ("ccid3", "tfrc")),
            *(f"{min(v) / 1e3:,.0f}–{max(v) / 1e3:,.0f}" for v in c["ccid3"].values()),
        ]
        for c in sweep.of("beside")
    )  # fmt: skip
    return table(heads, rows, "r" * 7)


def apart(sweep: Sweep, seconds: int) -> list[float]:
    """The deviations of the shares at this duration in seconds, the largest first."""
    cells = sweep.of("beside", duration=seconds)
    values = [abs((ratio(c, name) or 0) - 1) for c in cells for name in ("ccid3", "tfrc")]
    return sorted(values, reverse=True)


def check_page(sweep: Sweep) -> None:
    """Asserts that the how-to page states the same."""
    worst = [100 * sweep.worst(name, 0.1) for name in TRANSPORTS if name != "UDP"]
    cells = [c for name in (*WINDOWED, "sack") for c in sweep.of("grid", name=name, loss=0.0)]
    most = max(ratio(cell) or 0.0 for cell in cells if cell["rtt_ms"] == 600)
    page = "docs/how-to/compare-with-ns2.md"
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    for words in (
        f"TCP according to the RFCs carries up to {most:.1f} times as much as TCP in ns-2",
        f"worst case of each transport differs by {min(worst):.0f} to {max(worst):.0f} percent",
        "from 20 % on, ns-2's own seeds differ by a factor of more than ten",
    ):
        assert words in text, f"{page} should say: {words}"
    assert min(sweep.spread(0.2), sweep.spread(0.3)) > 10


def parts(sweep: Sweep) -> dict[str, object]:
    """The tables and the numbers of the text, whose limits are asserted."""
    bulk = [name for name in TRANSPORTS if name != "UDP"]
    rfc = [*WINDOWED, "sack"]
    rules = [f"{name}, ns-2's windows" for name in WINDOWED]
    exact = [name for name in rules if not name.startswith("reno")]
    others = ["SCTP", *(name for name in TRANSPORTS if "profile" in name)]

    def at_most(names: list[str], loss: float, **keys: Any) -> str:
        return percent(max(sweep.worst(name, loss, **keys) for name in names))

    def span(names: list[str], *losses: float) -> str:
        cells = [c for n in names for loss in losses for c in sweep.of("grid", name=n, loss=loss)]
        ratios = [found for cell in cells if (found := ratio(cell)) is not None]
        return f"{min(ratios):.2f} to {max(ratios):.2f}"

    def each(loss: float) -> str:
        return ", ".join(f"{n.removesuffix(', profile ns2')} {span([n], loss)}" for n in others)

    (steps,) = sweep.of("thresholds")
    seen = {
        key: ", ".join(f"{value:g}" for value in steps[key] if value < 1000)
        for key in ("rfc", "rule", "ns2")
    }
    assert seen["rule"] == seen["ns2"], "the rule of windows no longer follows ns-2"
    single = {cell["name"]: ratio(cell) or 0.0 for cell in sweep.of("rules")}
    excess, removed = single["as in the table above"] - 1, single["window_rule = ns2"] - 1
    assert abs(removed) < 0.03 < 0.05 < excess, single
    (longer,) = sweep.of("short", name="newreno", duration=300)
    (reno,) = sweep.of("short", name="reno, ns-2's windows")
    early, late = apart(sweep, 20), apart(sweep, 120)
    alone = {name.removesuffix(", profile ns2"): sweep.of("short", name=name)[0] for name in others}
    beyond = ", ".join(
        f"{name} at " + ("none (refused)" if (found := ratio(cell)) is None else f"{found:.2f}")
        for name, cell in alone.items()
    )
    chance = max(
        max(c[name]["ns2"]) / min(c[name]["ns2"])
        for c in sweep.of("beside", duration=20)
        for name in ("ccid3", "tfrc")
    )
    assert sweep.worst("UDP", 0.0) == 0
    assert max(sweep.worst(name, 0.0, rtt_ms=50) for name in bulk) < 0.02
    assert max(sweep.worst(name, 0.0) for name in exact) < 0.03
    rough = [ratio(cell) or 1.0 for loss in (0.2, 0.3) for cell in sweep.of("grid", loss=loss)]
    factor = max(max(value, 1 / value) for value in rough)
    check_page(sweep)
    return {
        "grid": grid(sweep),
        "largest": largest(sweep),
        "refused": refused(sweep),
        "short": short(sweep),
        "beside": beside(sweep),
        "seeds": SEEDS,
        **{f"starts-{seconds}": len(starts) for seconds, starts in STARTS_MS.items()},
        "near": at_most(bulk, 0.0, rtt_ms=50),
        "exact": at_most(exact, 0.0),
        "reno": span(["reno, ns-2's windows"], 0.0),
        "rfc": span(rfc, 0.0),
        "others": each(0.0),
        **{f"rules-{loss:.0%}"[:-1]: span(rules, loss) for loss in (0.01, 0.1)},
        **{f"rfc-{loss:.0%}"[:-1]: span(rfc, loss) for loss in (0.01, 0.1)},
        **{f"others-{loss:.0%}"[:-1]: each(loss) for loss in (0.01, 0.1)},
        **{f"spread-{loss:.0%}"[:-1]: f"{sweep.spread(loss):.0f}" for loss in (0.2, 0.3)},
        "factor": f"{factor:.1f}",
        "tfrc-lossy": span(["TFRC, profile ns2"], 0.2, 0.3),
        "ccid3-lossy": span(["CCID 3, profile ns2"], 0.2, 0.3),
        "excess": f"{excess:.0%}",
        "longer": f"{(ratio(longer) or 0) - 1:.0%}",
        "removed": f"{removed:+.1%}",
        **{f"steps-{key}": steps for key, steps in seen.items()},
        "short-reno": f"{ratio(reno):.2f}",
        "beyond": beyond,
        "early": f"{early[0]:.0%}",
        "late": f"{late[0]:.0%}",
        "chance": f"{chance:.0f}",
        "sweep-made": "{made}, talkspurt commit `{commit}`, {peer}".format(**sweep.said),
    }
