"""Pages made from the program itself, so that they cannot say anything else.

The catalogue of metrics becomes ``metrics.md``, the words of ``--help`` become
``reference/cli.md``, the data dictionary becomes ``reference/tables.md``, and the clauses of RFCs
that are left out become ``reference/departures.md``. The JSON Schema of a scenario is put beside
the reference of scenarios, where each table of keys gets an example. The figures of
``networks.md`` are those of runs of ``scenarios/networks`` and ``scenarios/topologies``. The lists
of pages in ``README.md`` and ``index.md`` come from the navigation in ``mkdocs.yml``. Each notebook
becomes a page.
"""

from __future__ import annotations

import io
import json
import re
import tomllib
from base64 import b64decode
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import examples
from mkdocs.structure.files import File

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

    from talkspurt.metrics import Computed, dictionary

SCENARIOS = Path(__file__).parent.parent / "scenarios"
FIGURES = {
    "steps": "delay", "loss": "fates", "jitter": "delay", "geo": "delay", "leo": "delay",
    "dsl": "delay", "lte": "delay", "cafe": "delay",
}  # fmt: skip
"""Which figure of each network is shown."""
NOTEBOOKS = sorted((Path(__file__).parent / "notebooks").glob("*.ipynb"))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the schema and the pictures; the made pages are files, written by ``make pages``."""
    from talkspurt import _core

    made = {"reference/scenario.schema.json": _core.schema(), **dict(pictures())}
    for path, content in made.items():
        if known := files.get_file_from_path(path):
            files.remove(known)
        files.append(File.generated(config, path, content=content))
    return files


def pages() -> dict[str, str]:
    """The made pages by path. They are in the repository, so that its links lead somewhere."""
    return {
        "../README.md": with_list("../README.md"),
        "index.md": with_list("index.md"),
        "metrics.md": metrics(),
        "reference/cli.md": command_line(),
        "reference/departures.md": departures(),
        "reference/tables.md": tables(),
        "gallery.md": thumbnails(),
        **{f"notebooks/{file.stem}.md": notebook(file) for file in NOTEBOOKS},
    }


def thumbnails() -> str:
    """The gallery's page as the repository has it: with thumbnails, and without sounds."""
    import gallery

    with TemporaryDirectory() as temporary:
        return gallery.overview(Path(temporary))


def notebook(file: Path) -> str:
    """A notebook as a page; its pictures are those of :func:`pictures`."""
    title, *parts = [f"{words}\n" for words, _ in cells(file)]
    title = title.replace("\n\n", f"\n\nFrom the notebook [{file.name}]({file.name}).\n\n", 1)
    return "\n".join([title, *parts])


def cells(file: Path) -> Iterator[tuple[str, dict[str, bytes]]]:
    """The Markdown of each cell of a notebook, and its pictures by their path."""
    found = json.loads(file.read_text(encoding="utf-8"))["cells"]
    for number, cell in enumerate(found):
        words = "".join(cell["source"])
        lines, images = [words], {}
        if cell["cell_type"] == "code":
            lines = ["```python", words, "```"]
            for output in cell["outputs"]:
                data = output.get("data", {})
                if "image/png" in data:
                    name = f"{file.stem}-{number}.png"
                    images[f"images/notebooks/{name}"] = b64decode(data["image/png"])
                    lines += ["", f"![What the code draws](../images/notebooks/{name})"]
                else:
                    text = "".join(output.get("text", data.get("text/plain", "")))
                    lines += ["", "```text", text.rstrip(), "```"]
        yield "\n".join(lines), images


