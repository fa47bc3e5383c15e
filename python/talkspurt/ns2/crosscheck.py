"""Runs a scenario here and in ns-2, and compares the measurements.

The trace is piped to its reader and takes no disk space; it is written to disk only on request, and
its estimated length is printed first.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import polars as pl

from talkspurt import _core, api
from talkspurt._storage import file_access
from talkspurt.analysis.means import student
from talkspurt.ns2 import script
from talkspurt.ns2.tcl import word
from talkspurt.ns2.trace import Reader
from talkspurt.results.result import Result
from talkspurt.scenarios.source import Question

FLOW_MEASURES = (
    "sent_packets", "received_packets", "lost_packets", "sent_bytes", "throughput_bps",
    "delay_min_s", "delay_mean_s", "delay_p50_s", "delay_p95_s", "delay_max_s",
)  # fmt: skip
LINK_MEASURES = ("sent_packets", "drops", "utilisation", "queue_mean_packets")
MIN_SENT = 10
"""Packets that a flow sends here, at least, where ns-2's silence is reported."""
LAST_WORDS = 2000
"""Characters of ns-2's output shown if it fails."""
SHOWN_LINES = 5
"""Lines of its other output that become notes."""
ENDED = "ECN check failed"
"""ns-2's DCCP prints this, resets the connection and continues the simulation without it."""


Values = tuple[float | None, ...]
Mean = tuple[float | None, float | None]
"""A mean over seeds, and half its interval."""


@dataclass(frozen=True)
class Row:
    """One measure of a flow or link in both simulators.

    Attributes:
        name: the flow or link.
        measure: the measure, as in the tables of flows and links.
        ours: our value under each seed.
        theirs: ns-2's; empty if it can be compared under none.
        confidence: confidence of the intervals.
    """

    name: str
    measure: str
    ours: Values
    theirs: Values
    confidence: float = 0.95

    @property
    def here(self) -> float | None:
        """Our mean over the seeds."""
        return self._mean(self.ours)[0]

    @property
    def ns2(self) -> float | None:
        """ns-2's mean over the seeds."""
        return self._mean(self.theirs)[0]

    @property
    def difference(self) -> float | None:
        """Our mean minus ns-2's, over the seeds under which both have a value."""
        return self.means[2][0]

    @property
    def relative(self) -> float | None:
        """The difference as a share of ns-2's mean."""
        if self.difference is None or not self.ns2:
            return None
        return self.difference / self.ns2

    @property
    def means(self) -> tuple[Mean, Mean, Mean]:
        """Here, in ns-2, and the difference: mean and half of Student's interval."""
        pairs = zip(self.ours, self.theirs, strict=False)
        apart = tuple(a - b for a, b in pairs if a is not None and b is not None)
        return self._mean(self.ours), self._mean(self.theirs), self._mean(apart)

    def _mean(self, values: Values) -> Mean:
        mean, half, _ = student([one for one in values if one is not None], self.confidence)
        return mean, half

    def to_json(self) -> dict[str, Any]:
        """The row in ``--json`` output."""
        found: dict[str, Any] = {"name": self.name, "measure": self.measure}
        for key, (mean, half) in zip(("here", "ns2", "difference"), self.means, strict=True):
            found |= {key: mean, f"{key}_half_width": half}
        return {**found, "relative": self.relative}


@dataclass(frozen=True)
class Crosscheck:
    """The comparison of both simulators.

    Attributes:
        title: the scenario's.
        seeds: our seeds under which both are compared.
        left_out: the other seeds, with the reason.
        notes: known differences.
        flows: the measures of flows.
        links: the measures of links.
    """

    title: str
    seeds: list[int]
    left_out: dict[int, str]
    notes: list[str]
    flows: list[Row]
    links: list[Row]

    def value(self, name: str, measure: str) -> Row:
        """A row of a flow or link."""
        return next(r for r in (*self.flows, *self.links) if (r.name, r.measure) == (name, measure))

    def to_json(self) -> dict[str, Any]:
        """The JSON document."""
        return {
            "title": self.title,
            "seeds": self.seeds,
            "left_out": [{"seed": seed, "reason": why} for seed, why in self.left_out.items()],
            "notes": self.notes,
            "flows": [row.to_json() for row in self.flows],
            "links": [row.to_json() for row in self.links],
        }


