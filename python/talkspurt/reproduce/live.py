"""Implements ``talkspurt reproduce STUDY --live``: a study's transfers over sockets, in real time.

The network of each scenario is emulated. Both ends of its flow are endpoints on raw sockets in the
nodes' network namespaces, with the scenario's parameters. All scenarios run at the same time, each
in an emulation of its own; their rows are judged by the bands of the study.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import tomli_w

from talkspurt import _core
from talkspurt._storage import file_access, interrupts, output_folder
from talkspurt._terminal.console import console, say_line
from talkspurt._terminal.progress import Bar
from talkspurt._text.escaping import print_json, visible
from talkspurt.emulating import Emulation, account, namespaces
from talkspurt.errors import BadInputError
from talkspurt.figures.style import styled
from talkspurt.report import page
from talkspurt.reproduce import formulas, judged_live, study_file
from talkspurt.reproduce.dossier import cells, graded_tally, write_figures
from talkspurt.reproduce.figures import live_pictures
from talkspurt.reproduce.lab import WHOLE, Lab, Run
from talkspurt.reproduce.rows import Row, table
from talkspurt.reproduce.sample import Sample, Value, samples, show
from talkspurt.reproduce.study_file import scenarios
from talkspurt.results.result import Result
from talkspurt.scenarios.source import read

NAMES = ("renker2008",)
FLOW = "iperf"
SEED = 1
MARGIN_S = 3.0
"""For which a network outlasts its flow."""
STEP_S = 0.1


class Transfer:
    """A scenario under way."""

    def __init__(self, name: str, scenario: Mapping[str, Any], stack: ExitStack) -> None:
        self.name, self.seconds = name, float(str(scenario["duration"]).removesuffix("s"))
        nodes = (scenario["flows"][FLOW]["from"], scenario["flows"][FLOW]["to"])
        question = read({"title": name, **scenario}, seed=SEED)
        network = {key: value for key, value in scenario.items() if key != "flows"}
        network |= {"title": name, "duration": f"{self.seconds + MARGIN_S:g}s"}
        self.emulation = stack.enter_context(Emulation(network, nodes, seed=SEED))
        self.began_s = self.emulation.now_s
        self.ends = self.emulation.flow(question, FLOW, nodes)

    def has_ended(self) -> bool:
        """Whether both ends have."""
        return all(end.wait(0.0) for end in self.ends)

    def stop(self) -> None:
        """End both ends early."""
        for end in self.ends:
            end.cancel()


@dataclass
class Measured:
    """What came out, by name: runs as those of a simulation, and why others have no result."""

    runs: dict[str, Run] = field(default_factory=dict)
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Lateness and packets of each run."""
    broken: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LiveRow:
    """A row, whose inferred value is the measured one, with those of simulator and kernel."""

    row: Row
    simulated: Value
    kernel: Value

    def to_json(self, study: str) -> dict[str, Any]:
        """The row in ``--json`` output."""
        own = {"simulated": self.simulated, "live": self.row.inferred.value, "kernel": self.kernel}
        row = self.row.to_json(study) | own
        first, last = ("id", "quantity", "unit", "paper"), ("verdict", "reason")
        return {key: row[key] for key in (*first, *own, *last)}

    def shown(self) -> tuple[str, str, str]:
        """The values of all origins for a table."""
        return show(self.simulated), show(self.row.inferred.value), show(self.kernel)