def with_list(page: str) -> str:
    """A page with the list of all pages between its marks; ``index.md`` also describes them.

    Pages of the third level are listed by one of the second.
    """
    docs = Path(__file__).parent
    text = (docs.parent / "mkdocs.yml").read_text(encoding="utf-8")
    nav = text.partition("\nnav:\n")[2].partition("\nextra_css:")[0]
    parts: list[list[str]] = []
    for entry in re.finditer(
        r"^( {2}| {6})- ([^:]+):(?: (\S+\.md))?(?: # (.+))?$", nav, re.MULTILINE
    ):
        indent, title, path, words = entry.groups()
        link = f"[{title}]({'' if page == 'index.md' else 'docs/'}{path})"
        link += f" ({words})" if words and page == "index.md" else ""
        if len(indent) > 2:
            parts[-1] += [link] if path else []
        elif path != "index.md":
            parts.append([link] if path else [f"**{title}**: "])
    begin, end = "<!-- pages: written by `make pages` -->", "<!-- end of pages -->"
    before, _, rest = (docs / page).read_text(encoding="utf-8").partition(begin)
    lines = (f"* {part[0]}{', '.join(part[1:])}" for part in parts)
    return "\n".join([before + begin, "", *lines, "", end + rest.partition(end)[2]])


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Add examples to the reference of scenarios, and kinds of figures to that of Python."""
    if page.file.src_uri == "reference/scenario.md":
        return examples.insert(markdown, "examples")
    if page.file.src_uri.startswith("reference/scenario/"):
        return examples.insert(markdown, "../examples")
    if page.file.src_uri == "reference/python.md":
        return markdown.replace("<!-- figures -->", kinds_of_figures())
    return markdown


def kinds_of_figures() -> str:
    """A table of the kinds of figures."""
    from talkspurt.figures import KINDS

    rows = (f"| `{name}` | {kind.alt}. |" for name, kind in KINDS.items())
    return "\n".join(["| kind | content |", "|---|---|", *rows])


def tables() -> str:
    """The page of tables: what ``talkspurt metrics --describe`` says."""
    from talkspurt.metrics import dictionary

    lines = [
        "# Tables",
        "",
        "Every table of a result is a Parquet file in its folder (`scores` only after "
        "`talkspurt run --scores`), a property or method of "
        "[`Result`](python.md) and, after `talkspurt export RUN --to csv`, a CSV file. The Parquet "
        "files hold unit and meaning of each column as metadata. `talkspurt metrics --describe` "
        "prints this page. A unit of 1 is a plain number or a ratio; without a unit, a column is "
        "text.",
    ]
    for name, columns in dictionary.TABLES.items():
        lines += ["", f"## {name}", "", *rows_of(columns)]
    lines += ["", "## Tables of a study", ""]
    lines += ["Each begins with a column `axis.NAME` for each axis."]
    for name, columns in dictionary.OF_STUDIES.items():
        known = dictionary.TABLES.get(name, ())
        more = f", and the columns of [`{name}`](#{name}) of a run" if known else ""
        lines += ["", f"### {name} of a study", "", f"These columns{more}:", ""]
        lines += rows_of(one for one in columns if one not in known)
    return "\n".join([*lines, ""])


def rows_of(columns: Iterable[dictionary.Field]) -> list[str]:
    """The rows of a Markdown table of columns."""
    rows = (
        f"| `{c.name}` | {c.unit} | {' '.join(c.meaning.split()).replace('|', chr(92) + '|')} |"
        for c in columns
    )
    return ["| column | unit | meaning |", "|---|---|---|", *rows]


def pictures() -> Iterator[tuple[str, bytes | str]]:
    """Figures of runs and pictures of shapes."""
    import talkspurt
    from talkspurt import figures
    from talkspurt.report import topology

    for file in NOTEBOOKS:
        for _, images in cells(file):
            yield from images.items()
    for name, kind in FIGURES.items():
        result = talkspurt.run(SCENARIOS / "networks" / f"{name}.toml")
        yield f"images/networks/{name}.png", figures.png(result.figure(kind))
    for file in sorted((SCENARIOS / "topologies").glob("*.toml")):
        result = talkspurt.run(file)
        drawn = topology.of_result(result)
        assert drawn is not None
        yield f"images/topologies/{file.stem}.svg", topology.file(drawn)


def metrics() -> str:
    """The page of metrics."""
    from talkspurt._text.format import VERDICTS
    from talkspurt.metrics.catalogue import COLUMNS, COMPUTED, SOUND

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
    lines += ["", "## Of the sound of calls", ""]
    lines += [
        "In results of `talkspurt run --scores`; of other results they are computed when asked "
        "for. See [Listening](listening.md#scores).",
    ]
    for m in SOUND:
        lines += ["", f"### {m.label}", "", f"`{m.name}`. {m.meaning}", ""]
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
    """The page of the clauses that the protocols do not follow."""
    file = Path(__file__).parent.parent / "crates" / "proto" / "rfc-exceptions.toml"
    names = {"ccid2": "CCID 2", "ccid3": "CCID 3 and 4", "dccp-udp": "DCCP in UDP",
             "icmp": "ICMP", "rate": "Rate control of TFRC and CCID 3",
             "rfc4571": "Framing in streams (RFC 4571)"}  # fmt: skip
    lines = ["# Departures from the RFCs", ""]
    lines += ["Clauses of the RFCs that the protocols deliberately do not follow."]
    for protocol, clauses in tomllib.loads(file.read_text(encoding="utf-8")).items():
        lines += [
            "",
            f"## {names.get(protocol, protocol.upper())}",
            "",
            "| clause | departure |",
            "|---|---|",
        ]
        for clause, why in clauses.items():
            lines.append(f"| {clause} | {why} |".replace("<", "&lt;"))
    return "\n".join([*lines, ""])


def command_line() -> str:
    """The page of commands: what ``--help`` says, and what holds for all commands."""
    from rich.console import Console

    from talkspurt._commands import app

    # A command is a name without dashes: `--help` and `--version` are listed by the first one.
    commands = [(), *((name,) for name in sorted(app) if not name.startswith("-"))]
    lines = ["# Command line", ""]
    lines += ["Every command has `--help`, which prints what is shown here."]
    for command in commands:
        words = io.StringIO()
        # As wide as a page, whatever terminal or pipe builds it.
        paper = Console(file=words, width=80, color_system=None)
        app([*command, "--help"], console=paper, result_action="return_value")
        lines += ["", f"## talkspurt {' '.join(command)}".rstrip(), "", "```text"]
        lines += [words.getvalue().strip(), "```"]
    return "\n".join([*lines, "", COMMON])


COMMON = """\
## What is replaced