def crosscheck(
    question: Question,
    *,
    trace: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
    on_progress: api.OnProgress = lambda _: None,
) -> Crosscheck:
    """Run a scenario in both simulators, under as many seeds as it has replications.

    Args:
        question: a scenario without axes.
        trace: file for ns-2's trace, for a scenario of one run; not kept by default.
        say: called with the estimated length of a kept trace.
        on_progress: called with the progress of our runs.

    Raises:
        talkspurt.ScenarioError: with all features unsupported by ns-2.
        talkspurt.RunError: if ns-2 or disk space for its trace is missing, or if ns-2 or one of its
            DCCP connections fails under every seed.
    """
    plan = question.plan
    scripts = [script.write(question, run) for run in range(plan.replications)]
    program = shutil.which("ns")
    if program is None:
        raise _core.RunError("ns-2 is not installed: no program `ns` was found (Debian: ns2)")
    if trace is not None:
        _check_room(trace, scripts[0].trace_bytes, say)
    answer = api.answer(question, on_progress=on_progress)
    results = [answer] if isinstance(answer, Result) else list(answer.runs)
    notes = dict.fromkeys(scripts[0].notes)
    runs: list[_Run] = []
    left_out: dict[int, str] = {}
    for made, ours in zip(scripts, results, strict=True):
        run = _Run(ours, made)
        try:
            run.read(program, trace, notes)
        except _core.RunError as error:
            if len(scripts) == 1:
                raise
            left_out[ours.seed] = str(error)
            continue
        runs.append(run)
        if dead := run.dead():
            left_out[ours.seed] = "; ".join(dead)
    if not runs:
        raise _core.RunError("\n".join(dict.fromkeys(left_out.values())))
    alive = [run for run in runs if run.ours.seed not in left_out]
    for seed, why in left_out.items():
        notes[f"seed {seed} is left out: {why}" if len(scripts) > 1 else f"not compared: {why}"] = (
            None
        )
    notes |= dict.fromkeys(differing(program, scripts[0].settings))
    return Crosscheck(
        plan.title,
        [run.ours.seed for run in alive],
        left_out,
        list(notes),
        list(_rows("flows", FLOW_MEASURES, runs, alive, plan.confidence)),
        list(_rows("links", LINK_MEASURES, runs, alive, plan.confidence)),
    )


@dataclass
class _Run:
    ours: Result
    made: script.Script
    theirs: Reader = field(init=False)

    def read(self, program: str, trace: Path | None, notes: dict[str, None]) -> None:
        """Run ns-2."""
        self.theirs = Reader(self.made.ways, self.made.wires, self.made.window_s)
        said: list[str] = []
        with _traced(program, self.made.text, trace, said) as lines:
            self.theirs.read(lines)
        notes |= dict.fromkeys(said)
        if faults := self.theirs.faults():
            raise _core.RunError(
                "ns-2's DCCP failed, so its values cannot be compared; another seed may avoid it:\n"
                + "\n".join(faults)
            )

    def dead(self) -> list[str]:
        """Flows that send nothing in ns-2 in the second half of the time in which they send here.

        Their connections have ended, or repeat one packet with timeouts that have grown beyond
        what is measured: shares of such values say nothing about either simulator.
        """
        found = []
        for name, count in self.theirs.flows.items():
            bins = self.ours.series(name).filter(pl.col("sent_packets") > 0)
            times = bins["time_s"].to_list()
            if not times:
                continue
            middle = (times[0] + times[-1]) / 2
            later = int(bins.filter(pl.col("time_s") > middle)["sent_packets"].sum())
            if later < MIN_SENT or count.last_sent_s > middle:
                continue
            when = f"after {count.last_sent_s:.3g} s" if count.last_sent_s >= 0 else "at all"
            found.append(f"{name}: ns-2 sent nothing {when}; here {later} packets left in the "
                         f"second half of the flow")  # fmt: skip
        return found

    def tables(self) -> dict[str, tuple[_Values, _Values]]:
        """The measures of flows and of links by name, here and in ns-2."""
        begin, end = self.made.window_s
        flows, links = (
            {row["name"]: row for row in table.iter_rows(named=True)}
            for table in (self.ours.flows, self.ours.links)
        )
        return {
            "flows": (flows, {k: v.row(end - begin) for k, v in self.theirs.flows.items()}),
            "links": (links, {k: v.row(begin, end) for k, v in self.theirs.links.items()}),
        }


_Values = Mapping[str, Mapping[str, float | None]]


def _rows(
    table: str, measures: Sequence[str], runs: list[_Run], alive: list[_Run], confidence: float
) -> Iterator[Row]:
    """Means over the runs that can be compared; our own over all of them if none can."""
    found = [run.tables()[table] for run in alive or runs]
    for name in found[0][1]:
        for measure in measures:
            ours = tuple(here[name][measure] for here, _ in found)
            theirs = tuple(there[name][measure] for _, there in found) if alive else ()
            yield Row(name, measure, ours, theirs, confidence)


