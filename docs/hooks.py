"""Pages made from the program itself, so that they cannot say anything else.

The catalogue of metrics becomes ``metrics.md``, the words of ``--help`` become
``reference/cli.md``, the clauses of RFCs that are left out become ``reference/departures.md``, and
the JSON Schema of a scenario is put beside the reference page. The figures of ``networks.md`` are
those of runs of ``scenarios/networks`` and ``scenarios/topologies``.
"""

from __future__ import annotations

import contextlib
import io
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

    from talkspurt.metrics import Computed

COMMANDS = (
    (), ("run",), ("check",), ("export",), ("crosscheck",), ("metrics",), ("schema",)
)  # fmt: skip
SCENARIOS = Path(__file__).parent.parent / "scenarios"
FIGURES = {
    "steps": "delay", "loss": "fates", "jitter": "delay", "geo": "delay", "leo": "delay",
    "dsl": "delay", "lte": "delay", "cafe": "delay",
}  # fmt: skip
"""Which figure of each network is shown."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made."""
    from talkspurt import _core

    made = {
        "metrics.md": metrics(),
        "reference/cli.md": command_line(),
        "reference/departures.md": departures(),
        "reference/scenario.schema.json": _core.schema(),
    }
    made |= dict(pictures())
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    return files


def pictures() -> Iterator[tuple[str, bytes | str]]:
    """Figures of runs and pictures of shapes."""
    import talkspurt
    from talkspurt import figures
    from talkspurt.figures.time import styles_of
    from talkspurt.report import topology

    for name, kind in FIGURES.items():
        result = talkspurt.run(SCENARIOS / "networks" / f"{name}.toml")
        yield f"images/networks/{name}.png", figures.png(result.figure(kind))
    for file in sorted((SCENARIOS / "topologies").glob("*.toml")):
        result = talkspurt.run(file)
        drawn = topology.picture(result.topology, styles_of(result))
        assert drawn is not None
        yield f"images/topologies/{file.stem}.svg", topology.file(drawn)


def metrics() -> str:
    """The page of metrics."""
    from talkspurt.format import VERDICTS
    from talkspurt.metrics.catalogue import COLUMNS, COMPUTED

    lines = [
        "# Metrics",
        "",
        "What each number in a report, a table on the terminal or a Parquet file means, how it is "
        "computed, and where the definition comes from. `talkspurt metrics RUN NAME`, or "
        "`talkspurt.metrics.compute(result, name)`, gives any of them as a table; "
        "`study.summary(names)` gives means and intervals of those that are one number of a flow.",
        "",
        "Where two have one name, that which is computed comes first, then columns of flows, of "
        "links, and gauges; `flows.received_bytes`, `links.drops` or `gauges.loss_event_rate` says "
        "which. A summary means the number of a flow.",
    ]
    tables = (("flows", "Of flows"), ("links", "Of links"), ("gauges", "Inside endpoints"))
    for table, words in tables:
        lines += ["", f"## {words}"]
        for m in (m for m in COLUMNS if m.table == table):
            unit = "" if m.unit == "1" else f" in {m.unit}"
            lines += ["", f"### {m.label}", "", f"`{m.name}`{unit}. {m.meaning}", ""]
            lines += [f"*{m.formula}*  ", f"Source: {m.source}."]
    lines += ["", "## Computed when asked for", ""]
    lines += [
        "Those marked P need a run with `record.packets = true`; bins are 1 s wide unless it says "
        "otherwise.",
    ]
    lines += computed(COMPUTED)
    lines += ["", "## What users would say", "", "ITU-T G.107 Annex B, Table B.1.", ""]
    lines += ["| R from | |", "|---:|---|"]
    lines += [f"| {v.from_r:g} | {v.words} |" for v in VERDICTS[:-1]]
    return "\n".join([*lines, f"| below 50 | {VERDICTS[-1].words} |", ""])


GROUPS = {
    "Cross-plots of the study of voice": lambda one: one.study,
    "Of packets": lambda one: one.shape in ("packets", "over_time", "losses"),
    "Of flows over time": lambda one: one.shape == "series",
    "Of links over time": lambda one: one.shape == "links",
    "Of calls over time": lambda one: one.shape == "calls",
    "Numbers of flows": lambda one: True,
}
"""What is computed, under the first heading that fits."""


def computed(metrics: tuple[Computed, ...]) -> Iterator[str]:
    """What is computed when asked for, by what it is of."""
    left = list(metrics)
    for words, fits in GROUPS.items():
        yield from ("", f"### {words}")
        here = [one for one in left if fits(one)]
        left = [one for one in left if one not in here]
        if here[0].study:
            yield from ("", f"Source: {here[0].source}.")
        for one in here:
            needs = " P." if one.needs_packets else ""
            letter = f"**{one.study}** " if one.study else ""
            along = f", `{one.y}` against `{one.x}`" if one.x else ""
            unit = f", in {one.unit}" if one.unit not in ("", "1") else ""
            width = f", bins of {one.bin_s:g} s" if one.bin_s != 1 else ""
            source = "" if one.study else f"  \nSource: {one.source}."
            head = f"{letter}`{one.name}`{along}{unit}{width}.{needs}"
            yield from ("", f"{head}  \n*{one.formula.replace('*', chr(92) + '*')}*{source}")


def departures() -> str:
    """The page of what the protocols leave out of their RFCs."""
    file = Path(__file__).parent.parent / "crates" / "proto" / "rfc-exceptions.toml"
    names = {"ccid2": "CCID 2", "ccid3": "CCID 3 and 4", "dccp-udp": "DCCP inside UDP",
             "icmp": "ICMP", "rate": "The rate of TFRC and its relatives",
             "rfc4571": "Framing in a stream"}  # fmt: skip
    lines = ["# Departures from the RFCs", ""]
    lines += ["What the protocols here leave out or do otherwise on purpose, clause by clause."]
    for protocol, clauses in tomllib.loads(file.read_text(encoding="utf-8")).items():
        lines += [
            "",
            f"## {names.get(protocol, protocol.upper())}",
            "",
            "| clause | |",
            "|---|---|",
        ]
        for clause, why in clauses.items():
            lines.append(f"| {clause} | {why} |".replace("<", "&lt;"))
    return "\n".join([*lines, ""])


def command_line() -> str:
    """The page of commands: what ``--help`` says."""
    from talkspurt.cli import app

    lines = ["# Command line"]
    for command in COMMANDS:
        words = io.StringIO()
        with contextlib.redirect_stdout(words):
            app([*command, "--help"], result_action="return_value")
        lines += ["", f"## talkspurt {' '.join(command)}".rstrip(), "", "```text"]
        lines += [words.getvalue().strip(), "```"]
    return "\n".join([*lines, ""])
