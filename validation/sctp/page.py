"""Tables of conversations over SCTP, from results alone."""

from __future__ import annotations

from case import Case, chunks, last


def overview(cases: list[Case], results: list[dict]) -> list[str]:
    """The table of all conversations, with failures."""
    out = ["| conversation | path | messages from us: sent, received | from them"
           " | lost on purpose | chunks sent again by us | passed |"]  # fmt: skip
    out += ["|---|---|---|---|---:|---:|---|"]
    by_name = {case.name: case for case in cases}
    out += [row(by_name[result["name"]], result) for result in results]
    out.append("")
    wrong = [result for result in results if result["wrong"]]
    out += [f"* {result['title']}: {'; '.join(result['wrong'])}" for result in wrong]
    return [*out, ""] if wrong else out


def row(case: Case, result: dict) -> str:
    """One conversation."""
    mine, its = last(result["ours"], "result"), last(result["theirs"], "result")
    if not mine or not its:
        return f"| {case.title} | {path(case)} | | | | | no |"
    tally, impairments = mine["tally"], mine["impairments"]
    lost = impairments["outbound"]["lost_packets"] + impairments["inbound"]["lost_packets"]
    cells = [
        case.title,
        path(case),
        f"{tally['sent_packets']}, {its['distinct_packets']}",
        f"{its['sent_packets']}, {tally['distinct_packets']}",
        str(lost),
        str(mine["packets"]["sent"]["again"]),
        "no" if result["wrong"] else "yes",
    ]
    return f"| {' | '.join(cells)} |"


def path(case: Case) -> str:
    """Impairments by our side in either direction."""
    parts = [f"{case.delay_ms} ms"] if case.delay_ms else []
    parts += [f"{case.loss:.0%} lost"] if case.loss else []
    parts += [f"{case.held:.0%} {case.hold_ms} ms late"] if case.held else []
    return ", ".join(parts)


def race(cases: list[Case], results: list[dict], them: str) -> list[str]:
    """The table of one-way conversations."""
    out = ["| who sends | seed | data lost on purpose | retransmissions seen | time (s) | Mbit/s"
           " | longest silence (s) |"]  # fmt: skip
    out += ["|---|---:|---:|---:|---:|---:|---:|"]
    by_name = {case.name: case for case in cases}
    for result in results:
        case = by_name[result["name"]]
        if bool(case.ours) == bool(case.theirs) or result["wrong"]:
            continue
        mine, its = last(result["ours"], "result"), last(result["theirs"], "result")
        hearer = its if case.ours else mine["tally"]
        way, lost = ("sent", "outbound") if case.ours else ("received", "inbound")
        seconds = hearer["receiving_us"] / 1e6
        cells = [
            "ours" if case.ours else them,
            str(case.seed),
            str(mine["impairments"][lost]["lost_data_packets"]),
            str(again(case, mine, way)),
            f"{seconds:.1f}",
            f"{hearer['received_bytes'] * 8 / seconds / 1e6:.2f}",
            f"{hearer['longest_silence_us'] / 1e6:.2f}",
        ]
        out.append(f"| {' | '.join(cells)} |")
    return [*out, ""]


def again(case: Case, mine: dict, way: str) -> int:
    """DATA chunks beyond the first of each TSN; for received ones, including lost ones."""
    if way == "sent":
        return mine["packets"]["sent"]["again"]
    arrived = chunks(mine, "received")["DATA"]
    return arrived + mine["impairments"]["inbound"]["lost_data_packets"] - case.theirs