@interrupts.undisturbed()
def run(study: str, *, out: Path | None, as_json: bool, pdf: bool, overwrite: bool) -> None:
    """Measure, print and write; a stop or a failure comes after the results."""
    if study not in NAMES:
        raise BadInputError(f"--live: measures {' or '.join(NAMES)}, not {study}")
    if os.getuid() != 0:
        raise BadInputError("--live: needs root, for raw sockets in network namespaces; use sudo")
    namespaces.act_as(namespaces.User.behind_sudo())
    ours = Path("runs") / f"reproduce-{study}-live"
    folder = out if out is not None else None if as_json else ours
    if folder is None:
        found, rows, _ = _measure(study)
        _print(study, rows, found, as_json=as_json)
    else:
        claim = output_folder.Claim("reproduction", overwrite=overwrite)
        with output_folder.Staging(folder, claim) as staging:
            found, rows, simulated = _measure(study)
            # First: what was measured for a quarter of an hour is not lost with a full disk.
            _print(study, rows, found, as_json=as_json)
            if found.runs:
                _write(study, rows, found, simulated, staging.folder, pdf=pdf)
                where = staging.commit()
        if found.runs and not as_json:
            shown = folder if not folder.is_absolute() else where
            print(visible(f"Dossier: {shown}/index.html"))
    if found.broken:
        raise BadInputError("; ".join(f"{name}: {why}" for name, why in found.broken.items()))


def _measure(study: str) -> tuple[Measured, list[LiveRow], dict[str, Run]]:
    """Measure the scenarios in real time, simulate them, and judge the rows."""
    cases = live_cases(study)
    found = measured(cases, study)
    lab = Lab()
    keep = {"gauges": formulas.kept(study)["gauges"]["gauges"], "series": _losses}
    for name in found.runs:
        lab.ask(name, cases[name], "inferred", **keep)
    simulated = {name: lab.first(name) for name in found.runs}
    live, ours = (
        samples([formulas.of_parts(study, "inferred", runs)]) for runs in (found.runs, simulated)
    )
    kernel = study_file.recorded(study, "linux")["values"]
    file = study_file.load(study)
    rows = [
        LiveRow(row, ours.get(row.spec.id, Sample()).value, kernel.get(row.spec.id))
        for row in judged_live(file, live)
    ]
    return found, rows, simulated


def _losses(table: pl.DataFrame) -> pl.DataFrame:
    return table.select("flow", "time_s", "lost_packets")


def live_cases(study: str) -> dict[str, dict[str, Any]]:
    """The scenarios of rows that can be measured in real time, by name."""
    needed = {
        name for rows in formulas.tables(study) for name in rows.names.get("inferred", {}).values()
    }
    return {one.name: one.table for one in scenarios(study) if one.name in needed}


def measured(cases: Mapping[str, Mapping[str, Any]], title: str) -> Measured:
    """Run all scenarios in real time at once."""
    found = Measured()
    with ExitStack() as stack:
        under_way: dict[str, Transfer] = {}
        for name, scenario in cases.items():
            if not interrupts.came():
                under_way[name] = Transfer(name, scenario, stack)
        longest = max((each.seconds for each in under_way.values()), default=0.0)
        began = time.monotonic()
        bar = stack.enter_context(Bar(title))
        while under_way and not interrupts.came():
            for name, transfer in list(under_way.items()):
                if transfer.has_ended() or transfer.emulation.has_ended():
                    _take(under_way.pop(name), found)
            bar.on_fraction(min(1.0, (time.monotonic() - began) / longest))
            time.sleep(STEP_S)
        for left in under_way.values():
            left.stop()
    return found


def _take(transfer: Transfer, found: Measured) -> None:
    name, emulation = transfer.name, transfer.emulation
    early = not transfer.has_ended()
    transfer.stop()
    emulation.finish()
    result = emulation.result
    real_time = result.manifest["real_time"]
    try:
        (gauges, unsent), (_, unanswered) = (end.result() for end in transfer.ends)
    except _core.RunError as error:
        found.broken[name] = str(error)
        return
    if early or (failures := account.failures(real_time)):
        found.broken[name] = "; ".join(failures) if not early else "its network ended early"
        return
    found.runs[name] = _run(transfer, result, gauges)
    found.facts[name] = {
        "duration_s": transfer.seconds,
        "unsent_packets": unsent + unanswered,
        "lateness": real_time["lateness"],
        "priority": real_time["priority"],
        "findings": account.findings(real_time),
    }


