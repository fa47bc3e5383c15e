"""The section of docs/validation/ns2.md on long and lossy paths, made of `sweep.json`."""

from __future__ import annotations

import json
from statistics import mean
from typing import Any

from sweep import BEGIN, END, LOSSES, RESULTS, RTTS_MS, SEEDS, TRANSPORTS, WINDOWED

Cell = dict[str, Any]


def ratio(cell: Cell, name: str = "flow") -> float | None:
    """Mean throughput here beside ns-2's, over the seeds that can be compared."""
    sides = cell[name]
    return mean(sides["here"]) / mean(sides["ns2"]) if sides["here"] else None


def shown(cell: Cell) -> str:
    """A cell of the table: the ratio, those of single seeds, and how many were refused."""
    found = ratio(cell)
    if found is None:
        return f"not comparable ({len(cell['refused'])} refused)"
    text = f"{found:.3f}" if cell["loss"] == 0 else f"{found:.2f}"
    sides = cell["flow"]
    if len(sides["here"]) > 1:
        single = [a / b for a, b in zip(sides["here"], sides["ns2"], strict=True)]
        text += f" ({min(single):.2f}–{max(single):.2f})"
    return text + (f", {len(cell['refused'])} refused" if cell["refused"] else "")


def spread(cell: Cell) -> float:
    """The largest throughput of ns-2's own seeds beside the smallest."""
    values = cell["flow"]["ns2"]
    return max(values) / min(values) if values else 1.0


def percent(value: float) -> str:
    """With a decimal where it matters."""
    return f"{value:.1%}" if value < 0.1 else f"{value:.0%}"


class Sweep:
    """The stored results."""

    def __init__(self) -> None:
        """Reads them."""
        stored = json.loads(RESULTS.read_text(encoding="utf-8"))
        self.said: dict[str, str] = stored["said"]
        self.cells: list[Cell] = stored["cells"]

    def of(self, table: str, **keys: Any) -> list[Cell]:
        """The cells of a table that have these values."""
        return [
            cell
            for cell in self.cells
            if cell["table"] == table and all(cell[key] == keys[key] for key in keys)
        ]

    def worst(self, name: str, loss: float) -> float:
        """How far a transport is off at most, over the round-trip times."""
        ratios = [ratio(cell) for cell in self.of("grid", name=name, loss=loss)]
        return max(abs(found - 1) for found in ratios if found is not None)

    def spread(self, loss: float) -> float:
        """How far ns-2's own seeds are apart at most; without UDP, whose source never waits."""
        return max(spread(c) for c in self.of("grid", loss=loss) if c["name"] != "UDP")


def grid(sweep: Sweep) -> str:
    """Every cell."""
    head = " | ".join(f"{loss:.0%} lost" if loss else "queue only" for loss in LOSSES)
    rows = [f"| | RTT, ms | {head} |", "|---|---:|" + "---:|" * len(LOSSES)]
    for name in TRANSPORTS:
        for rtt in RTTS_MS:
            cells = [sweep.of("grid", name=name, rtt_ms=rtt, loss=loss)[0] for loss in LOSSES]
            rows.append(f"| {name} | {rtt} | " + " | ".join(map(shown, cells)) + " |")
    return "\n".join(rows)


def largest(sweep: Sweep) -> str:
    """How far each transport is off at most."""
    head = " | ".join(f"{loss:.0%} lost" if loss else "queue only" for loss in LOSSES)
    rows = [f"| largest deviation from ns-2 | {head} |", "|---|" + "---:|" * len(LOSSES)]
    for name in TRANSPORTS:
        cells = " | ".join(percent(sweep.worst(name, loss)) for loss in LOSSES)
        rows.append(f"| {name} | {cells} |")
    spreads = " | ".join(f"{sweep.spread(loss):.1f}" if loss else "" for loss in LOSSES)
    rows.append(f"| *ns-2's best seed / its worst, at most* | {spreads} |")
    return "\n".join(rows)