A command that writes replaces what it wrote before: a folder with results of the same scenario, an
earlier export, a figure, a table, a schema. Anything else that talkspurt wrote, and any other file
that is named, is replaced only with `--overwrite`. A folder with files that talkspurt did not write
is never replaced. `talkspurt report` writes into the folder of a result, where it replaces the
report and the figures.

## Exit status

| status | meaning |
|---:|---|
| 0 | success |
| 1 | failure: a run could not be finished, or a file could not be written |
| 2 | invalid input: a scenario, an option or a file name |
| 130 | stopped by Ctrl-C |
| 143 | terminated (SIGTERM), or the terminal was closed (SIGHUP) |

## Input limits

talkspurt reads only regular files: scenarios of up to 16 MiB, with up to 32 axes and 100 000 runs;
traces and captures of up to 64 MiB; recordings of up to 256 MiB and four hours. It prints at most
forty problems and counts the others. Ctrl-C also interrupts reading. In titles and paths, terminal
control characters and bidirectional control characters are shown as `\\x1b` or `\\u202e`; JSON uses
its own escapes for the same data. If `--set duration=` ends the run before the measurement window,
the end of the window keeps its distance from the end of the run.
"""


if __name__ == "__main__":
    for path, content in pages().items():
        (Path(__file__).parent / path).write_text(content, encoding="utf-8")
        print(f"wrote docs/{path}")
    import gallery

    for page in sorted(Path(__file__).parent.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        page.write_text(gallery.filled(text), encoding="utf-8")

    # Sounds are made when the pages are built.
    names = ("first-call.png", "today.png", "playout.png", "thumbnails/")
    kept = tuple(f"images/{name}" for name in names)
    made = (*gallery.front(), *gallery.today(), *gallery.playout(), *gallery.gallery())
    more = (one for one in made if one[0].startswith(kept))
    for path, picture in (*pictures(), *more):
        file = Path(__file__).parent / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(picture if isinstance(picture, bytes) else picture.encode())
        print(f"wrote docs/{path}")