def _check_room(trace: Path, size: int, say: Callable[[str], None]) -> None:
    free = shutil.disk_usage(trace.absolute().parent).free
    words = f"{trace}: ns-2's trace may become {file_access.size(size)} long"
    if size > free:
        raise _core.RunError(f"{words}, and {file_access.size(free)} are free")
    say(words)


@contextlib.contextmanager
def _traced(
    program: str, text: str, keep: Path | None, notes: list[str]
) -> Iterator[Iterator[str]]:
    """Lines of the trace while ns-2 writes them; other output becomes notes, or an error."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="talkspurt-ns2-"))
        file, said = Path(folder) / "scenario.tcl", Path(folder) / "said"
        file.write_text(text, encoding="utf-8")
        copy = stack.enter_context(keep.open("w", encoding="ascii")) if keep else None
        out = stack.enter_context(said.open("wb"))
        reading, writing = os.pipe()
        lines = stack.enter_context(os.fdopen(reading, encoding="ascii"))
        try:
            process = stack.enter_context(subprocess.Popen(
                [program, str(file), f"/dev/fd/{writing}"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, pass_fds=(writing,), cwd=folder,
            ))  # fmt: skip
        finally:
            os.close(writing)
        stack.callback(process.kill)
        yield _copied(lines, copy)
        process.wait()
        words = said.read_text(encoding="utf-8", errors="replace").strip()
        _judge(process.returncode, words, notes)


def _judge(code: int, words: str, notes: list[str]) -> None:
    """Raise if the run was incomplete: ns-2 exits with status 0 after many failures."""
    lines = words.splitlines()
    last = words[-LAST_WORDS:]
    if code != 0:
        raise _core.RunError(f"ns-2 failed, with exit code {code}:\n{last}")
    if script.END not in lines:
        raise _core.RunError(f"ns-2 ended before the end of the run, with exit code 0:\n{last}")
    rest = [line for line in lines if line != script.END]
    if reset := [line for line in rest if ENDED in line]:
        raise _core.RunError(
            "ns-2's DCCP reset a connection because its sums of ECN nonces differ, so its values "
            "cannot be compared; ecn = false for the flow, or queues that do not mark, avoid it:\n"
            f"{reset[0]}"
        )
    notes += [f"ns-2 printed: {line}" for line in rest[:SHOWN_LINES]]
    if len(rest) > SHOWN_LINES:
        notes.append(f"ns-2 printed {len(rest) - SHOWN_LINES} more lines")


def _copied(lines: TextIO, copy: TextIO | None) -> Iterator[str]:
    for line in lines:
        if copy is not None:
            copy.write(line)
        yield line


ASK = """\
set ns [new Simulator]
foreach {class variable} {%s} {
    set agent [new Agent/$class]
    if {[catch {set value [$agent set $variable]}]} { set value "" }
    puts "$class\t$variable\t$value"
}
exit 0
"""


def differing(program: str, settings: Sequence[script.Set]) -> Iterator[str]:
    """The variables of agents that a script sets to other values than ns-2's own defaults.

    Most published scripts leave them as they are, so that their results differ from this
    comparison. The defaults are those of the installed ns-2, which is asked. Flows that have the
    same differences are named together.
    """
    asked = dict.fromkeys((agent, variable) for _, agent, variable, _ in settings)
    known = _defaults(program, list(asked))
    flows: dict[str, dict[str, None]] = {}
    for flow, agent, variable, value in settings:
        default = known.get((agent, variable), "")
        if default and _number(default) != _number(value):
            shown = _shown(default, value)
            flows.setdefault(flow, {})[f"{variable} {shown} (here {value})"] = None
    alike: dict[str, list[str]] = {}
    for flow, found in flows.items():
        alike.setdefault(", ".join(found), []).append(flow)
    for words, names in alike.items():
        yield f"{', '.join(names)}: a script with ns-2's own defaults has {words}"


def _defaults(program: str, asked: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
    if not asked:
        return {}
    pairs = " ".join(word(part) for pair in asked for part in pair)
    done = subprocess.run([program], input=ASK % pairs, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise _core.RunError(f"ns-2 does not tell its defaults:\n{done.stderr[-2000:]}")
    lines = (line.split("\t") for line in done.stdout.splitlines() if line.count("\t") == 2)
    return {(agent, variable): value for agent, variable, value in lines}


def _shown(default: str, value: str) -> str:
    """A default as the script would have it: ns-2 prints 17 digits, and truth values as numbers."""
    number = _number(default)
    if value in ("true", "false"):
        return str(bool(number)).lower()
    return f"{number:g}" if isinstance(number, float) else number


def _number(text: str) -> float | str:
    """A value for comparison: ns-2 prints some truth values as words."""
    try:
        return float({"true": "1", "false": "0"}.get(text, text))
    except ValueError:
        return text
