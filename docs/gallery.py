"""Tables, pictures and sounds that come from runs of scenarios, made when pages are built."""

from __future__ import annotations

import logging
import re
import tomllib
from bisect import bisect_left
from html import escape
from io import BytesIO
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import polars as pl
from mkdocs.structure.files import File

import talkspurt
from talkspurt import figures, templates
from talkspurt._text import problems
from talkspurt.figures import comparison
from talkspurt.figures.style import WIDTH, transport_style
from talkspurt.metrics.catalogue import column
from talkspurt.results.audio import wav

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from matplotlib.figure import Figure
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

    from talkspurt import Result, Study

SCENARIOS = Path(__file__).parent.parent / "scenarios"
LOG = logging.getLogger(f"mkdocs.hooks.{__name__}")
SECONDS = 8
"""Length of an excerpt."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add pictures, sounds and the gallery."""
    for path, content in (*front(), *today(), *playout(), *listening(), *gallery()):
        if known := files.get_file_from_path(path):
            files.remove(known)
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Renew the made parts of a page; what the repository has in their place is old if it differs.

    A warning ends the build (``strict``).
    """
    made = filled(markdown)
    if made != markdown:
        LOG.warning("%s: parts are out of date; `make pages` writes them", page.file.src_uri)
    return made


def filled(markdown: str) -> str:
    """A page with what its marks name, from ``<!-- made: buffers -->`` to ``<!-- / -->``."""

    def made(found: re.Match[str]) -> str:
        mark, table = found[0].partition(" -->")[0], TABLES[found[1]]()
        # A sentence stays in its paragraph.
        around = "" if "\n" not in found[0] else "\n\n"
        return f"{mark} -->{around}{table}{around}<!-- / -->"

    return re.sub(r"<!-- made: (\w+) -->.*?<!-- / -->", made, markdown, flags=re.DOTALL)


def player(words: str, file: str) -> str:
    """An audio player with its label."""
    return f'<p>{words}<br><audio controls preload="metadata" src="{file}"></audio></p>'


def excerpt(result: Result, flow: str, start_s: float, seconds: float = SECONDS) -> bytes:
    """A part of what the listener of a call heard, as a WAV file."""
    audio = result.audio(flow)
    first, last = (2 * round(at * audio.rate) for at in (start_s, start_s + seconds))
    return wav(audio.received_pcm[first:last], audio.rate)


def worst(result: Result, flow: str, seconds: float = SECONDS) -> float:
    """Where in the sound of a call the least speech is played, in seconds from its beginning."""
    frames = result.frames(flow)
    # Frames that are missing and pauses of playout are both times without a frame that is played.
    times = frames.filter(pl.col("fate") == "played")["playout_s"].drop_nulls().sort()
    if times.is_empty():
        return 0.0
    starts = (times - times[0]).to_list()
    latest = max(0.0, result.audio(flow).duration_s - seconds)
    played = {
        at: bisect_left(starts, at + seconds) - i
        for i, at in enumerate(starts)
        if at <= min(latest, starts[-1] - seconds)
    }
    return min(played, key=lambda at: played[at], default=0.0)


def front() -> Iterator[tuple[str, bytes]]:
    """The picture and the sound of the front page."""
    from matplotlib import pyplot

    result = talkspurt.run(SCENARIOS / "first-call.toml")
    calls = {"call": "over UDP", "call-over-tcp": "over TCP"}
    colours = [transport_style(transport).colour for transport in ("udp", "tcp-newreno")]
    seconds = 6
    start = max(0.0, worst(result, "call-over-tcp", 2) - 2)  # about the gap in the middle
    heard = {flow: result.audio(flow) for flow in calls}
    rate = heard["call"].rate
    first, last = (round(at * rate) for at in (start, start + seconds))
    parts = [heard[flow].received[first:last].tobytes() for flow in calls]
    yield "audio/first-call.wav", wav(bytes(2 * rate).join(parts), rate)
    waves = [("sent", heard["call"].sent, "#6b737c")]
    waves += [
        (f"heard {words}", heard[flow].received, colour)
        for (flow, words), colour in zip(calls.items(), colours, strict=True)
    ]
    with figures.styled():
        figure, (delay, *panels) = pyplot.subplots(
            1 + len(waves), figsize=(8, 5), height_ratios=(2, 1, 1, 1), layout="constrained"
        )
        for (flow, words), colour in zip(calls.items(), colours, strict=True):
            frames = result.frames(flow).filter(pl.col("playout_s").is_not_null())
            late = (frames["playout_s"] - frames["captured_s"]) * 1e3
            delay.plot(frames["captured_s"], late, color=colour, linewidth=1.5, label=words)
        begins = heard["call"].start_s or 0.0
        delay.axvspan(begins + start, begins + start + seconds, color="#6b737c", alpha=0.15)
        delay.set_ylim(0, 1.25 * delay.get_ylim()[1])
        delay.set_xlim(0, 60)
        delay.set_title("mouth-to-ear delay / ms", loc="left", fontsize=10)
        delay.legend(loc="upper left", ncols=2)
        for ax, (words, samples, colour) in zip(panels, waves, strict=True):
            part = samples[first:last]
            ax.plot(
                [begins + start + i / rate for i in range(len(part))],
                part,
                color=colour,
                linewidth=0.5,
            )
            ax.set_title(words, loc="left", fontsize=10)
            ax.set_xlim(begins + start, begins + start + seconds)
            ax.sharey(panels[0])
            ax.set_yticks([])
            ax.grid(visible=False)
            ax.tick_params(labelbottom=ax is panels[-1])
        panels[-1].set_xlabel("time / s")
        yield "images/first-call.png", figures.png(figure)


def today() -> Iterator[tuple[str, bytes]]:
    """The picture of a call of today over a mobile link, in three of its ways."""
    from matplotlib import pyplot

    scenario = tomllib.loads((SCENARIOS / "today.toml").read_text(encoding="utf-8"))
    networks, ways = scenario.pop("axes")
    del scenario["replications"]
    scenario["record"] = {"interval": "500ms"}
    scenario["links"]["access"] = networks["values"][networks["labels"].index("LTE")]
    file = scenario["flows"]["sound"]["source"]["file"]
    scenario["flows"]["sound"]["source"]["file"] = str((SCENARIOS / file).resolve())
    shown = {"GCC": "#c2410c", "TFRC-TB": "#7c3aed", "UDP, fixed rate": "#1d4ed8"}
    with figures.styled():
        size = {"figsize": (8, 4.5), "layout": "constrained"}
        figure, (rate, delay) = pyplot.subplots(2, sharex=True, **size)
        for way, colour in shown.items():
            settings = ways["values"][ways["labels"].index(way)]
            for path, value in zip(ways["paths"], settings, strict=True):
                _, flow, key = path.split(".")
                scenario["flows"][flow][key] = value
            result = talkspurt.run(scenario)
            series = result.series("picture")
            style = {"color": colour, "linewidth": 1.5, "label": way}
            rate.plot(series["time_s"], series["received_bytes"] * 8 / 0.5 / 1e6, **style)
            frames = result.frames("sound").filter(pl.col("playout_s").is_not_null())
            late = frames["playout_s"] - frames["captured_s"]
            delay.plot(frames["captured_s"], late, **style)
        rate.set_ylim(0, 2.4)
        rate.set_title("rate of the picture / (Mbit/s)", loc="left", fontsize=10)
        delay.set_title("mouth-to-ear delay of the sound / s", loc="left", fontsize=10)
        for axes in (rate, delay):
            axes.axvspan(15, 45, color="#6b737c", alpha=0.1)
        delay.set_xlim(0, 60)
        delay.set_xlabel("time / s; an upload lasts from 15 to 45 s")
        rate.legend(loc="upper left", ncols=3)
        yield "images/today.png", figures.png(figure)


def answer() -> str:
    """The results of the first call, in a sentence."""
    flows = talkspurt.run(SCENARIOS / "first-call.toml").flows
    rows = {row["name"]: row for row in flows.iter_rows(named=True)}

    def told(name: str) -> str:
        delay, mos = (
            column(metric).show(rows[name][metric], unit=True)
            for metric in ("mouth_to_ear_mean_s", "mos")
        )
        return f"{delay} (MOS {mos})"

    return (
        "On a home's uplink of 2 Mbit/s, for example, a call beside an upload has a mean "
        f"mouth-to-ear delay of {told('call')} over UDP and of {told('call-over-tcp')} over TCP; "
        f"without the upload, it has {told('call-alone')} and {told('call-over-tcp-alone')}."
    )


MAX_RUNS = 20
"""A study of more combinations is represented by one run."""
PLACES = {
    "Scenarios": "",
    "Networks": "networks",
    "Topologies": "topologies",
    "Open questions": "questions",
}
"""Folders of scenarios, by heading."""
KINDS = {
    "ccid3": "rates", "first-call": "mos_over_time", "two-way": "mos_over_time",
    "sources": "goodput", "many": "queue", "many-flows": "queue", "satellite": "cwnd",
    "loss": "fates",
}  # fmt: skip
"""Which figure of a single run is shown, if not the delays."""


def shown(folder: Path) -> Iterator[tuple[str, Path, str]]:
    """The heading, the file and the command of each scenario; templates are written to a folder."""
    for heading, place in PLACES.items():
        for file in sorted((SCENARIOS / place).glob("*.toml")):
            yield heading, file, f"talkspurt run {file.relative_to(SCENARIOS.parent).as_posix()}"
    for name in templates.titles():
        yield "Templates", templates.write(name, folder / name)[0], f"talkspurt init {name}"


def base(command: str) -> str:
    """The name of a scenario's pictures and sounds."""
    return "-".join(command.removesuffix(".toml").replace("/", " ").split()[2:])


