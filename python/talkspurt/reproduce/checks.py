"""Finds impossible values in a text: each check returns a sentence with the reason, or None.

A check computes from the printed value and the text's stated numbers, independent of the study.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from talkspurt.reproduce.band import StudyFileError
from talkspurt.reproduce.rows import Spec
from talkspurt.reproduce.sample import show

Facts = Mapping[str, Any]
Check = Callable[[Any, str, Facts], "str | None"]
"""Printed value, its unit, the text's statements → why it is impossible."""

SECONDS = {"s": 1.0, "ms": 1e-3}
BITS_PER_SECOND = {"bit/s": 1.0, "kb/s": 1e3, "kbit/s": 1e3, "Mb/s": 1e6}


def delay_floor(paper: float, unit: str, facts: Facts) -> str | None:
    """A one-way delay below propagation plus transmission of one packet."""
    propagation_s = float(facts["delay_s"])
    sending_s = 8 * float(facts.get("packet_bytes", 0)) / float(facts.get("rate_bps", 1e300))
    floor = (propagation_s + sending_s) / SECONDS[unit]
    if paper >= floor * (1 - 1e-9):
        return None
    takes = "propagation takes"
    if sending_s:
        takes = f"propagation and {facts['packet_bytes']} bytes at the link's rate take"
    return f"a delay of {show(paper, unit)} is shorter than the link's: {takes} {show(floor, unit)}"


def offered_ceiling(paper: float, unit: str, facts: Facts) -> str | None:
    """A throughput above the offered load."""
    offered = float(facts["offered_bps"]) / BITS_PER_SECOND[unit]
    headers = float(facts.get("header_bytes", 0)) / float(facts.get("packet_bytes", 1))
    if paper <= offered * (1 + headers):
        return None
    tail = f", even with {facts['header_bytes']} bytes of headers a packet" if headers else ""
    return (
        f"a throughput of {show(paper, unit)} is above the {show(offered, unit)} that the source "
        f"offers{tail}"
    )


def loss_and_throughput(paper: float, unit: str, facts: Facts) -> str | None:
    """A loss that, with the printed throughput, implies another offered rate than stated."""
    throughput, stated = float(facts["throughput_bps"]), float(facts["offered_bps"])
    offered = throughput / (1 - paper / 100)
    if abs(offered - stated) <= 0.02 * stated:
        return None
    return (
        f"{show(paper, unit)} lost and {throughput / 1e3:g} kb/s arrived mean "
        f"{show(offered / 1e3, 'kb/s')} offered, where {stated / 1e3:g} kb/s are stated"
    )


def leaves_room(paper: object, unit: str, facts: Facts) -> str | None:
    """A link described as full by a load below its capacity."""
    rest = float(facts["rate_bps"]) - float(facts["offered_bps"])
    if rest <= 0:
        return None
    return (
        f"{float(facts['offered_bps']) / 1e3:g} kb/s offered to a link of "
        f"{float(facts['rate_bps']) / 1e3:g} kb/s leave {rest / 1e3:g} kb/s"
    )


def link_carries(paper: float, unit: str, facts: Facts) -> str | None:
    """A load, printed as a number of on/off sources, above the link's capacity."""
    mean = float(facts["source_bps"])
    if "on_s" in facts:
        on, off = float(facts["on_s"]), float(facts["off_s"])
        mean *= on / (on + off)
    load, rate = paper * mean, float(facts["rate_bps"])
    if load <= rate:
        return None
    return (
        f"{show(paper)} sources of {mean / 1e3:.3g} kb/s on average offer {load / 1e6:.3g} Mb/s to "
        f"a link of {rate / 1e6:.3g} Mb/s, {load / rate:.2g} times what it carries"
    )


def headers_fit(paper: float, unit: str, facts: Facts) -> str | None:
    """A number of voice flows whose headers alone exceed their share of the link."""
    share = float(facts["rate_bps"]) / paper
    headers = 8 * float(facts["header_bytes"]) / float(facts["packet_s"])
    if headers <= share:
        return None
    return (
        f"{show(paper)} flows on {float(facts['rate_bps']) / 1e3:g} kb/s have {share / 1e3:.3g} "
        f"kb/s each, and the headers of a packet every {float(facts['packet_s']) * 1e3:g} ms alone "
        f"are {headers / 1e3:.3g} kb/s"
    )


def constant_delay(paper: float, unit: str, facts: Facts) -> str | None:
    """Delays described as varying whose printed mean is the minimum for a packet."""
    floor = float(facts["delay_s"]) + 8 * float(facts["packet_bytes"]) / float(facts["rate_bps"])
    mean = float(facts["mean_s"])
    if mean > floor * (1 + 1e-6):
        return None
    if mean < floor * (1 - 1e-6):
        return (
            f"{facts['also_where']} prints a mean of {show(mean * 1e3, 'ms')} for it, less than "
            f"the {show(floor * 1e3, 'ms')} of a packet of {facts['packet_bytes']} bytes: what was "
            "traced is not the voice"
        )
    return (
        f"{facts['also_where']} prints a mean of {show(floor * 1e3, 'ms')}, which is the least a "
        f"packet of {facts['packet_bytes']} bytes can take: none took longer"
    )


