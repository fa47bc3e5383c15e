"""Writes docs/validation/linux-tcp.md from results alone."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import headers
from matrix import CASES, RACES, SEEDS, SHORT, Case, Way

HEAD = """\
# TCP with the Linux kernel

<!-- Written by validation/linux-tcp/run.py; changes made here are lost. -->

Our TCP endpoint, the one used in simulations, communicates with the TCP of the machine's own Linux
kernel: it runs behind a TUN device in its own network namespace, and the kernel's side is an
ordinary socket. Between endpoint and device our own link delays packets in real time, drops, holds
back, duplicates and marks them from a seed, and has a bottleneck where one is named; both
directions are alike, so that a delay of 20 ms is 10 ms each way.

Both sides send random bytes from a file. A conversation passes if the SHA-256 of the data sent by
each side is that of the data received by the other; it connected, was closed by both sides, and was
not reset before or timed out; the negotiated options are those requested, as reported by the kernel
(`TCP_INFO`); the kernel reports no wrong checksum; and both sides reported lost, duplicated and
marked packets to each other by SACK, D-SACK, ECN-echo and CWR. The packets of each conversation,
captured on our side, are read by tshark with all checksum checks enabled: it finds no error, no
expert item except on sequence numbers (such as retransmissions), and counts the same segments,
bytes and SACK blocks.

The kernel deviates in two ways. It writes a TCP checksum of 0 as 0xffff, as required for UDP;
tshark reports that as wrong, while a receiver's sum is correct: {all_ones} of
its packets are accepted nevertheless, and none of ours. And it ignores duplicates that it has not
sent itself: it treats a D-SACK for a packet duplicated by the link as dubious, reads it as an
ordinary block, and discards it. At most as many blocks may be discarded (`TCPSACKDiscard`) as
D-SACKs were dubious (`TCPDSACKIgnoredDubious`).

{headers}

Not asserted: speed. The figures are from one machine that was busy with other work (load
given below); both ends, the link and tshark share its processors.

| | |
|---|---|
| made | {date} |
| talkspurt | commit `{commit}`{modified}; judged, and this page written, with `{judged}` |
| kernel | {kernel}, with {congestion_control} |
| tshark | {tshark} |
| rustc | {rustc} |
| python | {python} |
| processors | {processors}, load {load:.1f}, {jobs} conversations at a time |

To reproduce (needs root):

```sh
sudo validation/linux-tcp/run.py --jobs {jobs}
```

## Conversations

Each side that sends sends the bytes named in the row, {most} MB if none are. *Again* counts data
segments that were sent again: ours as counted by us, the kernel's as its socket counts them
(`tcpi_total_retrans`). *Lost* counts the random losses of data segments, and after a plus those
dropped by the queue. *Blocks* are those of SACK options, *D* the options that begin with a D-SACK.
"""


BESIDE = """\
## Comparison with the kernel

The same 10 MB over the same path, once from us to the kernel and once from the kernel to us, with
seeds {first} to {last}: the n-th packet of either sender has the same random draw. Goodput
in Mbit/s, mean and range; the ratio of ours to the kernel's is the mean over seeds, with its
standard error. The last three columns are means: data segments sent again, and how often the kernel
undid a reduction that timestamps or D-SACKs showed to be spurious (`TCPFullUndo`,
`TCPPartialUndo`, `TCPDSACKUndo`, `TCPLossUndo`), which ours does not do after a fast retransmit.

| path | ours | its | our goodput | its goodput | ratio | again: ours | again: its | its undos |
|---|---|---|---|---|---:|---:|---:|---:|"""

SEEN = """\
## Observations

* With losses but no reordering, we retransmit the lost segments and only a few others.
* With late packets, `sack` takes segments overtaken by three later ones as lost (RFC 6675) and
  halves its window; RACK-TLP, used by `cubic`, waits, and so does the kernel.
* If both sides send through a deep queue, acknowledgements queue behind data. In slow start `sack`
  received none for 200 ms and took that for a loss: everything in flight was retransmitted
  unnecessarily, as the kernel reported by D-SACK. The lower bound of the timeout is 200 ms here
  (`min_rto`), but one second in RFC 6298.
