"""The command line's application, and the options that several commands have."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from attrs import evolve
from cyclopts import App, Group, Parameter, Token
from cyclopts.command_spec import CommandSpec
from cyclopts.help import DefaultFormatter, HelpPanel

from talkspurt import __version__
from talkspurt._commands import completing
from talkspurt.errors import BadInputError
from talkspurt.scores.kinds import Segments


class Commands(App):
    """An application whose commands are imported when one is given."""

    def help_print(self, tokens: Any = None, *, console: Any = None) -> None:
        """Print the help of a command, or a line of each, for which none is imported."""
        listed = [] if set(tokens or ()) & COMMANDS.keys() else [*COMMANDS]
        lazy = {
            name: one for name in listed if isinstance(one := self._get_item(name), CommandSpec)
        }
        for name, one in lazy.items():
            one.help = _first_paragraph(*COMMANDS[name])
        super().help_print(tokens, console=console)
        for one in lazy.values():
            one.help = None  # the whole docstring, once it is imported


def _first_paragraph(module: str, function: str) -> str:
    """What a command's docstring begins with, from its compiled code, which is not executed."""
    spec: Any = find_spec(f"{__package__}.{module}")
    made = spec.loader.get_code(spec.name).co_consts
    found = next(it for it in made if getattr(it, "co_name", "") == function)
    return str(found.co_consts[0]).partition("\n\n")[0]


VALUES = {
    "NODE": "at serve shell", "SECONDS": "bin", "AXIS": "by over", "NAME": "user",
    "TIME": "clock-offset for max-duration network-delay", "ADDRESS": "cluster",
    "PIXELS": "dpi", "FLOW": "flow", "LINK": "link", "LENGTH": "height width", "I/N": "shard",
    "NUMBER": "calls jobs max-sessions most seed seeds", "ADDRESS:PORT": "listen",
    "BYTES": "mtu packet", "SINK": "loudspeaker", "SOURCE": "microphone", "CODEC": "codec",
    "RATE": "max-rate rate", "FIRST-LAST": "media-ports", "TYPE=ENCODING/CLOCK": "payload",
    "BUFFER": "playout", "PATH=VALUE": "set", "TEXT": "title", "TRANSPORT": "transport",
    "MEASURE=WIDTH": "until", "GB": "memory-limit", "CASE": "case", "CONTROLLER": "controller",
    "CANDIDATE": "baseline",
}  # fmt: skip
"""What stands for values of options in their help: unit or form, which the type does not say."""
VALUE_OF = {f"--{option}": value for value, options in VALUES.items() for option in options.split()}


class Formatter(DefaultFormatter):
    """Help with the values of options in words."""

    def __call__(self, console: Any, options: Any, panel: HelpPanel) -> None:
        entries = []
        for entry in panel.entries:
            value = next((VALUE_OF[name] for name in entry.names if name in VALUE_OF), r"\1")
            words = re.sub(r"^(STR|INT|FLOAT)\b", value, entry.metavar or "")
            entries.append(evolve(entry, metavar=words or None))
        super().__call__(console, options, evolve(panel, entries=entries))