def _run(transfer: Transfer, result: Result, gauges: Sequence[tuple[float, str, float]]) -> Run:
    """As a run of the simulator: the gauges are the sender's, the rest is what the network saw."""
    tables = {name: result.table(name) for name in WHOLE}
    # The flow that sends the most: the others are messages of routers and hosts.
    flows = tables["flows"].sort("sent_packets", descending=True).head(1)
    flow = flows["name"][0]
    tables["flows"] = flows.with_columns(pl.lit(FLOW).alias("name"))
    series = result.table("series").filter(pl.col("flow") == flow)
    times = pl.col("time_s") - transfer.began_s
    tables["series"] = _losses(series.with_columns(pl.lit(FLOW).alias("flow"), times))
    tables["link_series"] = result.table("link_series")
    shape = {"time_s": pl.Float64, "gauge": pl.String, "value": pl.Float64}
    tables["gauges"] = pl.DataFrame(list(gauges), schema=shape, orient="row").with_columns(
        pl.lit(FLOW).alias("flow"), pl.lit("from").alias("side")
    )
    return Run(transfer.name, SEED, "", transfer.seconds, tables)


def _write(
    study: str,
    rows: Sequence[LiveRow],
    found: Measured,
    simulated: Mapping[str, Run],
    folder: Path,
    *,
    pdf: bool,
) -> None:
    file_access.write_text(folder / "rows.json", file_access.to_json(_document(study, rows, found)))
    cases = live_cases(study)
    for name, run in found.runs.items():
        text = tomli_w.dumps({"title": name, **cases[name]})
        file_access.write_text(folder / "scenarios" / f"{name}.toml", text)
        for kind, data in run.tables.items():
            file = folder / "tables" / name / f"{kind}.parquet"
            file.parent.mkdir(parents=True, exist_ok=True)
            file_access.write_table(file, data)
    with styled(math=True):
        drawn = write_figures(live_pictures(study, found.runs, simulated), folder, pdf=pdf)
    of = study_file.load(study)
    text = page.render(
        "live.html.j2",
        title=f"{of.name}, live: {of.title}",
        study=of,
        rows=[
            cells(row.row) | dict(zip(("simulated", "live", "kernel"), row.shown(), strict=True))
            for row in rows
        ],
        tally=graded_tally([row.row for row in rows]),
        runs=found.facts,
        notes=notes(found.facts),
        figures=drawn,
        linux=study_file.recorded(study, "linux"),
    )
    file_access.write_text(folder / "index.html", text)
    header = {"talkspurt": _core.version(), "kind": "reproduction", "study": study, "live": True}
    file_access.write_text(folder / output_folder.MANIFEST, file_access.to_json(header))


def _document(study: str, rows: Sequence[LiveRow], found: Measured) -> dict[str, Any]:
    return {
        "study": study,
        "live": True,
        "rows": [row.to_json(study) for row in rows],
        "runs": found.facts,
        "broken": found.broken,
    }


def _print(study: str, rows: Sequence[LiveRow], found: Measured, *, as_json: bool) -> None:
    if as_json:
        print_json(_document(study, rows, found))
        return
    if found.runs:
        shown = [(row.row, row.shown()) for row in rows]
        origins = {"simulated": 2, "live": 1, "kernel": 3}
        table(f"{study}, live", "index.html", shown, origins, 4).print(console())
    for words in notes(found.facts):
        say_line(words)


def notes(facts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What a reader must know about the machine, a sentence each."""
    said = []
    if facts:
        latest = max(facts, key=lambda name: facts[name]["lateness"]["p99_s"] or 0.0)
        lateness = facts[latest]["lateness"]
        said.append(
            f"Packets of {latest} were late by {lateness['p50_s'] * 1e6:.0f} µs (median) and "
            f"{lateness['p99_s'] * 1e3:.2g} ms (99 %), those of the other scenarios by less."
        )
    if any(each["priority"] != "real-time" for each in facts.values()):
        said.append("The system permitted no real-time priority.")
    said += [f"{name}: {words}." for name, each in facts.items() for words in each["findings"]]
    return said
