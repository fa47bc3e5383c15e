"""The tables of the page; empty without measurements."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from benches.peers.matches import BARS, MATCHES, RECORDS, Bar, Match
from benches.peers.plan import BUILT, GROWTH_FLOWS, GROWTH_S, WATCHES
from benches.peers.results import Outcome, Results


def table(head: str, rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    columns = head.split(" | ")
    lines = [f"| {head} |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def full(results: Results, workload: str) -> Outcome | None:
    """The first measured match of a workload: that of full length."""
    found = (results.outcome(match) for match in MATCHES if match.workload == workload)
    return next((outcome for outcome in found if outcome is not None), None)


def speed(outcome: Outcome, side: str) -> float:
    """Millions of hops per CPU-second, the median over runs."""
    hops: int = (outcome.here if side == "here" else outcome.there)["hops"]
    return hops / median(outcome.cpu_s(side)) / 1e6


def alone(results: Results) -> str:
    """Costs of each workload here."""
    rows = []
    for name, bar in BARS.items():
        outcome = full(results, name)
        if outcome is None:
            continue
        runs = [pair["here"] for pair in outcome.pairs]
        hops = outcome.here["hops"]
        cpu = median(outcome.cpu_s("here"))
        each = results.done.get(f"instructions {name}")
        rows.append([
            title(outcome.match, noise=True), bar.words, f"{outcome.seconds_here} s",
            f"{hops / 1e6:.2f}", f"{cpu:.3f}",
            f"{hops / cpu / 1e6:.1f}{verdict(bar, hops / cpu / 1e6)}",
            f"{each:,.0f}" if each else "–", f"{median(run['peak_mb'] for run in runs):.1f}",
            f"{1e3 * median(run['said']['set_up_s'] for run in runs):.1f}",
        ])  # fmt: skip
    return table(
        "workload | description | simulated | M hops | CPU s | M hops / CPU s | "
        "instructions per hop | peak MB | set-up, ms of CPU",
        rows,
    )


def asked(results: Results) -> str:
    """Requirements besides speed: memory, set-up and instructions; less is better."""
    rows = []
    for words, workload, what, must, aim in (
        ("instructions per hop of W1", "w1", "instructions", 800.0, 550.0),
        ("peak memory of W1, MB", "w1", "peak_mb", 10, 6),
        ("peak memory of W5-1000, MB", "w5-1000", "peak_mb", 60, 30),
        ("set-up of W5-1000, s of CPU", "w5-1000", "set_up_s", 0.1, 0.02),
    ):
        outcome, reached = full(results, workload), results.done.get(f"{what} {workload}")
        if outcome is not None and reached is None and what != "instructions":
            runs = [pair["here"] for pair in outcome.pairs]
            reached = median(run.get(what, run["said"].get(what)) for run in runs)
        if reached is None:
            continue
        met = "aim met" if reached <= aim else "met" if reached <= must else "**not met**"
        rows.append([words, f"{must:g}", f"{aim:g}", f"{reached:.4g}: {met}"])
    return table("lower is better | required | aim | measured", rows)


def verdict(bar: Bar, reached: float) -> str:
    """Whether a requirement is met."""
    if bar.must is None or bar.aim is None:
        return ""
    if reached >= bar.aim:
        return f" (aim {bar.aim:g}: met)"
    met = "met" if reached >= bar.must else "**not met**"
    return f" (required {bar.must:g}: {met}; aim {bar.aim:g})"


def called(workload: str) -> str:
    """``W3d`` for ``w3d``."""
    return workload[:1].upper() + workload[1:]


def title(match: Match, *, noise: bool = False) -> str:
    """The title of a workload on the page."""
    return called(match.workload) + (", noise" if noise and match.noise else "")


def lines(results: Results, matches: Iterable[Match]) -> str:
    """Pairs, for the terminal."""
    found = []
    for match in matches:
        outcome = results.outcome(match)
        if outcome is not None:
            came, asked = judged(outcome)
            found.append(f"{match.key:48} {came}{f', asked {asked}' if asked else ''}")
    return "\n".join(found).replace("**", "")


def judged(outcome: Outcome) -> tuple[str, str]:
    """The ratio or why it is invalid, and the requirement with its verdict."""
    wrong, ratio, must = outcome.unlike(), outcome.ratio(), outcome.match.must
    came = f"does not count: {', '.join(wrong)}" if wrong else f"**{ratio}**"
    if must is None:
        return came, ""
    met = not wrong and ratio.median >= must
    return came, f"{must:g}: " + ("met" if met else "**not met**")


def peers(results: Results) -> str:
    """Pairs."""
    rows = []
    for match in MATCHES:
        outcome = results.outcome(match)
        if outcome is None:
            continue
        cpu = [f"{median(outcome.cpu_s(side)):.3g}" for side in ("here", "there")]
        if outcome.seconds_here != match.seconds:
            cpu[0] += f" ({outcome.seconds_here} s)"
        rows.append([
            title(match), match.peer, f"{match.seconds} s", "yes" if match.noise else "no",
            *judged(outcome), *cpu, *likeness(outcome),
            "≤ " * outcome.pairs[0]["there"].get("bound", False)
            + f"{median(pair['there']['peak_mb'] for pair in outcome.pairs):.0f}",
        ])  # fmt: skip
    return table(
        "workload | compared with | simulated | noise | ratio | required | CPU s, talkspurt | "
        "other | hops, talkspurt | other | lost, talkspurt | other | peak MB, other",
        rows,
    )


def likeness(outcome: Outcome) -> list[str]:
    """The similarity of both runs."""
    here, there = outcome.here, outcome.there
    if "goodput_mbps" in there:
        mine, other = here["goodput_mbps"], there["goodput_mbps"]
        return [f"{mine:.3f} Mbit/s", f"{other:.3f} Mbit/s ({mine / other - 1:+.1%})", "–", "–"]
    off = here["hops"] / there["hops"] - 1
    return [
        f"{here['hops']:,}", f"{there['hops']:,} ({off:+.1%})",
        f"{here['loss']:.2%}", f"{there['loss']:.2%}",
    ]  # fmt: skip


def records(results: Results) -> str:
    """W4 with other output formats."""
    rows = []
    for match in RECORDS:
        outcome = results.outcome(match)
        if outcome is None:
            continue
        ratio = outcome.ratio()
        cpu = [median(outcome.cpu_s(side)) for side in ("here", "there")]
        there = outcome.pairs[0]["there"]
        written = there.get("written_bytes") or there["said"]["written_bytes"]
        met = "no slower" if ratio.median <= 1 else "**slower**"
        if there["said"]["hops"] != outcome.here["hops"]:
            met = "**another run**"
        rows.append([
            match.peer, f"{cpu[1]:.2f}", f"{cpu[0]:.2f}", f"{ratio}: {met}",
            f"{there['said']['hops'] / cpu[1] / 1e6:.2f}", f"{written / 1e6:,.0f}",
            f"{written / there['said']['hops']:.0f}",
        ])  # fmt: skip
    return table(
        "format | CPU s | CPU s of ns-2's trace | ratio | M hops / CPU s | MB on disk | "
        "bytes per hop",
        rows,
    )


def watches(results: Results) -> str:
    """Cost of each probe on W1."""
    base = {what: results.middle("while nothing", what) for what in ("cpu_s", "peak_mb")}
    least = results.done.get("instructions while nothing")
    rows = []
    for watch in WATCHES:
        costs = results.numbered(f"while {watch}")
        if not costs:
            continue
        each = results.done.get(f"instructions while {watch}")
        cpu, peak = (median(one[what] for one in costs) for what in ("cpu_s", "peak_mb"))
        said = costs[0]["said"]
        more = 1e6 * (peak - base["peak_mb"]) / said["hops"]
        written = said.get("written_bytes")
        rows.append([
            watch, f"{each:,.0f}" if each else "–",
            f"{each - least:+,.0f}" if each and least else "–",
            f"{cpu:.3f}", f"{cpu / base['cpu_s']:.2f}", f"{peak:.1f}",
            f"{more:.1f}", f"{written / said['hops']:.0f}" if written else "–",
        ])  # fmt: skip
    return table(
        "recorded | instructions per hop | additional | CPU s | ratio | peak MB | "
        "bytes per hop in memory | on disk",
        rows,
    )


def growth(results: Results) -> str:
    """Scaling with flows and with time."""
    rows = []
    for key, values, words in (
        ("flows", GROWTH_FLOWS, "{} flows, 10 s (W5)"),
        ("seconds", GROWTH_S, "50 flows, {} s (W1)"),
    ):
        for value in values:
            costs = results.numbered(f"{key} {value}")
            if not costs:
                continue
            said = costs[0]["said"]
            cpu, peak = (median(one[what] for one in costs) for what in ("cpu_s", "peak_mb"))
            rows.append([
                words.format(value), f"{said['hops'] / 1e6:.2f}", f"{cpu:.3f}",
                f"{1e9 * cpu / said['hops']:.0f}", f"{peak:.1f}",
                f"{1e3 * median(one['said']['set_up_s'] for one in costs):.1f}",
            ])  # fmt: skip
    said = "M hops | CPU s | ns per hop | peak MB | set-up, ms of CPU"
    found = table(f"run | {said}", rows)
    few, many = (each_hop(results, flows) for flows in (10, 1000))
    if few and many:
        met = "met" if many <= 4 * few else "**not met**"
        found += (
            f"\n\nA hop takes {many / few:.1f} times as much CPU time with 1000 flows as with 10 "
            f"(required: at most 4: {met}; aim 3)."
        )
    return found


def each_hop(results: Results, flows: int) -> float | None:
    """CPU seconds per hop with this many flows."""
    costs = results.numbered(f"flows {flows}")
    return median(one["cpu_s"] / one["said"]["hops"] for one in costs) if costs else None


def builds(results: Results) -> str:
    """Costs of the ``cargo build --release`` build and of the distributed one."""
    rows = []
    for name, seconds in BUILT.items():
        speeds = []
        for build in ("release", "guided"):
            costs = results.numbered(f"{build} {name}")
            if not costs:
                break
            speeds.append(median(one["said"]["hops"] / one["cpu_s"] / 1e6 for one in costs))
        if len(speeds) < 2:
            continue
        counts = (results.done.get(f"{what}instructions {name}") for what in ("release ", ""))
        rows.append([
            called(name), f"{seconds} s", *(f"{speed:.1f}" for speed in speeds),
            *(f"{count:,.0f}" if count else "–" for count in counts),
        ])  # fmt: skip
    return table(
        "workload | simulated | M hops / CPU s, release | distributed | "
        "instructions per hop, release | distributed",
        rows,
    )


def digests(results: Results) -> str:
    """The digests of the runs."""
    found = {name: value for name, value in results.done.items() if name.startswith("digest ")}
    rows = ((called(name.removeprefix("digest ")), f"`{value}`") for name, value in found.items())
    return table("workload | digest", rows)
