"""Fills docs/validation/apps.md from the files of results beside this alone.

.venv/bin/python validation/apps/page.py [FILE]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import hearing
import iperf3
import irtt
import numpy as np
from networks import LATENESS_P99_S, SECONDS, SEEDS, TITLES

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))
from tables import fill, table  # noqa: E402

PAGE = HERE.parents[1] / "docs" / "validation" / "apps.md"
BUFFERS = {
    "neteq": "NetEq",
    "same": "ours, same packets",
    "fec": "the same, FEC in every packet",
    "quantile": "and quantile 0.95",
}
PERIODS = ((1, 10), (11, 20), (21, 32))
"""Seconds of a call over which estimates are averaged."""
Rows = dict[str, dict[str, Any]]


def write(page: Path) -> None:
    """Write the page from all results there are."""
    found = {
        name: in_order(json.loads((HERE / f"{name}.json").read_text()))
        for name in TABLES
        if (HERE / f"{name}.json").exists()
    }
    every = [row for rows in found.values() for row in rows.values()]
    made = [row["made"] for row in every]
    if wrong := untrue(found):
        raise SystemExit(f"the page says what the results do not: {'; '.join(wrong)}")
    commits = dict.fromkeys(f"`{it['commit'][:10]}`{it['modified']}" for it in made)
    loads = [it["load"] for it in made]
    versions = {
        "made": ends([it["date"] for it in made]),
        "commits of talkspurt": ", ".join(commits),
        "kernel": ", ".join(dict.fromkeys(it["host_kernel"] for it in made)),
        "programs": ", ".join(dict.fromkeys(it.get("program", "?") for it in made)),
        "processors": "2, with other work at the same time: load "
        f"{min(loads):.0f} to {max(loads):.0f}",
    }
    parts = {
        "networks": table(["network", ""], TITLES.items()),
        "seconds": SECONDS,
        "seeds": len(SEEDS),
        "few_seeds": len(hearing.SEEDS),
        "late": f"{LATENESS_P99_S * 1e3:.0f}",
        "worst": ms(max(row["late"]["p99_s"] for row in every)),
        "made": table(["", ""], versions.items()),
    }
    for name, tables in TABLES.items():
        parts |= {key: of(found.get(name, {})) for key, of in tables.items()}
    fill(PAGE, parts, page)


def in_order(rows: Rows) -> Rows:
    """The rows in the order of networks; otherwise as they were measured."""
    order = list(TITLES)
    return dict(sorted(rows.items(), key=lambda item: order.index(item[1]["network"])))


def ends(values: list[str]) -> str:
    """The first and the last of values in order."""
    there = sorted(values)
    return there[0] if there[0] == there[-1] else f"{there[0]} to {there[-1]}"


def ms(value: float) -> str:
    """A time in milliseconds."""
    return f"{value * 1e3:.2f} ms" if value < 0.001 else f"{value * 1e3:.1f} ms"


percent, number, whole = "{:.2%}".format, "{:.1f}".format, "{:.0f}".format
"""A share; a count or mean; and one to the nearest."""


def scaled(factor: float, digits: int) -> Callable[[float], str]:
    """A value in another unit."""
    return lambda value: f"{value * factor:.{digits}f}"


mbit, whole_ms, number_ms = scaled(1e-6, 2), scaled(1e3, 0), scaled(1e3, 1)


def score(value: float | None) -> str:
    """A score."""
    return "–" if value is None else f"{value:.2f}"


def spread(ours: list[float] | None, text: Callable[[Any], str]) -> str:
    """The least and the greatest of our seeds."""
    if ours is None:
        return "–"
    least, greatest = text(ours[0]), text(ours[2])
    return least if least == greatest else f"{least} – {greatest}"


def verdict(agrees: bool) -> str:
    """Within the band or not."""
    return "yes" if agrees else "**no**"


def tabled(heads: str) -> Callable[[Callable[[Rows], Iterable[list[str]]]], Callable[[Rows], str]]:
    """Makes a table of lines of cells."""
    return lambda lines: lambda rows: table(heads, lines(rows))


@tabled("network |  | irtt | counted in the network | ours | in the band")
def irtts(rows: Rows) -> Iterator[list[str]]:
    """Delays and losses."""
    for name, row in rows.items():
        for key, title in irtt.ROWS.items():
            ours, value = row["ours"][key], row["program"][key]
            text = percent if key.endswith("loss") else ms
            if key.endswith("loss") and not value and not ours[2]:
                continue
            agrees = verdict(irtt.agrees(key, value, ours))
            network = text(row["network_counted"][key])
            yield [name, title, text(value), network, spread(ours, text), agrees]


def flows(rows: Rows, names: tuple[str, ...], causes: tuple[str, ...]) -> Iterator[list[str]]:
    """Rate, queue and round trip of a program and ours, and of ours with the cause, where named."""
    texts = {"goodput_bps": mbit, "queue_packets": number, "rtt_s": whole_ms}
    for row in rows.values():
        cells = [row[name] for name in names]
        for key, text in texts.items():
            value, ours = row["program"][key], row["ours"][key]
            marked = text(value) if iperf3.agrees(key, value, ours) else f"**{text(value)}**"
            cells += [marked, spread(ours, text)]
            if key in causes:
                cells.append(spread(row["cause"][key], text))
        cells.append(whole(row["program"]["lost_packets"]))
        yield cells + [spread(row[it]["lost_packets"], whole) for it in ("ours", "cause")]


@tabled(
    "network | controller | goodput, Mbit/s: kernel | ours | queue, packets: kernel | ours"
    " | cause | round trip, ms: kernel | ours | lost packets: kernel | ours | cause"
)
def transfers(rows: Rows) -> Iterator[list[str]]:
    """Goodput, queue and round trip; bold is outside of the band."""
    return flows(rows, ("network", "controller"), ("queue_packets",))


def each(titles: str, words: str) -> str:
    """Heads of columns for each of some quantities."""
    return " | ".join(f"{title}: {words}" for title in titles.split(" | "))


@tabled(
    "network | "
    + each("Mbit/s | queue, packets | round trip, ms | lost packets", "usrsctp | ours | cause")
)
def associations(rows: Rows) -> Iterator[list[str]]:
    """Rate, queue and round trip of usrsctp and ours; bold is outside of the band."""
    return flows(rows, ("network",), ("goodput_bps", "queue_packets", "rtt_s"))


@tabled(
    "network | controller | "
    + each(
        "Mbit/s | round trip, ms | sent again | lost in the network", "iperf3 | ours | difference"
    )
)
def measurements(rows: Rows) -> Iterator[list[str]]:
    """What `measure` and iperf3 say of the kernel's TCP, and their differences."""
    texts = {"rate_bps": mbit, "srtt_s": number_ms, "retransmitted": whole, "lost_packets": whole}
    for row in rows.values():
        cells = [row["network"], row["controller"]]
        for key, text in texts.items():
            means = (np.mean([it[key] for it in row[who]]) for who in ("iperf3", "measure"))
            low, _, high = row["difference"][key]
            cells += [*(text(float(it)) for it in means), f"{text(low)} to {text(high)}"]
        yield cells