def full_queue(paper: float, unit: str, facts: Facts) -> str | None:
    """A round trip at queue overflow that is shorter than the queue."""
    packets, bits = float(facts["queue_packets"]), 8 * float(facts["packet_bytes"])
    held = packets * bits / float(facts["rate_bps"]) / SECONDS[unit]
    if paper >= held:
        return None
    fit = paper * SECONDS[unit] * float(facts["rate_bps"]) / bits
    return (
        f"{show(packets)} packets, {facts['also_where']}, hold {show(held, unit)} at "
        f"{float(facts['rate_bps']) / 1e6:g} Mb/s, and one is lost at a round trip of "
        f"{show(paper, unit)}, which {fit:.0f} hold"
    )


def service_time(paper: object, unit: str, facts: Facts) -> str | None:
    """A service time per packet at which the link would carry more than the text measures."""
    implied = 8 * float(facts["packet_bytes"]) / float(facts["service_s"])
    measured = float(facts["rate_bps"])
    if implied <= 1.1 * measured:
        return None
    return (
        f"{facts['packet_bytes']} bytes in {float(facts['service_s']) * 1e3:g} ms are "
        f"{implied / 1e6:.3g} Mb/s, where the same text measures {measured / 1e6:g}"
    )


def same_as_stated(paper: float | str, unit: str, facts: Facts) -> str | None:
    """A number or word that the text states differently elsewhere."""
    stated = facts["also_stated"]
    if paper == stated:
        return None
    return f"{facts['also_where']} says {show(stated, unit)}, {facts['here']} {show(paper, unit)}"


def extreme_of_table(paper: str, unit: str, facts: Facts) -> str | None:
    """A claimed extreme that a printed table contradicts.

    The table's cells are the rows of the study's file with ids starting with ``cells``.
    """
    cells = {
        id.rpartition("/")[2]: value
        for id, value in facts["printed"].items()
        if id.startswith(facts["cells"] + "/")
    }
    best = (max if facts["extreme"] == "highest" else min)(cells, key=lambda name: cells[name])
    if paper.lower() == best:
        return None
    return (
        f"{facts['also_where']} prints {show(cells[paper.lower()], facts['in'])} for {paper}, "
        f"{facts['here']} calls it the {facts['extreme']}, and {best.upper()} has "
        f"{show(cells[best], facts['in'])}"
    )


def less_lost(paper: str, unit: str, facts: Facts) -> str | None:
    """A least loss that printed numbers of packets sent and received contradict."""

    def lost(name: str) -> tuple[float, str]:
        sent, received = (
            float(facts["printed"][f"{facts['cells']}/{which}-packets/{name}"])
            for which in ("sent", "received")
        )
        return 1 - received / sent, f"{show(received)} of {show(sent)} received"

    mine, said = lost(facts["name"])
    for other in facts["others"]:
        theirs, there = lost(other)
        if theirs < mine:
            return (
                f"{facts['also_where']} prints {said} for {facts['name'].upper()} and {there} for "
                f"{other.upper()}, {facts['here']} the opposite"
            )
    return None


def order_of_table(paper: str, unit: str, facts: Facts) -> str | None:
    """A claimed order that a printed table contradicts."""
    for more in facts["more"]:
        for less in facts["less"]:
            high, low = (float(facts["printed"][f"{facts['cells']}/{n}"]) for n in (more, less))
            if high < low:
                return (
                    f"{facts['also_where']} prints {show(high, facts['in'])} for {more.upper()} "
                    f"and {show(low, facts['in'])} for {less.upper()}, {facts['here']} the opposite"
                )
    return None


def range_stated(paper: float, unit: str, facts: Facts) -> str | None:
    """A number outside the range stated in the text."""
    least, most = float(facts["least"]), float(facts["most"])
    if least <= paper <= most:
        return None
    return (
        f"{facts['also_where']} says {show(least)} to {show(most, unit)}, {facts['here']} "
        f"{show(paper, unit)}"
    )


def codec_standard(paper: float, unit: str, facts: Facts) -> str | None:
    """A codec rate that differs from the codec's standard."""
    standard = float(facts["standard"])
    if abs(paper - standard) <= 0.02 * standard:
        return None
    return (
        f"{facts['codec']} has {show(standard, unit)} ({facts['source']}), not {show(paper, unit)}"
    )


CHECKS: dict[str, Check] = {
    "constant_delay": constant_delay,
    "delay_floor": delay_floor,
    "offered_ceiling": offered_ceiling,
    "leaves_room": leaves_room,
    "link_carries": link_carries,
    "loss_and_throughput": loss_and_throughput,
    "headers_fit": headers_fit,
    "full_queue": full_queue,
    "service_time": service_time,
    "extreme_of_table": extreme_of_table,
    "less_lost": less_lost,
    "order_of_table": order_of_table,
    "range_stated": range_stated,
    "same_as_stated": same_as_stated,
    "codec_standard": codec_standard,
}
"""All checks by their names in study files."""


def findings(specs: Iterable[Spec], stated: Facts) -> dict[str, list[str]]:
    """The findings of the checks of rows, by their ids."""
    return {spec.id: impossible(spec, stated) for spec in specs}


def impossible(spec: Spec, stated: Facts) -> list[str]:
    """The findings of a row's checks; its own facts take precedence over the study's."""
    found = []
    for name in spec.checks:
        if name not in CHECKS:
            raise StudyFileError(f"{spec.id}: no check {name!r}; there are {', '.join(CHECKS)}")
        try:
            sentence = CHECKS[name](spec.paper, spec.unit, {**stated, **spec.facts})
        except KeyError as error:
            raise StudyFileError(f"{spec.id}: check {name!r} wants {error}") from None
        except TypeError:
            raise StudyFileError(
                f"{spec.id}: check {name!r} wants a number, not {spec.paper!r}"
            ) from None
        if sentence:
            found.append(sentence)
    return found