def refused(sweep: Sweep) -> str:
    """What cannot be compared, with the reason."""
    reasons: dict[str, list[str]] = {}
    for cell in sweep.of("grid"):
        for seed, reason in cell["refused"]:
            where = f"{cell['name']}, {cell['rtt_ms']} ms, {cell['loss']:.0%}, seed {seed}"
            reasons.setdefault(" ".join(reason.split()), []).append(where)
    others = [c for c in sweep.cells if c["table"] != "grid" and c.get("refused")]
    assert not others, others
    if not reasons:
        return "`crosscheck` refused none of these runs."
    lines = ["Not comparable, because `crosscheck` refuses ns-2's run:", ""]
    lines += [f"* {'; '.join(cells)}: *{reason}*" for reason, cells in reasons.items()]
    return "\n".join(lines)


def short(sweep: Sweep) -> str:
    """The long path with a short queue."""
    rows = ["| 10 Mbit/s, 300 ms, 50 packets | run, s | kbit/s here | ns-2 | ratio |",
            "|---|---:|---:|---:|---:|"]  # fmt: skip
    for cell in sweep.of("short") + sweep.of("rules"):
        name, sides = cell["name"], cell["flow"]
        if cell["table"] == "rules":
            if name == "as in the table above":
                continue
            name = f"newreno, {name}"
        rows.append(
            f"| {name} | {cell.get('duration', 60)} | {sides['here'][0] / 1e3:,.0f} | "
            f"{sides['ns2'][0] / 1e3:,.0f} | {ratio(cell):.3f} |"
        )
    return "\n".join(rows)


def beside(sweep: Sweep) -> str:
    """CCID 3 and TFRC over one bottleneck."""
    rows = ["| CCID 3 beside TFRC: RTT, ms | queue, packets | of the first, s | CCID 3 here / ns-2 "
            "| TFRC here / ns-2 |", "|---:|---:|---:|---:|---:|"]  # fmt: skip
    rows += [
        f"| {c['rtt_ms']} | {c['packets']} | {c['duration']} | {ratio(c, 'ccid3'):.2f} "
        f"| {ratio(c, 'tfrc'):.2f} |"
        for c in sweep.of("beside")
    ]
    return "\n".join(rows)


def apart(sweep: Sweep, seconds: int) -> list[float]:
    """How far the shares are off, by so many seconds, the largest first."""
    cells = sweep.of("beside", duration=seconds)
    values = [abs((ratio(c, name) or 0) - 1) for c in cells for name in ("ccid3", "tfrc")]
    return sorted(values, reverse=True)


def section() -> str:
    """The text, from marker to marker."""
    sweep = Sweep()
    return f"{BEGIN}\n{text(sweep)}\n{END}"