def smoothed(rows: Rows) -> str:
    """What the senders believe of the round trip on lte."""
    row = rows.get("lte reno")
    if row is None:
        return "–"
    kernel, ours = row["program"], row["ours"]
    return (
        f"Reno's mean estimate on *lte* was {kernel['srtt_s']:.2f} s in the kernel and "
        f"{ours['srtt_s'][1]:.2f} s in ours, where packets took {kernel['rtt_s']:.2f} s and "
        f"{ours['rtt_s'][1]:.2f} s."
    )


def heard(program: dict[str, Any], ours: dict[str, Any]) -> Iterator[str]:
    """Loss and PESQ of a program and of ours, each with its verdict."""
    yield from (percent(program["lost"]), spread(ours["lost"], percent))
    yield verdict(hearing.agrees("lost", program["lost"], ours["lost"]))
    pesq = program["pesq_nb"] if program["pesq_nb"] is not None else program["pesq_wb"]
    yield from (score(pesq), spread(ours["pesq"], score))
    yield verdict(hearing.agrees("pesq", pesq, ours["pesq"]))


@tabled(
    "network | codec | lost: baresip | ours | in the band | PESQ: baresip | ours, fixed"
    " | in the band | ours, adaptive | baresip's ViSQOL, PLCMOS"
)
def calls(rows: Rows) -> Iterator[list[str]]:
    """Loss and scores of calls."""
    for row in rows.values():
        program, ours = row["program"], row["ours"]
        others = f"{score(program['visqol'])}, {score(program['plcmos'])}"
        last = spread(ours["adaptive"]["pesq"], score)
        yield [row["network"], row["codec"], *heard(program, ours["fixed"]), last, others]