def gallery() -> Iterator[tuple[str, bytes | str]]:
    """The page of all scenarios, with a figure and sounds of each."""
    with TemporaryDirectory() as temporary:
        lines = [overview(Path(temporary), linked=True), FULL]
        for _, file, command in shown(Path(temporary)):
            image = f"images/topologies/{file.stem}.svg"
            ready = image if file.parent.name == "topologies" else None
            yield from entry(file, command, ready, lines)
    yield "gallery.md", "\n".join(lines)


def overview(folder: Path, *, linked: bool = False) -> str:
    """The page without figures and sounds, which links to them if it has them."""
    lines, last = [GALLERY], ""
    for heading, file, command in shown(folder):
        if heading != last:
            lines += [f"## {heading}\n"] if not last else [f"\n## {heading}\n"]
            lines += ["| figure | scenario |", "|---|---|"]
        last = heading
        title = escape(tomllib.loads(file.read_text(encoding="utf-8"))["title"])
        image = f"images/thumbnails/{base(command)}.png"
        if file.parent.name == "topologies":
            image = f"images/topologies/{file.stem}.svg"
        picture, words = f"![{title}]({image})", f"**{title}**"
        if linked:
            picture, words = (f"[{it}](#{base(command)})" for it in (picture, words))
        lines.append(f"| {picture} | {words}<br>`{command}` |")
    return "\n".join([*lines, ""])