* With late packets, `sack` is slower than the kernel's Reno, which undoes spurious reductions; ours
  does so only after timeouts (Eifel's response, RFC 4015), not after fast retransmits, where
  RFC 9438 §4.9.2 would permit it.
* `cubic` is faster than the kernel's at 1 % loss, where the window is so small that both follow
  Reno's estimate. RFC 9438 §4.3 lets that grow by 0.53 segments per round trip up to the window of
  the last loss, and by one segment from there on; the kernel, whose code is older, stays at 0.53.
* `bbr` is version 3 of the draft, the kernel's is version 1. Version 1 ignores loss; version 3
  reduces its rate in a round that lost more than 2 %, as some do by chance at 1 % loss.
"""

ALONE = """\
## Senders alone on the same networks

Each sender sends for a minute: the kernel's, {runs} times, through `talkspurt emulate`, ours
simulated with {seeds} seeds. `validation/linux-tcp/cells.py` has the networks and the rules, which
were committed before the first run. Goodput in kbit/s, median and largest SRTT in ms,
retransmission timeouts; means with intervals of 95 %. Of {measures} measures {agree} agree. For
each of the {differ} that differ (**bold**) the second table has the setting of ours that removes
most of the difference; {explained} are explained, by one that removes at least 80 %.
"""

CELLS = Path(__file__).resolve().parent / "cells.json"
UNDOS = ("TCPFullUndo", "TCPPartialUndo", "TCPDSACKUndo", "TCPLossUndo")


def write(path: Path, results: dict) -> None:
    """Writes the page."""
    made = dict(results["made"])
    made["modified"] = (
        " **and changes that are in no commit** (`--dirty`)" if made["modified"] else ""
    )
    made["congestion_control"] = ", ".join(made["congestion_control"])
    made["most"] = max(case.megabytes for case in CASES)
    found = results["conversations"]
    made["headers"] = headers.page(result.get("headers", {}) for result in found.values())
    made["all_ones"] = sum(result.get("tshark", {}).get("all_ones", 0) for result in found.values())
    parts = [HEAD.format(**made), *overview(found), *handshakes(found), *race(found), SEEN]
    measured = json.loads(CELLS.read_text(encoding="utf-8")) if CELLS.exists() else {}
    if "verdicts" in measured:
        parts += ["", *alone(measured)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(parts).rstrip() + "\n")


def overview(found: dict) -> list[str]:
    """The table of all conversations, with failures."""
    out = [
        "| conversation | path | opens | from us: Mbit/s | lost | again | blocks back (D)"
        " | from the kernel: Mbit/s | lost | again | blocks back (D) | passed |"
    ]
    out += ["|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|"]
    for case in CASES:
        if case.name in found:
            out.append(row(case, found[case.name]))
    out.append("")
    wrong = {name: result["wrong"] for name, result in found.items() if result["wrong"]}
    out += [f"* {name}: {'; '.join(what)}" for name, what in wrong.items()]
    return [*out, ""] if wrong else out


def row(case: Case, result: dict) -> str:
    """One conversation."""
    title = case.title if case.megabytes == 50 else f"{case.title}, {case.megabytes} MB"
    cells = [title, case.way.title, "we" if case.opens == "ours" else "the kernel"]
    if result.get("ours"):
        cells += out_cells(case, result) + back_cells(case, result)
    else:
        cells += [""] * 8
    return f"| {' | '.join([*cells, 'no' if result['wrong'] else 'yes'])} |"


def out_cells(case: Case, result: dict) -> list[str]:
    """The data we sent."""
    if not case.bytes[0]:
        return [""] * 4
    segments = result["ours"]["segments"]
    lost = losses(result["ours"]["impairments"]["outbound"])
    again = str(segments["sent"]["again_segments"])
    return [f"{goodput(case, result)[0]:.1f}", lost, again, blocks(segments["received"])]


def back_cells(case: Case, result: dict) -> list[str]:
    """The data the kernel sent."""
    if not case.bytes[1]:
        return [""] * 4
    lost = losses(result["ours"]["impairments"]["inbound"])
    again = str(result["kernel"]["info"]["total_retrans"])
    sent = result["ours"]["segments"]["sent"]
    return [f"{goodput(case, result)[1]:.1f}", lost, again, blocks(sent)]


def losses(mishap: dict) -> str:
    """Random losses, and those in the queue."""
    over = mishap["overflowed_packets"]
    return f"{mishap['lost_data_packets']}" + (f" + {over}" if over else "")


def blocks(segments: dict) -> str:
    """SACK blocks of one direction."""
    return f"{segments['sack_blocks']} ({segments['d_sacks']})" if segments["with_sack"] else ""


def goodput(case: Case, result: dict) -> tuple[float, float]:
    """Mbit/s of payload, ours and the kernel's.

    From the start of the connection to the end of the stream, as seen by the receiver.
    """
    events = dict(result["ours"]["record"]["events"])
    seconds = (events["PeerClosed"] - events["Connected"]) / 1e6
    out, back = (length * 8 / 1e6 for length in case.bytes)
    return out / result["kernel"]["seconds"], back / seconds


def handshakes(found: dict) -> list[str]:
    """The options of the SYNs, each distinct pair once."""
    pairs: dict[tuple[str, str], list[str]] = {}
    for name, result in found.items():
        if result.get("ours") and not name.startswith("race-"):
            segments = result["ours"]["segments"]
            pair = tuple(", ".join(segments[way]["syn"]) for way in ("sent", "received"))
            pairs.setdefault((pair[0], pair[1]), []).append(name)
    out = [
        "## Options of the SYNs\n",
        "| ours | the kernel's | conversations |",
        "|---|---|---:|",
    ]
    out += [f"| {ours} | {kernel} | {len(names)} |" for (ours, kernel), names in pairs.items()]
    return [*out, ""]


def race(found: dict) -> list[str]:
    """Our sender and the kernel's, each alone over the same path with the same random losses."""
    out = [BESIDE.format(first=SEEDS[0], last=SEEDS[-1])]
    out += [
        line for name, way, ours, kernel in RACES if (line := lap(found, name, way, ours, kernel))
    ]
    return [*out, ""]


def lap(found: dict, name: str, way: Way, ours: str, kernel: str) -> str | None:
    """One path and pair of controllers."""
    speeds: dict[str, list[float]] = {"ours": [], "kernel": []}
    again: dict[str, list[float]] = {"ours": [], "kernel": []}
    undone: list[float] = []
    for seed in SEEDS:
        for place, sends in enumerate(("ours", "kernel")):
            case = Case(f"race-{name}-{ours}-{seed}-{SHORT[sends]}", "", way, sends, megabytes=10)
            result = found.get(case.name, {})
            if not result.get("ours") or result["wrong"]:
                return None
            speeds[sends].append(goodput(case, result)[place])
            sent = result["ours"]["segments"]["sent"]["again_segments"]
            info = result["kernel"]["info"]["total_retrans"]
            again[sends].append(sent if sends == "ours" else info)
            if sends == "kernel":
                undone.append(sum(result["kernel"]["counters"].get(name, 0) for name in UNDOS))
    ratios = [a / b for a, b in zip(speeds["ours"], speeds["kernel"], strict=True)]
    error = statistics.stdev(ratios) / len(ratios) ** 0.5
    told = [
        f"{statistics.mean(all_of):.1f} ({min(all_of):.1f} to {max(all_of):.1f})"
        for all_of in speeds.values()
    ]
    times = [f"{statistics.mean(all_of):.0f}" for all_of in [*again.values(), undone]]
    cells = [way.title, ours, kernel, *told, f"{statistics.mean(ratios):.2f} ± {error:.2f}", *times]
    return f"| {' | '.join(cells)} |"


def alone(found: dict) -> list[str]:
    """The senders of `cells.py`."""
    rows: dict[tuple[str, str], dict[str, dict]] = {}
    for row in found["verdicts"]:
        rows.setdefault((row["network"], row["controller"]), {})[row["measure"]] = row
    differing = [row for row in found["verdicts"] if row["verdict"] == "differs"]
    explained = sum(row["cause"] is not None for row in differing)
    out = [
        ALONE.format(
            runs=len(found["kernel"]) // len(rows),
            seeds=len(next(iter(found["ours"].values()))),
            measures=len(found["verdicts"]),
            agree=len(found["verdicts"]) - len(differing),
            differ=len(differing),
            explained=explained,
        ),
        "| network | controller | goodput: ours | kernel | SRTT: ours | kernel"
        " | largest SRTT: ours | kernel | timeouts: ours | kernel |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for (network, controller), row in rows.items():
        name = f"{network}, {controller}"
        theirs = [run for key, run in found["kernel"].items() if key.startswith(f"{name}, ")]
        most = [max(run["srtt_max_s"] for run in runs) for runs in (found["ours"][name], theirs)]
        cells = [network, controller]
        for measure, unit in (("goodput_bps", 1e3), ("srtt_s", 1e-3)):
            cells += [mean(row[measure], side, unit) for side in ("ours", "kernel")]
        cells += [f"{1e3 * value:.0f}" for value in most]
        cells += [mean(row["timeouts"], side, 1) for side in ("ours", "kernel")]
        out.append(f"| {' | '.join(cells)} |")
    out += ["", "| differs | ours | kernel | setting | removes |", "|---|---:|---:|---|---:|"]
    for row in differing:
        best = row["cause"] or max(row["removes"], key=row["removes"].__getitem__)
        what, unit = {
            "goodput_bps": ("goodput", 1e3), "srtt_s": ("SRTT", 1e-3), "timeouts": ("timeouts", 1)
        }[row["measure"]]  # fmt: skip
        cells = [f"{row['network']}, {row['controller']}: {what}"]
        cells += [mean(row, side, unit) for side in ("ours", "kernel")]
        cells += [best if row["cause"] else f"open; at most {best}"]
        out.append(f"| {' | '.join(cells)} | {100 * row['removes'][best]:.0f} % |")
    return [*out, ""]


def mean(row: dict, side: str, unit: float) -> str:
    """A mean with its interval, bold where it differs."""
    value, half = (value / unit for value in row[side])
    digits = 1 if value < 100 else 0
    text = f"{value:.{digits}f} ± {half:.{digits}f}"
    return f"**{text}**" if row["verdict"] == "differs" else text