@tabled("network | lost: FFmpeg | ours | in the band | PESQ: FFmpeg | ours | in the band")
def streams(rows: Rows) -> Iterator[list[str]]:
    """The same of streams."""
    for row in rows.values():
        yield [row["network"], *heard(row["program"], row["ours"])]


@tabled(
    "network | buffer | delay | target | lost | concealed | faster | slower"
    " | PESQ | ViSQOL | PLCMOS"
)
def buffers(rows: Rows) -> Iterator[list[str]]:
    """NetEq and ours."""
    for row in rows.values():
        if "neteq" not in row:
            continue
        for key, title in BUFFERS.items():
            if key not in row:
                continue
            it, scores = row[key], row["scores"][key]
            yield [
                row["network"], title, ms(it["delay_s"]), ms(it["target_s"]),
                *(percent(it[key]) for key in ("lost", "concealed", "faster", "slower")),
                *(score(scores[key]) for key in ("pesq_wb", "visqol", "plcmos")),
            ]  # fmt: skip
        it = row["own"]
        yield [
            row["network"], "ours, own call",
            *(spread(it[key], ms) for key in ("delay_s", "target_s")),
            *(spread(it[key], percent) for key in ("lost", "concealed", "faster", "slower")),
            "", "", "",
        ]  # fmt: skip


SPANS = " | ".join(f"{first} to {last} s" for first, last in PERIODS)


@tabled(f"network | {SPANS} | video lost | NetEq's delay | concealed")
def estimates(rows: Rows) -> Iterator[list[str]]:
    """Bandwidth estimates beside what the link had."""
    for row in rows.values():
        if "estimate" not in row:
            continue
        link = np.array(row["capacity_bps"])
        seconds = np.array([it[0] for it in row["estimate"]])
        values = np.array([it[1] for it in row["estimate"]])
        parts = []
        for first, last in PERIODS:
            inside = (seconds >= first) & (seconds <= last)
            had = mbit(link[first - 1 : last].mean())
            parts.append(f"{mbit(values[inside].mean())} of {had}" if inside.any() else "–")
        lost = row["video"]["packetsLost"]
        share = lost / (lost + row["video"]["packetsReceived"])
        voice = row["voice"]
        yield [
            row["network"], *parts, percent(share), ms(voice["delay_s"]),
            percent(voice["concealed"]),
        ]  # fmt: skip


def fall_s(rows: list[list[float | None]]) -> int:
    """Seconds from the greatest delay to the first that is at most 0.35 of it; 99 if none is."""
    delays = [row[1] or 0.0 for row in rows]
    top = int(np.argmax(delays))
    after = (at - top for at in range(top, len(delays)) if delays[at] <= 0.35 * delays[top])
    return next(after, 99)


def price(row: dict[str, Any]) -> float:
    """What NetEq's longer delay costs, over what its smaller concealment gains."""
    one, other = row["neteq"], row["same"]
    cost = 0.05 * 1e3 * (one["delay_s"] - other["delay_s"])
    return cost / (4 * 1e2 * (other["concealed"] - one["concealed"]))