def thumbnail(picture: bytes) -> bytes:
    """A small copy of a figure."""
    from PIL import Image

    copy = Image.open(BytesIO(picture)).convert("RGB")
    copy.thumbnail((THUMBNAIL, THUMBNAIL))
    out = BytesIO()
    copy.quantize(32).save(out, "png", optimize=True)
    return out.getvalue()


THUMBNAIL = 240
"""The longer side of a thumbnail in pixels."""
GALLERY = """# Gallery

All scenarios of the repository. In the built documentation (`make docs`), each has its figure in
full below, with sound where a recording is sent.
"""
FULL = """
# In full

Everything here is computed when the page is built. To keep this short:

* nothing is replicated: each combination of a study is run once, so that there are no intervals;
* of a study with more than 20 combinations, only one is run, with the values that the file gives
  outside `axes`;
* the sound is an excerpt of eight seconds, in which most of the speech was not heard.

The MOS next to a sound is that of the whole call.
"""


def entry(
    file: Path, command: str, image: str | None, lines: list[str]
) -> Iterator[tuple[str, bytes]]:
    """The figure and the sounds of a scenario; appends what the page says of it."""
    text = file.read_text(encoding="utf-8")
    told = tomllib.loads(text)
    count = prod(len(axis["values"]) for axis in told.get("axes", []))
    sets: dict[str, object] = {"replications.count": 1} if "replications" in told else {}
    if count > MAX_RUNS:
        sets["axes"] = []
    study = talkspurt.run(file, set=sets, study=True)
    comment = re.sub(r"\A(#:schema.*\n|#\n)*", "", text)
    first = re.split(r"\n#?\n", comment, maxsplit=1)[0].replace("\n# ", " ").removeprefix("# ")
    one = f" Run here: one of {count} combinations." if count > MAX_RUNS else ""
    name = base(command)
    lines += [f"### {escape(told['title'])} {{ #{name} }}\n", f"{escape(first)}{one}\n"]
    lines += [f"```sh\n{command}\n```\n"]
    if image is None:
        image, picture = f"images/gallery/{name}.png", figures.png(drawn(study, file.stem))
        yield image, picture
        yield f"images/thumbnails/{name}.png", thumbnail(picture)
    lines.append(f"![{escape(told['title'])}]({image})\n")
    for at, (run, call, mos) in enumerate(extremes(study)):
        sound = f"audio/gallery/{name}-{at}.wav"
        yield sound, excerpt(run, call, worst(run, call))
        words = ", ".join([*run.settings.values(), f"{call}: MOS {mos:.2f}"])
        lines.append(player(escape(words), sound) + "\n")


