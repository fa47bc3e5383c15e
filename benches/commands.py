"""What the user's command costs beside the engine: ``make bench-commands``.

The unit of every time is the engine's own run of W1 (100 s simulated, nothing recorded), measured
between the other runs, so that the numbers of a fast and of a slow machine can be compared. The
limits were set on a machine on which that run took :data:`REFERENCE_S` of CPU. Start-up, the cost
of a run in which nothing happens, is subtracted where a row says so.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from benches import callgrind
from benches.cost import Cost, FailedError, cost
from benches.peers import programs
from benches.peers.product import CALL

REFERENCE_S = 0.43
"""CPU time of the engine's run of W1 on the machine on which the limits were set."""
FIRST_CALL_S = 6.3
"""CPU time of the first call with its report before the work on it, in seconds of that machine:
14.6 times the engine's run of W1."""
PAIRS = 3
"""Runs of a short command; each follows a run of the engine."""
ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Row:
    """A measure with its limits.

    Attributes:
        name: the word that selects it.
        words: what is measured.
        unit: ``W1`` (times the engine's run of W1), ``instr./hop``, ``MB`` or ``ms``.
        before: the value before the work on it; None if it could not be run.
        must: the limit.
        aim: the better limit, if there is one.
        measure: measures it.
        long: takes minutes; left out by ``--quick``.
    """

    name: str
    words: str
    unit: str
    before: float | None
    must: float
    aim: float | None
    measure: Callable[[Bench], float]
    long: bool = False

    def verdict(self, reached: float) -> str:
        """Which limit a value meets."""
        if self.aim is not None and reached <= self.aim:
            return "aim met"
        return "met" if reached <= self.must else "NOT MET"


def seconds(limit: float) -> float:
    """A limit in seconds of the reference machine, as a multiple of the engine's run."""
    return limit / REFERENCE_S