def text(sweep: Sweep) -> str:
    """What holds and what does not."""
    bulk = [name for name in TRANSPORTS if name != "UDP"]
    rfc = list(WINDOWED)
    rules = [f"{name}, ns-2's windows" for name in WINDOWED]

    def at_most(names: list[str], *losses: float) -> str:
        return percent(max(sweep.worst(name, loss) for name in names for loss in losses))

    def below(sweep_cells: list[Cell]) -> str:
        ratios = [found for c in sweep_cells if (found := ratio(c)) is not None]
        return f"{min(ratios):.2f} to {max(ratios):.2f}"

    (steps,) = sweep.of("thresholds")
    seen = {
        key: ", ".join(f"{value:g}" for value in steps[key] if value < 1000)
        for key in ("rfc", "rule", "ns2")
    }
    assert seen["rule"] == seen["ns2"], "the rule of windows no longer follows ns-2"
    single = {cell["name"]: ratio(cell) or 0.0 for cell in sweep.of("rules")}
    excess, removed = single["as in the table above"] - 1, single["window_rule = ns2"] - 1
    others = [v - 1 for k, v in single.items() if k not in ("window_rule = ns2",)]
    assert abs(removed) < 0.03 and min(others) > 0.05, single
    longer = sweep.of("short", name="newreno", duration=300)[0]
    tfrc = "TFRC, profile ns2"
    early, late = apart(sweep, 20), apart(sweep, 120)
    assert sweep.worst("UDP", 0.0) == 0
    return f"""\
## Long and lossy paths

<!-- Written by validation/ns2/sweep.py; changes made here are lost. -->

The same network with round-trip times of {", ".join(map(str, RTTS_MS[:-1]))} and {RTTS_MS[-1]} ms
and a DropTail queue of 50 packets on the core, one bulk flow (UDP: packets at 1 Mbit/s), 100 s,
random loss in both directions, {SEEDS} seeds where there is random loss. Cells are throughput here
divided by ns-2's: of the means over the seeds, and in brackets the least and largest of single
seeds. Both simulators draw different losses under one seed.

{grid(sweep)}

{largest(sweep)}

{refused(sweep)}

What holds:

* Where only the queue loses packets: bulk data is within {at_most(bulk, 0.0)} of ns-2, with ns-2's
  windows ({", ".join(WINDOWED)}) within {at_most(rules, 0.0)}; UDP is equal.
* At 1 % loss: SCTP is within {at_most(["SCTP"], 0.01)}, TCP with ns-2's windows within
  {at_most(rules, 0.01)}, with the windows of the RFCs within {at_most([*rfc, "sack"], 0.01)}, TFRC
  within {at_most([tfrc], 0.01)}, CCID 2 within {at_most(["CCID 2, profile ns2"], 0.01)}, CCID 3
  within {at_most(["CCID 3, profile ns2"], 0.01)}.
* At 10 % loss: SCTP is within {at_most(["SCTP"], 0.1)}; TCP is at
  {below([c for n in [*rfc, *rules, "sack"] for c in sweep.of("grid", name=n, loss=0.1)])} of ns-2,
  TFRC at {below(sweep.of("grid", name=tfrc, loss=0.1))}, CCID 2 at
  {below(sweep.of("grid", name="CCID 2, profile ns2", loss=0.1))}, CCID 3 at
  {below(sweep.of("grid", name="CCID 3, profile ns2", loss=0.1))}.
* From 20 % loss on most of a run consists of timeouts, which are backed off towards 60 s. ns-2's
  own seeds differ by a factor of up to {sweep.spread(0.2):.1f} at 20 % and {sweep.spread(0.3):.1f}
  at 30 %, so that five runs of 100 s do not show agreement better than that. SCTP is at
  {below([*sweep.of("grid", name="SCTP", loss=0.2), *sweep.of("grid", name="SCTP", loss=0.3)])} of
  ns-2 there, TFRC at 30 % loss at {below(sweep.of("grid", name=tfrc, loss=0.3))}; the cause of what
  TFRC is off at 10 % loss and more is not traced.

### A long path with a queue much shorter than the path

At 10 Mbit/s and 300 ms the path holds 360 packets and the queue 50 (access links of 100 Mbit/s).
NewReno by the RFCs carries {excess:.0%} more than ns-2 in the first minute and
{(ratio(longer) or 0) - 1:.0%} more in five; `window_rule = "ns2"` leaves {removed:+.1%}. The cause
is the end of slow start. Its overshoot loses more than a hundred packets at once. RFC 5681 halves
what is in flight once, and a timeout during that recovery does not lower the threshold for the same
data again. ns-2 halves the window, which it has halved already, at the timeout and at each further
fast retransmission: its thresholds are {seen["ns2"]} packets, ours {seen["rfc"]} with the windows
of the RFCs and {seen["rule"]} with ns-2's. From there both grow by one packet in a round trip, so
that the difference lasts for minutes. Delayed acknowledgements, the initial window, the least
timeout and a threshold set before the start do not remove it, alone:

{short(sweep)}

### CCID 3 beside TFRC

Both over one bottleneck of 2 Mbit/s, TFRC 0.1 s later, one run of each. Of the first 20 s the
shares differ from ns-2's by up to {early[0]:.0%}, of 120 s by up to {late[0]:.0%}. The cause is not
traced.

{beside(sweep)}

Made {sweep.said["made"]}, talkspurt commit `{sweep.said["commit"]}`, {sweep.said["peer"]}."""