def drawn(study: Study, name: str) -> Figure:
    """The figure of a scenario: a comparison if it is a study."""
    if len(study.runs) > 1:
        for measure in ("mos", "estimated_mos", "goodput_bps"):
            found = comparison.over_axis(study, measure)
            if found is not None:
                found.set_figwidth(max(WIDTH, found.get_figwidth()))
                return found
    run = study.runs[0]
    kind = "frame_delay" if run.video_frames().height and not run.calls else "delay"
    return run.figure(KINDS.get(name, kind))


def extremes(study: Study) -> list[tuple[Result, str, float]]:
    """The calls that can be heard with the best and the worst score."""
    scored = [
        (run, row["name"], row["mos"])
        for run in study.runs
        for row in run.flows.iter_rows(named=True)
        if row["mos"] is not None and row["name"] in run.heard
    ]
    if not scored:
        return []
    best = max(scored, key=lambda it: it[2])
    least = min(scored, key=lambda it: it[2])
    return [best] if best[2] == least[2] else [best, least]


BUFFERS = ("fixed", "talkspurt", "adaptive")
STEP_S = 20.0
"""When the delay of the path rises in ``jitter-buffers.toml``."""


def playout() -> Iterator[tuple[str, bytes]]:
    """The picture and the sounds of ``playout.md``."""
    study = talkspurt.run(
        SCENARIOS / "jitter-buffers.toml", set={"replications.count": 1}, study=True
    )
    runs = [study.select(path="step", buffer=kind)[0] for kind in BUFFERS]
    yield "images/playout.png", delays(runs)
    for kind, run in zip(BUFFERS, runs, strict=True):
        yield f"audio/playout-{kind}.wav", excerpt(run, "recording", STEP_S - 2)


def delays(runs: Sequence[Result]) -> bytes:
    """The delay of each frame until it arrives and until it is played: a row for each buffer."""
    from matplotlib import pyplot

    flows = runs[0].calls
    with figures.styled():
        figure, panels = pyplot.subplots(
            len(runs), len(flows), figsize=(10, 7), sharex=True, sharey=True, layout="constrained"
        )
        for row, run in zip(panels, runs, strict=True):
            for ax, flow in zip(row, flows, strict=True):
                frames = run.frames(flow)
                played = frames.filter(fate="played")
                ax.set_title(f"{run.settings['buffer']}, {flow}", loc="left", fontsize=10)
                for part, until, colour, label in (
                    (frames, "delivered_s", "#888888", "until it arrives"),
                    (played, "playout_s", "#0072B2", "until it is played"),
                ):
                    delay = (part[until] - part["captured_s"]) * 1e3
                    ax.plot(part["captured_s"], delay, ".", color=colour, markersize=2, label=label)
                late = frames.filter(fate="late")["captured_s"]
                ax.plot(late, [12] * len(late), "|", color="#D55E00", markersize=8, label="late")
        panels[0, 0].set_ylim(bottom=0)
        for ax in panels[:, 0]:
            ax.set_ylabel("delay / ms")
        for ax in panels[-1]:
            ax.set_xlabel("time of capture / s")
        figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower right", ncols=3)
        return figures.png(figure)