@dataclass
class Bench:
    """Commands to measure, and the costs of the engine between them."""

    bench: str
    folder: Path
    engine: list[float] = field(default_factory=list)
    _start: float | None = None
    _many: Cost | None = None

    def engine_s(self) -> float:
        """CPU time of the engine's run of W1, now."""
        found: float = cost([self.bench, "w1", "--watch", "nothing"])["cpu_s"]
        self.engine.append(found)
        return found

    def scenario(self, text: str, name: str = "scenario") -> Path:
        """A file with this text."""
        file = self.folder / f"{name}.toml"
        file.write_text(text, encoding="utf-8")
        return file

    def w1(self, simulated_s: int = 100) -> Path:
        """W1 as a scenario file."""
        command = [self.bench, "w1", str(simulated_s), "--scenario"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return self.scenario(done.stdout, f"w1-{simulated_s}")

    def run(self, *words: str | Path) -> Cost:
        """The cost of ``talkspurt`` with these words; a new folder for ``--out``."""
        with tempfile.TemporaryDirectory(dir=self.folder) as out:
            return cost(programs.talkspurt(*words, "--out", Path(out) / "run"), cwd=ROOT)

    def dry(self, *words: str | Path) -> Cost:
        """The same without a folder."""
        return cost(programs.talkspurt(*words), cwd=ROOT)

    def start_s(self) -> float:
        """CPU time of a run in which nothing happens."""
        if self._start is None:
            file = self.scenario(CALL.replace('"60s"', '"50ms"'), "start")
            words = ("run", file, "--json", "--no-report")
            self._start = median(self.dry(*words)["cpu_s"] for _ in range(PAIRS))
        return self._start

    def hundred_thousand(self) -> Cost:
        """The run of 100 000 calls, once for its time and its memory."""
        if self._many is None:
            file = self.scenario(calls(100_000, "60s"))
            self._many = self.dry("run", file, "--json", "--no-report")
        return self._many

    def over_engine(self, once: Callable[[], float], *, pairs: int = PAIRS) -> float:
        """The median, over pairs, of a time as a multiple of the engine's."""
        return median(once() / self.engine_s() for _ in range(pairs))


def calls(count: int, simulated: str, *, first: str = "0s") -> str:
    """G.711 one way, shared access links and one core link with room for all of it."""
    mbps = max(1, round(count * 0.085))
    links = "\n".join(
        f'[links.{name}]\nfrom = "{start}"\nto = "{end}"\nrate = "{mbps}Mbit/s"\n'
        f'delay = "{delay}"\nqueue = {{ kind = "droptail", packets = {max(100, count)} }}\n'
        for name, start, end, delay in (
            ("near", "callers", "left", "1ms"),
            ("core", "left", "right", "20ms"),
            ("far", "right", "callees", "1ms"),
        )
    )
    return f"""\
title = "{count} calls"
duration = "{simulated}"

{links}
[flows.call]
from = "callers"
to = "callees"
count = {count}
start = "{first}"
transport = {{ kind = "udp" }}
source = {{ kind = "speech", codec = "pcmu" }}
rtcp = {{ enabled = false }}
"""


def w1_cpu(bench: Bench, *words: str, out: bool) -> float:
    """A run of W1 without start-up, over the engine's."""
    file, run = bench.w1(), bench.run if out else bench.dry
    start = bench.start_s()
    return bench.over_engine(lambda: run("run", file, *words)["cpu_s"] - start)


def instructions(bench: Bench, *watches: str) -> float:
    """Instructions per hop that probes add to W1."""
    lengths = (2, 3)

    def each(watch: str) -> float:
        more = ("--watch", watch)
        return callgrind.per_hop(bench.bench, "w1", lengths=lengths, more=more)

    nothing = each("nothing")
    return sum(each(watch) - nothing for watch in watches)


def peak_mb(bench: Bench, simulated_s: int = 100) -> float:
    """Peak memory of W1 with all tables on disk."""
    peak: float = bench.run("run", bench.w1(simulated_s), "--no-report", "--json")["peak_mb"]
    return peak


def growth_mb(bench: Bench) -> float:
    """Additional peak memory of 400 s over 100 s."""
    return peak_mb(bench, 400) - peak_mb(bench, 100)


def first_call(bench: Bench) -> float:
    """The first call with its report."""
    return bench.over_engine(lambda: bench.run("run", "scenarios/first-call.toml")["cpu_s"])


def five_thousand(bench: Bench, what: str) -> float:
    """5000 calls of 20 s."""
    file = bench.scenario(calls(5000, "20s"))
    if what == "peak_mb":
        return float(bench.dry("run", file, "--json", "--no-report")["peak_mb"])
    return bench.over_engine(lambda: bench.dry("run", file, "--json", "--no-report")[what], pairs=1)


def hundred_thousand(bench: Bench, what: str) -> float:
    """100 000 calls of 60 s, the flows table only."""
    many = bench.hundred_thousand()
    return float(many[what]) if what == "peak_mb" else float(many[what]) / bench.engine_s()


def start_of_a_call(bench: Bench) -> float:
    """Start-up of one more call of a ``count`` group, in ms of the reference machine.

    The run ends before the first frame of 20 ms is complete.
    """
    few, many = 1000, 5000

    def cpu_s(count: int) -> float:
        file = bench.scenario(calls(count, "25ms", first="10ms"))
        return float(
            min(bench.dry("run", file, "--json", "--no-report")["cpu_s"] for _ in range(PAIRS))
        )

    each_ms = 1e3 * (cpu_s(many) - cpu_s(few)) / (many - few)
    return float(each_ms / bench.engine_s() * REFERENCE_S)


def second(runs: int) -> str:
    """A study of a call of 1 s."""
    return CALL.replace('"60s"', '"1s"') + f"\n[replications]\ncount = {runs}\n"


def study(bench: Bench) -> float:
    """10 000 runs of a call of 1 s, two at a time."""
    words = ("run", bench.scenario(second(10_000)), "--no-report", "--json", "--jobs", "2")
    return bench.over_engine(lambda: bench.run(*words)["wall_s"], pairs=1)


def memory_of_a_run(bench: Bench) -> float:
    """Additional peak memory of one more run of a study of calls of 1 s, without a folder."""
    few, many = 500, 2500

    def peak(runs: int) -> float:
        file = bench.scenario(second(runs))
        return float(bench.dry("run", file, "--json", "--no-report")["peak_mb"])

    return (peak(many) - peak(few)) / (many - few)


def tenth(bench: Bench) -> float:
    """A call of 0.1 s as JSON: mostly the start of the program."""
    file = bench.scenario(CALL.replace('"60s"', '"100ms"'))
    words = ("run", file, "--json", "--no-report")
    return bench.over_engine(lambda: bench.dry(*words)["cpu_s"], pairs=3 * PAIRS)


def pairs_of_hosts(bench: Bench) -> float:
    """Peak memory of 8000 calls of 1 s, each between two hosts of its own."""
    pairs = "".join(
        f'[links.l{i}]\nfrom = "a{i}"\nto = "b{i}"\nrate = "1Mbit/s"\ndelay = "10ms"\n'
        f'queue = {{ kind = "droptail", packets = 20 }}\n'
        f'[flows.f{i}]\nfrom = "a{i}"\nto = "b{i}"\ntransport = {{ kind = "udp" }}\n'
        f'source = {{ kind = "speech", codec = "pcmu" }}\n'
        for i in range(8000)
    )
    file = bench.scenario(f'title = "Pairs"\nduration = "1s"\n{pairs}')
    return float(bench.dry("run", file, "--json", "--no-report")["peak_mb"])


def reproduce(bench: Bench) -> float:
    """The five published studies."""
    return bench.over_engine(lambda: bench.run("reproduce", "all")["cpu_s"])


ROWS = (
    Row("run", "W1 100 s, run --json --no-report: CPU", "W1", 4.7, 1.7, 1.35,
        lambda bench: w1_cpu(bench, "--json", "--no-report", out=False)),
    Row("out", "W1 100 s, --out with all tables: CPU", "W1", 6.6, 2.6, 1.8,
        lambda bench: w1_cpu(bench, "--json", "--no-report", out=True)),
    Row("report", "W1 100 s, with report: CPU", "W1", 17, 4, 2.5,
        lambda bench: w1_cpu(bench, out=True)),
    Row("series", "W1, series and gauges", "instr./hop", 834, 500, 300,
        lambda bench: instructions(bench, "series", "gauges")),
    Row("digest", "W1, digest", "instr./hop", 1022, 200, 80,
        lambda bench: instructions(bench, "digest")),
    Row("memory", "W1 100 s, --out: peak memory", "MB", 570, 120, 80, peak_mb),
    Row("growth", "W1 400 s, --out: peak memory over 100 s", "MB", None, 20, None, growth_mb),
    Row("first-call", "first call with report, warm: CPU", "W1", seconds(FIRST_CALL_S),
        seconds(0.6 * FIRST_CALL_S), seconds(0.4 * FIRST_CALL_S), first_call),
    Row("5000", "5000 calls x 20 s: CPU", "W1", seconds(34), seconds(5), seconds(3),
        lambda bench: five_thousand(bench, "cpu_s")),
    Row("5000-memory", "5000 calls x 20 s: peak memory", "MB", 1160, 250, None,
        lambda bench: five_thousand(bench, "peak_mb")),
    Row("start", "one more call of a count group: start-up", "ms", 2.2, 0.1, 0.02, start_of_a_call),
    Row("tenth", "a call of 0.1 s, --json: CPU", "W1", None, seconds(0.15), seconds(0.1), tenth),
    Row("run-memory", "one more run of 1 s of a study: memory", "MB", 0.19, 0.02, None,
        memory_of_a_run),
    Row("pairs", "8000 separate pairs of hosts: peak memory", "MB", 6200, 400, 200, pairs_of_hosts),
    Row("study", "10 000 runs of 1 s: wall time, 2 cores", "W1", seconds(240), seconds(60),
        seconds(30), study, long=True),
    Row("reproduce", "reproduce all: CPU", "W1", seconds(112), seconds(60), seconds(30), reproduce,
        long=True),
    Row("100000", "100 000 calls x 60 s: wall time", "W1", None, seconds(600), seconds(240),
        lambda bench: hundred_thousand(bench, "wall_s"), long=True),
    Row("100000-memory", "100 000 calls x 60 s: peak memory", "MB", None, 4000, None,
        lambda bench: hundred_thousand(bench, "peak_mb"), long=True),
)  # fmt: skip

PAGE = ROOT / "docs" / "command-cost.md"
START, END = "<!-- measured -->\n", "<!-- end -->\n"


def main() -> int:
    """Print a row per measure; 0 if every limit is met, else 1."""
    names = [row.name for row in ROWS]
    parser = argparse.ArgumentParser(prog="make bench-commands ARGS=…", description=__doc__)
    parser.add_argument("bench", help="the program talkspurt-bench")
    parser.add_argument("--only", nargs="+", default=names, choices=names, help="measures")
    parser.add_argument("--quick", action="store_true", help="without those that take minutes")
    parser.add_argument("--write", action="store_true", help=f"write them to docs/{PAGE.name}")
    asked = parser.parse_args()
    rows = [row for row in ROWS if row.name in asked.only and not (asked.quick and row.long)]
    reached = {}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(asked.bench, Path(folder))
        print(line("", "before", "now", "must", "aim", ""), flush=True)
        for row in rows:
            if row.unit == "instr./hop" and not callgrind.there():
                print(f"{row.words}: valgrind is not installed, not counted", file=sys.stderr)
                continue
            reached[row.name] = found = row.measure(bench)
            print(line(row.words, *numbers(row, found), row.verdict(found)), flush=True)
    if bench.engine:
        print(f"W1: CPU of the engine's run of W1, here {median(bench.engine):.2f} s (median)")
    if asked.write:
        write([row for row in rows if row.name in reached], reached)
    return 0 if all(reached.get(row.name, 0) <= row.must for row in rows) else 1


def numbers(row: Row, found: float) -> list[str]:
    """Before, now, must and aim, as text with the unit."""
    sign = " ×" if row.unit == "W1" else f" {row.unit}"

    def text(value: float | None) -> str:
        if value is None:
            return "–"
        digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
        return f"{value:,.{digits}f}{sign}"

    return [text(value) for value in (row.before, found, row.must, row.aim)]


def line(words: str, *cells: str) -> str:
    """A row for the terminal."""
    *limits, verdict = cells
    return f"{words:43}" + "".join(f"{cell:>17}" for cell in limits) + f"  {verdict}"


def write(rows: Iterable[Row], reached: dict[str, float]) -> None:
    """Replace the table of the page."""
    head = "| measure | before | now | must | aim | |\n|---|---|---|---|---|---|\n"
    table = head + "".join(
        f"| {row.words} | {' | '.join(numbers(row, reached[row.name]))} | "
        f"{row.verdict(reached[row.name])} |\n"
        for row in rows
    )
    before, rest = PAGE.read_text(encoding="utf-8").split(START)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{START}{table}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except FailedError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