app = Commands(
    name="talkspurt",
    help="A laboratory for the transport of live voice and video.",
    version=__version__,
    help_format="plaintext",
    help_formatter=Formatter(),
    suppress_keyboard_interrupt=False,  # main reports the partial results
)
GROUPS = {
    "Write and run scenarios": {
        "evaluating": "evaluate",
        "runs": "check crosscheck examples init merge reproduce run",
    },
    "Look at results": {
        "reporting": "compare plot rebuild sensitivity show",
        "runs": "metrics",
    },
    "Real programs and networks": {"live": "answer call emulate measure serve"},
    "Files and this machine": {"importing": "import_", "runs": "completion export schema"},
}
"""The modules and functions of the commands, as ``--help`` groups them."""
COMMANDS = {
    {"rebuild": "report", "show": "open"}.get(function, function.rstrip("_")): (module, function)
    for modules in GROUPS.values()
    for module, functions in modules.items()
    for function in functions.split()
}
USAGE = {
    "compare": "RUN RUN…",
    "emulate": "SCENARIO --at NODE -- COMMAND…",
    "import": "TRACE [TRACE]",
    "merge": "SHARD…",
    "plot": "RUN MEASURE…",
}
"""What commands take that take any number of words."""
for place, (title, modules) in enumerate(GROUPS.items()):
    group = Group(title, sort_key=place)
    for command, (module, function) in COMMANDS.items():
        if function in modules.get(module, "").split():
            more: dict[str, Any] = {}
            if command in USAGE:
                more["usage"] = f"Usage: talkspurt {command} [OPTIONS] {USAGE[command]}"
            where = f"talkspurt._commands.{module}:{function}"
            app.command(where, name=command, group=group, **more)
for option in ("--help", "--version"):
    app[option].group = group


def _whole(_: Any, tokens: Sequence[Token]) -> int:
    """A whole number: by default, the parser takes 1.5 for 2."""
    return int(tokens[0].value)


Whole = Annotated[int, Parameter(converter=_whole)]
Flag = Annotated[bool, Parameter(negative=())]
"""An option without a value; off unless it is given."""
Controller = Literal["gcc", "nada", "fixed"]
Flow = Annotated[str | None, Parameter(completer=completing.flows)]
Link = Annotated[str | None, Parameter(completer=completing.links)]
BARE = {"--scores": get_args(Segments)}
"""Options whose value may be left out, which the parser does not know, with their values, first the
one that is then meant. Another word behind such an option is not its value."""
Several = Annotated[list[str] | None, Parameter(negative=())]
"""An option that may be repeated."""
Jobs = Annotated[int | None, Parameter(name="--jobs", alias="-j", converter=_whole)]
Out = Annotated[Path | None, Parameter(name="--out", alias="-o")]
Overwrite = Annotated[
    bool,
    Parameter(
        negative=(),
        help="Replace what is there, though it is of another scenario or kind. Without it, only "
        "earlier output of the same is replaced; a folder with files that talkspurt did not write "
        "never is.",
    ),
]
Report = Annotated[bool, Parameter(negative="--no-report", show_default=False)]
Secret = Annotated[
    Path | None,
    Parameter(
        help="File with the shared secret, readable only by its owner; without it, the environment "
        "variable TALKSPURT_SECRET has the secret."
    ),
]
Sets = Annotated[list[str] | None, Parameter(name="--set", alias="-s", negative=())]


