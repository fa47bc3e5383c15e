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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from talkspurt import _core, api
from talkspurt.ns2 import script
from talkspurt.ns2.trace import Reader
from talkspurt.result import Result
from talkspurt.scenario import Question

FLOW_MEASURES = (
    "sent_packets", "received_packets", "lost_packets", "sent_bytes", "throughput_bps",
    "delay_min_s", "delay_mean_s", "delay_p50_s", "delay_p95_s", "delay_max_s",
)  # fmt: skip
LINK_MEASURES = ("sent_packets", "drops", "utilisation", "queue_mean_packets")
LAST_WORDS = 2000
"""Characters of ns-2's output shown if it fails."""
SHOWN_LINES = 5
"""Lines of its other output that become notes."""
ENDED = "ECN check failed"
"""ns-2's DCCP prints this, resets the connection and continues the simulation without it."""


@dataclass(frozen=True)
class Row:
    """One measure of a flow or link in both simulators."""

    name: str
    measure: str
    here: float | None
    ns2: float | None

    @property
    def difference(self) -> float | None:
        """Our value minus ns-2's."""
        return None if self.here is None or self.ns2 is None else self.here - self.ns2

    @property
    def relative(self) -> float | None:
        """The difference as a share of ns-2's value."""
        if self.difference is None or not self.ns2:
            return None
        return self.difference / self.ns2

    def to_json(self) -> dict[str, Any]:
        """The row in ``--json`` output."""
        return {
            "name": self.name,
            "measure": self.measure,
            "here": self.here,
            "ns2": self.ns2,
            "difference": self.difference,
            "relative": self.relative,
        }


@dataclass(frozen=True)
class Crosscheck:
    """The comparison of both simulators."""

    title: str
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
    """Run a scenario in both simulators.

    Args:
        question: one run.
        trace: file for ns-2's trace; not kept by default.
        say: called with the estimated length of a kept trace.
        on_progress: called with the progress of our run.

    Raises:
        talkspurt.ScenarioError: with all features unsupported by ns-2.
        talkspurt.RunError: if ns-2 or disk space for its trace is missing, or if ns-2 or one of its
            DCCP connections fails.
    """
    made = script.write(question)
    program = shutil.which("ns")
    if program is None:
        raise _core.RunError("ns-2 is not installed: no program `ns` was found (Debian: ns2)")
    if trace is not None:
        _check_room(trace, made.trace_bytes, say)
    ours = api.answer(question, on_progress=on_progress)
    assert isinstance(ours, Result)
    reader = Reader(made.ways, made.wires, made.window_s)
    notes = list(made.notes)
    with _traced(program, made.text, trace, notes) as lines:
        reader.read(lines)
    if faults := reader.faults():
        raise _core.RunError(
            "ns-2's DCCP failed, so its values cannot be compared; another seed may avoid it:\n"
            + "\n".join(faults)
        )
    begin, end = made.window_s
    flows, links = ({row["name"]: row for row in t.to_dicts()} for t in (ours.flows, ours.links))
    notes += [
        f"{name}: ns-2 sent no data in the time that is measured"
        for name, count in reader.flows.items()
        if flows[name]["sent_packets"] and not count.sent_packets
    ]
    return Crosscheck(
        question.plan.title,
        notes,
        [
            Row(name, measure, flows[name][measure], count.row(end - begin)[measure])
            for name, count in reader.flows.items()
            for measure in FLOW_MEASURES
        ],
        [
            Row(name, measure, links[name][measure], theirs[measure])
            for name, count in reader.links.items()
            for theirs in [count.row(begin, end)]
            for measure in LINK_MEASURES
        ],
    )


def _check_room(trace: Path, size: int, say: Callable[[str], None]) -> None:
    free = shutil.disk_usage(trace.absolute().parent).free
    words = f"{trace}: ns-2's trace may become {script.size_text(size)} long"
    if size > free:
        raise _core.RunError(f"{words}, and {script.size_text(free)} are free")
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
            process = subprocess.Popen(
                [program, str(file), f"/dev/fd/{writing}"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, pass_fds=(writing,), cwd=folder,
            )  # fmt: skip
        finally:
            os.close(writing)
        stack.callback(_end, process)
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


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