def untrue(found: dict[str, Rows]) -> list[str]:
    """Sentences of the page that the results do not support."""
    said: list[tuple[str, bool]] = []
    if rows := found.get("irtt"):
        said += [
            ("where irtt is outside, the network's count is inside", all(
                irtt.agrees(key, row["network_counted"][key], row["ours"][key])
                for row in rows.values() for key in irtt.ROWS if not key.endswith("loss")
            )),
        ]  # fmt: skip
    if rows := found.get("iperf3"):
        reno, bbr = rows["clean reno"], rows["clean bbr"]
        lost, queue = reno["program"]["lost_packets"], bbr["program"]["queue_packets"]
        said += [
            ("Reno loses twice as many", 1.5 < lost / reno["ours"]["lost_packets"][1] < 2.5),
            ("ours doubles, too", 0.75 < lost / reno["cause"]["lost_packets"][1] < 1.25),
            ("BBR's queue is longer", queue > 1.5 * bbr["ours"]["queue_packets"][2]),
            ("our queue grows, too", bbr["cause"]["queue_packets"][1] > 0.6 * queue),
            ("the kernel is faster on geo", all(
                rows[f"geo {it}"]["program"]["goodput_bps"]
                > rows[f"geo {it}"]["ours"]["goodput_bps"][2] for it in ("reno", "cubic")
            )),
        ]  # fmt: skip
    if rows := found.get("usrsctp"):
        said += [
            ("every packet is intact, and every message comes once and in order", all(
                row["program"]["captured_packets"] == row["program"]["intact_packets"]
                and row["program"]["wrong_messages"] == 0 for row in rows.values()
            )),
            ("with the cause, queue and round trip are in the band", all(
                iperf3.agrees(key, row["program"][key], row["cause"][key])
                for row in rows.values() for key in ("queue_packets", "rtt_s")
            )),
        ]  # fmt: skip
    if rows := found.get("measured"):

        def difference(case: str) -> list[float]:
            return rows[case]["difference"]["rate_bps"]

        def share(case: str) -> float:
            theirs = np.mean([it["rate_bps"] for it in rows[case]["iperf3"]])
            return float(difference(case)[1] / theirs)

        cubic = rows["bufferbloat cubic"]["iperf3"]
        said += [
            ("what ours says was sent again is what the network lost", all(
                abs(it["retransmitted"] - it["lost_packets"]) <= 1
                for row in rows.values() for it in row["measure"]
            )),
            ("no difference of Reno is shown with random loss", (
                difference("loss reno")[0] < 0 < difference("loss reno")[2]
            )),
            ("Reno agrees without", abs(share("bufferbloat reno")) < 1e-3),
            ("BBR has up to a percent less", all(
                difference(f"{it} bbr")[2] < 0 and share(f"{it} bbr") > -0.012
                for it in ("loss", "bufferbloat")
            )),
            ("CUBIC has two percent more on bufferbloat, where holes stay in four runs of iperf3", (
                0.015 < share("bufferbloat cubic") < 0.025
                and sum(it["lost_packets"] - it["retransmitted"] > 35 for it in cubic) == 4
            )),
        ]  # fmt: skip
    if rows := found.get("chromium"):
        voices = {row["network"]: row for row in rows.values() if "neteq" in row}
        varying = [voices[name] for name in ("bufferbloat", "wifi", "lte") if name in voices]
        loss, bloat = voices["loss"], voices["bufferbloat"]
        said += [
            ("NetEq buffers more and conceals less", all(
                1.4 < row["neteq"]["delay_s"] / row["same"]["delay_s"] < 4.5
                and row["neteq"]["concealed"] < row["same"]["concealed"] for row in varying
            )),
            (
                "on loss, ours conceals more mostly because FEC is missing",
                loss["neteq"]["concealed"] < loss["same"]["concealed"]
                and loss["fec"]["concealed"]
                < (loss["neteq"]["concealed"] + loss["same"]["concealed"]) / 2,
            ),
            (
                "with 0.95, ours conceals about as little, and its delay is less than half",
                bloat["quantile"]["concealed"] < 1.2 * bloat["neteq"]["concealed"]
                and 2 * bloat["quantile"]["delay_s"] < bloat["neteq"]["delay_s"],
            ),
            (
                "NetEq pays more than it gains on bufferbloat and lte",
                all(price(voices[it]) > 1.5 for it in ("bufferbloat", "lte") if it in voices),
            ),
            ("and about as much on wifi", 0.6 < price(voices["wifi"]) < 1.6),
            (
                "with 0.95, ours is close to NetEq on lte",
                all(
                    abs(row["quantile"]["delay_s"] / row["neteq"]["delay_s"] - 1) < 0.15
                    and abs(row["quantile"]["concealed"] - row["neteq"]["concealed"]) < 0.002
                    for row in varying
                    if row["network"] == "lte" and "quantile" in row
                ),
            ),
            (
                "its delay takes ten seconds from its maximum to a third",
                fall_s(bloat["neteq_over_time"]) >= 9 > 4 > fall_s(bloat["same_over_time"]),
            ),
        ]  # fmt: skip
    return [sentence for sentence, holds in said if not holds]


TABLES: dict[str, dict[str, Callable[[Rows], str]]] = {
    "irtt": {"irtt": irtts},
    "iperf3": {"iperf3": transfers, "smoothed": smoothed},
    "measured": {"measured": measurements},
    "usrsctp": {"usrsctp": associations},
    "baresip": {"baresip": calls},
    "ffmpeg": {"ffmpeg": streams},
    "chromium": {"buffers": buffers, "estimates": estimates},
}


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE)