def bin_faults(bin_s: float | None, longest_s: float = 0.0, most: int = 1) -> list[str]:
    """What is wrong with ``--bin``, of which a run may have ``most``: more are a typing error."""
    if bin_s is None:
        return []
    if not (math.isfinite(bin_s) and bin_s > 0):
        return [f"--bin {bin_s:g}: expected seconds, more than 0"]
    if longest_s <= most * bin_s:
        return []
    many = f"{longest_s / bin_s:.3g} bins in {longest_s:g} s"
    return [f"--bin {bin_s:g}: {many}, expected at most {most:g}"]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Output:
    """Where results go, and what is drawn and printed.

    Parameters
    ----------
    out
        Folder for the results; default: runs/NAME. Earlier results of the same scenario are
        replaced when the new ones are complete.
    json
        Print only a JSON document on standard output; results are written only with --out.
    report
        Whether to write report.html; without, an earlier one stays.
    quiet
        Print only the answer, and errors: no progress, no tables, no folder.
    """

    out: Out = None
    json: Flag = False
    report: Report = True
    quiet: Flag = False
    overwrite: Overwrite = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Pictures(Output):
    """The same for what has figures.

    Parameters
    ----------
    out
        Folder for the results; default: runs/NAME, and of compare runs/A-vs-B. compare takes a URL,
        too, such as s3://bucket/name.
    pdf
        Also write every figure to figures/, as SVG, PNG and PDF.
    """

    pdf: Flag = False

    def __post_init__(self) -> None:
        """Refuse figures without a report."""
        if self.pdf and not self.report:
            raise BadInputError("--pdf and --no-report: without a report no figure is drawn")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions(Pictures):
    """How a scenario is run.

    Parameters
    ----------
    out
        Folder for the results, or a URL such as s3://bucket/name; default: runs/NAME. Earlier
        results of the same scenario are replaced when the new ones are complete.
    set
        PATH=VALUE overrides a scenario field, as in --set links.sky.delay=20ms; may be repeated.
    seed
        Replaces the scenario's seed: 0 to 9223372036854775807 (2^63 − 1).
    jobs
        Concurrent runs, with axes or replications; default: all cores.
    memory_limit
        GB that the runs may be estimated to take; default: the memory of this machine.
    scores
        Score the sound of calls by PESQ, ViSQOL and PLCMOS, as --scores at most three segments of
        8 s of each call, as --scores=all all of them. Needs pip install 'talkspurt[scores]'.
    until
        MEASURE=WIDTH runs more replications until half the interval of a measure is at most WIDTH
        for every flow and setting: mos=0.1, delay_p95_s=5ms or, of the mean, goodput_bps=5%; may
        be repeated.
    most
        Maximum number of replications with --until; default: 100.
    """

    set: Sets = None
    seed: Whole | None = None
    jobs: Jobs = None
    scores: Segments | None = None
    until: Several = None
    most: Whole | None = None
    memory_limit: float | None = None

    def __post_init__(self) -> None:
        """Refuse what no run has."""
        if self.jobs is not None and self.jobs < 1:
            raise BadInputError(f"--jobs {self.jobs}: expected 1 or more")
        if self.memory_limit is not None and not self.memory_limit > 0:
            raise BadInputError(f"--memory-limit {self.memory_limit:g}: expected GB, more than 0")
        super().__post_init__()

    @property
    def memory_bytes(self) -> float | None:
        return None if self.memory_limit is None else 1e9 * self.memory_limit


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(Output):
    """What is evaluated, and how.

    Parameters
    ----------
    out
        Folder for the results; default: runs/evaluate-rmcat, followed by the cases and what is set.
    json
        Print only a JSON document on standard output; results are written only with --out.
    report
        Whether to write report.html, the page with figures.
    quiet
        Print only how many bands are held, and errors: no progress, no tables, no folder.
    case
        Case by its number, as in --case 5.1; 8867 or 8869 for all of one RFC; may be repeated.
        Default: all.
    controller
        Controller of RTP sessions over UDP: nada, nada-ns3-rmcat, gcc, or a table as in a scenario,
        as in --controller "{ kind = 'gcc', max = '1Mbit/s' }"; may be repeated. Default: these
        three.
    transport
        Transport that carries the same video: tfrc, ccid2, ccid3, ccid4, tcp, tcp-newreno, tcp-bbr,
        sctp, udp, or a table as in a scenario; may be repeated.
    set
        PATH=VALUE overrides a field of the scenarios; a path that begins with media. is of every
        video flow, as in --set media.source.encoder.reaction=100ms; may be repeated.
    program
        Program that runs external stacks, which it has registered, called as PROGRAM SCENARIO
        FOLDER, as in --program target/release/talkspurt-quinn --transport "{ kind = 'external',
        stack = 'quinn' }".
    baseline
        One of these controllers and transports, an external stack by its name: the others are
        compared with it, seed by seed, in place of bands.
    seeds
        Runs of each variant, with the seeds 1 to this.
    jobs
        Concurrent runs; default: all cores.
    strict
        Let open bands count as missed in the exit status.
    """

    case: Several = None
    controller: Several = None
    transport: Several = None
    set: Sets = None
    program: Path | None = None
    baseline: str | None = None
    seeds: Whole = 30
    jobs: Jobs = None
    strict: Flag = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """Who runs a study.

    Parameters
    ----------
    cluster
        Workers for the runs of a study: tls://HOST:PORT or tcp://HOST:PORT of a scheduler of
        dask.distributed, or local:N for N processes here. Needs pip install 'talkspurt[cluster]'.
    tls_ca
        Certificate of the authority that signed those of the cluster; default: dask's settings.
    tls_cert
        Our certificate.
    tls_key
        Our private key.
    plain_tcp
        Permit tcp:// to other machines, where whoever reaches a port can execute code.
    """

    cluster: str | None = None
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    plain_tcp: Flag = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class LiveOutput(Output):
    """The same in real time.

    Parameters
    ----------
    quiet
        Print nothing but errors, and what the commands of an emulation print.
    """


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class EmulateOptions(LiveOutput):
    """How a scenario is emulated.

    Parameters
    ----------
    duration
        Length of the emulation, as in 60s; default: the scenario's duration.
    set
        PATH=VALUE overrides a scenario field, as in --set links.sky.delay=20ms; may be repeated.
    seed
        Replaces the scenario's seed.
    """

    duration: Annotated[str | None, Parameter(name="--for")] = None
    set: Sets = None
    seed: Whole | None = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class MeasureOptions(LiveOutput):
    """What to measure.

    Parameters
    ----------
    out
        Folder for the results, or a URL such as s3://bucket/name; default: runs/measure-HOST.
    transport
        udp, tfrc, tfrc-tb, beritelli, dccp-ccid2, dccp-ccid3, dccp-ccid4 (in UDP, RFC 6773), sctp
        (in UDP, RFC 6951), each of the last four with -ip, as in dccp-ccid3-ip (directly over IP;
        both ends need the privilege CAP_NET_RAW), tcp (the kernel's) or tcp-CONTROLLER, as in
        tcp-cubic, with a congestion controller of the sender's kernel; repeat it to measure
        several, one after another. Default: udp.
    traffic
        cbr: constant bit rate. talkspurts: speech with pauses, in the codec. bulk: as much as the
        transport permits, not over udp and tfrc-tb. video: an encoder that follows the controller,
        or a transport that asks for rates, with repair.
    rate
        Payload rate of cbr, and the highest of video.
    packet
        Bytes of payload per packet of cbr (default: 160) and bulk (default: 1200).
    codec
        Codec of talkspurts, as in scenarios; tfrc-tb with pcmu steps down to G.726.
    controller
        Congestion control of video: gcc (libwebrtc's), nada (RFC 8698), or fixed, the highest
        rate until a circuit breaker of RFC 8083 ends it.
    up
        Only from here to the server.
    down
        Only from the server to here.
    both
        In both directions at the same time; the default.
    duration
        Duration of the traffic of each transport.
    together
        Measure all transports at the same time, in one result.
    mtu
        Longest IP packet on the path, in bytes.
    seed
        Seed of the random parts of the traffic; default: another one each time.
    """

    transport: Several = None
    traffic: Literal["cbr", "talkspurts", "bulk", "video"] = "cbr"
    rate: str = "64kbit/s"
    packet: Whole | None = None
    codec: str = "pcmu"
    controller: Controller | None = None
    up: Flag = False
    down: Flag = False
    both: Flag = False
    duration: Annotated[str, Parameter(name="--for")] = "10s"
    together: Flag = False
    mtu: Whole = 1500
    seed: Whole | None = None

    def __post_init__(self) -> None:
        """Refuse several directions."""
        if self.up + self.down + self.both > 1:
            raise BadInputError("--up, --down and --both: give one of them")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CallOptions(LiveOutput):
    """What one end says, and what it keeps and shows of a call.

    Parameters
    ----------
    out
        Folder for the results; default: runs/call-HOST, and of the end that answers runs/answer.
        The caller's may be a URL such as s3://bucket/name.
    speech
        WAV file of what is said here; silence follows until the call ends.
    heard
        WAV file for what is heard here; that of a second call is NAME-2.wav.
    microphone
        In place of the file: a source of PulseAudio or PipeWire, or default.
    loudspeaker
        Play what is heard there, too: a sink of PulseAudio or PipeWire, or default.
    codec
        Codecs in order of preference, as in opus,pcmu. The caller's order decides; default: opus,
        g722, pcmu, pcma, with tfrc-tb pcmu and G.726 at 40, 32, 24 and 16 kbit/s, and of the end
        that answers all that a call can have.
    scores
        Score the sound with PESQ, ViSQOL and PLCMOS (needs the extra `scores`), as --scores at most
        three segments of 8 s of each direction, as --scores=all all of them.
    """

    speech: Path | None = None
    heard: Path | None = None
    microphone: str | None = None
    loudspeaker: str | None = None
    codec: str | None = None
    scores: Segments | None = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PlotOptions:
    """What a figure shows.

    Parameters
    ----------
    over
        The x axis: an axis of the study, flow, link, transport, source, or time; default: an axis
        with numbers, or what the metric is computed against. A metric over time that is drawn over
        something else is averaged over each run.
    by
        What colours distinguish, from the same list; default: what changes the transport. All else
        that varies has panels of its own.
    kind
        Default: bars over names, lines over numbers and time, points for one quantity against
        another. cdf: the distribution of the values of all runs, or of those over time. map: cells
        over two axes, --over and --by.
    time
        Draw the metric over time that belongs to a number of the whole run, as goodput_over_time to
        goodput_bps.
    flow
        One flow, or the flows of a `count`; default: all with a value.
    link
        One link, for metrics of links; default: all.
    bin
        Bin width in seconds, for metrics over time; default: the metric's own.
    title
        Title of the figure; default: what is drawn.
    width
        Width in inches, or with a unit, as in 9cm; default: 7.2, and more for many bars.
    height
        Height, likewise; default: what the panels need.
    dpi
        Pixels per inch of a .png; default: 160.
    """

    over: Annotated[str | None, Parameter(completer=completing.axes)] = None
    by: Annotated[str | None, Parameter(completer=completing.axes)] = None
    kind: Literal["lines", "bars", "points", "box", "cdf", "map"] | None = None
    time: Flag = False
    flow: Flow = None
    link: Link = None
    bin: float | None = None
    title: str | None = None
    width: str | None = None
    height: str | None = None
    dpi: Whole | None = None

    @property
    def size(self) -> tuple[float | None, float | None]:
        """Width and height in inches, as far as they are given."""
        return inches(self.width or ""), inches(self.height or "")

    def faults(self, ending: str) -> list[str]:
        """What is wrong with the size of a figure in a file with this ending."""
        found = []
        for name, given in (("width", self.width), ("height", self.height)):
            if given is not None and inches(given) is None:
                least, most = SIZES
                found.append(
                    f"--{name} {given}: expected {least:g} to {most:g} inches, as in 7.2, 7.2in, "
                    "18cm or 180mm"
                )
        if self.dpi is not None and ending != ".png":
            found.append(f"--dpi: for a .png; {ending} has no pixels")
        elif self.dpi is not None and not DPI[0] <= self.dpi <= DPI[1]:
            found.append(f"--dpi {self.dpi}: expected {DPI[0]} to {DPI[1]}")
        return found


SIZES = 1.0, 40.0
"""Least and greatest width and height of a figure in inches."""
DPI = 30, 1200
UNITS = {"": 1.0, "in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4}


def inches(text: str) -> float | None:
    """A length in inches; None if it is none that a figure can have."""
    found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+) ?([a-z]*)", text.strip())
    if found is None or found[2] not in UNITS:
        return None
    length = float(found[1]) * UNITS[found[2]]
    return length if SIZES[0] <= length <= SIZES[1] else None