def buffers() -> str:
    """The results of ``jitter-buffers.toml``."""
    heads = {
        "mouth_to_ear_mean_s": "mean delay",
        "loss_ratio": "effective loss",
        "paused_s": "pauses",
        "concealed_ratio": "concealed",
        "mos": "MOS",
    }
    return table(talkspurt.run(SCENARIOS / "jitter-buffers.toml", study=True), heads)


def table(study: Study, heads: Mapping[str, str]) -> str:
    """The means of measures, under their heads: one row for each setting and flow."""
    axes = [axis.name for axis in study.axes]
    rows: dict[str, list[str]] = {}
    for row in study.rows(study.summary(heads)):
        name = " · ".join([*(row[f"axis.{axis}"] for axis in axes), row["flow"]])
        rows.setdefault(name, [name]).append(column(row["measure"]).show(row["mean"], unit=True))
    return lined([" · ".join([*axes, "flow"]), *heads.values()], rows.values())


def players() -> str:
    """The sounds of ``playout.md``."""
    return "\n".join(player(kind, f"audio/playout-{kind}.wav") for kind in BUFFERS)


ONE_CALL = """
title = "One call"
duration = "{seconds}s"
[links.path]
from = "a"
to = "b"
rate = "10Mbit/s"
delay = "20ms"
queue = {{ kind = "droptail", packets = 100 }}
{path}
[flows.call]
from = "a"
to = "b"
transport.kind = "udp"
playout = {{ {playout} }}
[flows.call.source]
kind = "speech"
file = "{speech}/{clip}.wav"
{source}
"""
LOSSES = "loss = 0.1"
BURSTS = "gilbert_elliott = { p = 0.04, r = 0.36, h = 0.0, k = 1.0 }"
OPUS = 'codec = "opus"\nopus = { bitrate = "24kbit/s", max_bandwidth = "wb", %s }'
SILENT = 'codec = "pcmu"\nvad = { hangover = "100ms" }'
HEARD: dict[str, tuple[str, list[tuple[str, str, str, str]]]] = {
    "codecs": (
        "spanish-woman",
        [
            ("G.711, 64 kbit/s, narrowband", 'codec = "pcmu"', "", ""),
            ("G.722, 64 kbit/s, wideband", 'codec = "g722"', "", ""),
            ("Opus, 24 kbit/s, wideband", OPUS % "dtx = false", "", ""),
            ("Opus, 8 kbit/s", 'codec = "opus"\nopus = { bitrate = "8kbit/s" }', "", ""),
            ("G.726, 32 kbit/s, narrowband", 'codec = "g726-32"', "", ""),
            ("G.726, 16 kbit/s", 'codec = "g726-16"', "", ""),
            ("G.729, 8 kbit/s, heard through its stand-in", 'codec = "g729"', "", ""),
        ],
    ),
    "concealment": (
        "english-man",
        [
            ("G.711, silence", 'codec = "pcmu"', LOSSES, 'concealment = "silence"'),
            ("G.711, Appendix I", 'codec = "pcmu"', LOSSES, ""),
            ("Opus, its own concealment", OPUS % "dtx = false", LOSSES, ""),
            ("Opus, in-band FEC", OPUS % "fec = true, expected_loss = 0.1", LOSSES, ""),
            ("bursts, Opus, its own concealment", OPUS % "dtx = false", BURSTS, ""),
            (
                "bursts, Opus, deep redundancy (DRED) of 200 ms",
                OPUS % 'dred = "200ms", expected_loss = 0.1',
                BURSTS,
                "",
            ),
        ],
    ),
    "pauses": (
        "sense-and-sensibility",
        [
            ("sent throughout", 'codec = "pcmu"', "", ""),
            ("voice activity detection, pauses silent", SILENT, "", ""),
            (
                "voice activity detection, comfort noise",
                f'{SILENT}\nkeep_alive = {{ every = "200ms", size = "11B", at_once = true }}',
                "",
                "",
            ),
        ],
    ),
}
"""The sounds of ``listening.md``: the recording, and label, source, path and playout of each."""


def listening() -> Iterator[tuple[str, bytes]]:
    """The sounds of ``listening.md``."""
    for part, (clip, calls) in HEARD.items():
        for at, (_, source, path, how) in enumerate(calls):
            text = ONE_CALL.format(
                seconds=SECONDS,
                speech=(SCENARIOS.parent / "speech").as_posix(),
                clip=clip,
                source=source,
                path=path,
                playout=how,
            )
            yield f"audio/listening-{part}-{at}.wav", excerpt(talkspurt.run(text), "call", 0)


def heard(part: str) -> str:
    """The players of a part of ``listening.md``."""
    labels = (label for label, *_ in HEARD[part][1])
    return "\n".join(
        player(escape(label), f"audio/listening-{part}-{at}.wav") for at, label in enumerate(labels)
    )


CONSTANT = """
title = "Scores"
duration = "300s"
[links.path]
from = "a"
to = "b"
rate = "1Mbit/s"
delay = "1ms"
queue = {kind = "droptail", packets = 9}
[flows.call]
from = "a"
to = "b"
transport.kind = "udp"
source = {kind = "speech", codec = "pcmu", packet = "20ms"}
playout.anchor = "capture"
[[axes]]
name = "delay"
path = "flows.call.playout.buffer"
values = ["80ms", "180ms", "280ms", "380ms", "480ms"]
[[axes]]
name = "loss"
path = "links.path.loss"
values = [0, 0.01, 0.03, 0.1]
"""
"""Calls of constant delay, of which 20 ms are the packet, and random loss."""


def scores() -> str:
    """MOS by delay and loss."""
    runs = talkspurt.run(CONSTANT, study=True).runs
    found = {
        (run.settings["delay"], run.settings["loss"]): run.flows.row(0, named=True) for run in runs
    }
    delays, losses = (list(dict.fromkeys(parts)) for parts in zip(*found, strict=True))
    heads = ["mouth-to-ear delay", *(f"{float(loss) * 100:g} % loss" for loss in losses)]
    rows = [
        [
            column("mouth_to_ear_mean_s").show(
                found[delay, losses[0]]["mouth_to_ear_mean_s"], unit=True
            ),
            *(column("mos").show(found[delay, loss]["mos"]) for loss in losses),
        ]
        for delay in delays
    ]
    return lined(heads, rows)


def differences() -> str:
    """MOS of the call in ``which-transport.toml``, and the paired differences."""
    study = talkspurt.run(SCENARIOS / "which-transport.toml", study=True)
    means = study.rows(study.summary(["mos"]).filter(flow="call"))
    pairs = study.rows(study.differences("transport", names=["mos"]).filter(flow="call"))
    delay = study.axis("one-way delay").column
    heads = ["one-way delay", *study.axis("transport").labels, "difference", "interval"]
    rows = []
    for pair in pairs:
        of = [f"{row['mean']:.2f}" for row in means if row[delay] == pair[delay]]
        ends = f"{signed(pair['low'])} … {signed(pair['high'])}"
        rows.append([pair[delay], *of, signed(pair["mean"]), ends])
    return lined(heads, rows)


def signed(number: float) -> str:
    """A difference of scores, with a minus sign."""
    return f"{number:.2f}".replace("-", "−")


def lined(heads: Sequence[str], rows: Iterable[Sequence[str]], align: str = "---:") -> str:
    """A table of Markdown; by default, all columns but the first are aligned like numbers."""
    lines = [heads, ["---", *[align] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def unsupported() -> str:
    """What to use in place of words of the field that are not supported yet."""
    rows = [
        [escape(", ".join(words.split())), " or ".join(f"`{it}`" for it in nearest), escape(remark)]
        for words, nearest, remark in problems.NOT_YET
    ]
    return lined(["not supported yet", "nearest", "remark"], rows, "---")


def synonyms() -> str:
    """What words of the field are called in a scenario."""
    rows = [
        [escape(", ".join(words.split())), " or ".join(f"`{it}`" for it in names)]
        for words, names in problems.OTHER_NAMES
    ]
    return lined(["word", "in talkspurt"], rows, "---")


TABLES: dict[str, Callable[[], str]] = {
    "answer": answer,
    "first": lambda: player("over UDP, then over TCP", "audio/first-call.wav"),
    "buffers": buffers,
    "players": players,
    "codecs": lambda: heard("codecs"),
    "concealment": lambda: heard("concealment"),
    "pauses": lambda: heard("pauses"),
    "scores": scores,
    "differences": differences,
    "unsupported": unsupported,
    "synonyms": synonyms,
}
"""What replaces a mark, by its name."""
