"""The cases, what is evaluated in them, and the scenarios of both."""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from talkspurt._text import problems
from talkspurt.errors import BadInputError, Faults

FILES = files("talkspurt.evaluate") / "rmcat"
VIDEO_MAX, VIDEO_PACKET, AUDIO, AUDIO_PACKET = 1.5e6, 1200, 20e3, 50
"""Highest rate of the video and rate of the audio in bit/s (RFC 8867 §4.3), payloads in bytes."""
MOST = VIDEO_MAX * (VIDEO_PACKET + 40) / (VIDEO_PACKET + 12) + AUDIO * (AUDIO_PACKET + 28) / (
    AUDIO_PACKET
)
"""The highest rate of a media flow in IP packets, bit/s: with RTP (video), UDP and IP headers."""
LOAD = 4.0
"""Mbit/s of a link whose capacity a source without control takes (RFC 8867 §5.1 to §5.3)."""
SPREAD_S = 10.0
"""Window of the begins and of the ends of media flows at a radio (RFC 8869 §3.2.3)."""
RADIO_QUEUE_BYTES = 750_000
"""300 ms at the 20 Mbit/s that RFC 8869 §3.2.3 expects of a cell."""
AUDIO_FLOW = {
    "transport": {"kind": "udp"},
    "source": {"kind": "cbr", "rate": f"{AUDIO:.0f}bit/s", "packet": f"{AUDIO_PACKET}B"},
}

FIXED = {"kind": "fixed", "rate": "1600kbit/s", "circuit_breaker": False}
"""Asks the encoder for its highest rate where a transport asks for none."""
CONTROLLERS: Mapping[str, dict[str, Any]] = {
    "nada": {"kind": "nada"},
    "nada-ns3-rmcat": {"kind": "nada", "profile": "ns3-rmcat"},
    # The highest rate of the encoder with headers.
    "gcc": {"kind": "gcc", "max": "1600kbit/s"},
}
TRANSPORTS: Mapping[str, dict[str, Any]] = {
    "tfrc": {"kind": "tfrc"},
    "ccid2": {"kind": "dccp", "ccid": 2, "ecn": False},
    "ccid3": {"kind": "dccp", "ccid": 3, "ecn": False},
    "ccid4": {"kind": "dccp", "ccid": 4, "ecn": False},
    "tcp": {"kind": "tcp", "controller": "cubic"},
    "tcp-newreno": {"kind": "tcp", "controller": "newreno"},
    "tcp-bbr": {"kind": "tcp", "controller": "bbr"},
    "sctp": {"kind": "sctp"},
    "udp": {"kind": "udp"},
}
NEEDS: Mapping[str, tuple[str, Mapping[str, tuple[str, Any, Any]]]] = {
    "priority": ("has no priority", {"nada": ("controller.priority", 2, 1)}),
    "coupling": ("cannot be coupled", {"nada": ("controller.priority", 1, 1)}),
    # The highest rate of one session is that of its sources.
    "session": (
        "has no session",
        dict.fromkeys(("nada", "gcc"), ("controller.max", "4800kbit/s", "1600kbit/s")),
    ),
    "ecn": (
        "has no ECN",
        {
            "nada": ("controller.ecn", "ect0", "off"),
            **dict.fromkeys(("tfrc", "dccp", "tcp", "sctp"), ("transport.ecn", True, False)),
        },
    ),
}
"""What a variant may need: why others cannot run it, and of each kind that can, the key and its
values with and without it."""


@dataclass(frozen=True)
class Candidate:
    """What is evaluated: it carries the video of every media flow."""

    name: str
    transport: Mapping[str, Any]
    controller: Mapping[str, Any] | None
    source: Mapping[str, Any] = field(default_factory=lambda: {"kind": "video", "encoder": {}})

    @property
    def kind(self) -> str:
        """The kind of what controls the rate."""
        controller = self.controller or FIXED
        return str((self.transport if controller["kind"] == "fixed" else controller)["kind"])


BULK = Candidate("TCP", {"kind": "tcp", "controller": "newreno"}, None, {"kind": "bulk"})
"""In place of media where they are compared with TCP."""


def candidates(controllers: Sequence[str], transports: Sequence[str]) -> list[Candidate]:
    """Those of a command line, each a known name or a table; default: all controllers.

    Raises:
        BadInputError: with everything that is no table, or there twice.
    """
    faults, found = Faults(), []
    for text in controllers or (() if transports else CONTROLLERS):
        with faults.gathered():
            table = _table("--controller", text, CONTROLLERS)
            found.append(Candidate(text, {"kind": "udp"}, table))
    for text in transports:
        with faults.gathered():
            table = _table("--transport", text, TRANSPORTS)
            # These ask the encoder for a rate themselves.
            asks = table.get("kind") == "tfrc" or table.get("ccid") in (3, 4)
            # An external stack has a name of its own.
            named = str(table["stack"]) if table.keys() == {"kind", "stack"} else text
            found.append(Candidate(named, table, None if asks else FIXED))
    names = [one.name for one in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    faults.add(f"given twice: {', '.join(twice)}", unless=not twice)
    faults.check()
    return found


def _table(option: str, text: str, known: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    if text in known:
        return dict(known[text])
    if not text.lstrip().startswith("{"):
        # Some are known, and have another name or a nearest one here.
        hint = problems.answer(text)
        raise BadInputError(
            f"{option} {text}: expected one of {', '.join(known)}, or a table, as in "
            f"{{ kind = '{next(iter(known))}' }}" + (f" – {hint}" if hint else "")
        )
    try:
        found = dict(tomllib.loads(f"it = {text}")["it"])
    except tomllib.TOMLDecodeError as error:
        raise BadInputError(f"{option} {text}: not a table of TOML: {error}") from None
    if "kind" not in found:
        raise BadInputError(f"{option} {text}: kind is missing, as in {{ kind = 'gcc' }}")
    return found


@dataclass(frozen=True)
class Media:
    """A media flow: the flows of the scenario that carry it."""

    video: tuple[str, ...]
    audio: tuple[str, ...]

    @property
    def flows(self) -> tuple[str, ...]:
        """All of them."""
        return self.video + self.audio


@dataclass(frozen=True)
class Case:
    """A test case; ``rmcat/README.md`` explains the keys of its file."""

    id: str
    section: str
    title: str
    about: str
    end: float
    capacity: Sequence[Sequence[float]]
    link: str
    back: Sequence[Sequence[float]]
    scenario: Mapping[str, Any]
    media: Sequence[Mapping[str, Any]]
    variants: Mapping[str, Mapping[str, Any]]
    bands: Sequence[Mapping[str, Any]]

    @property
    def references(self) -> list[str]:
        """The variants that others are compared with."""
        return [name for name, variant in self.variants.items() if "only" in variant]

    def bands_of(self, variant: str) -> list[Mapping[str, Any]]:
        """What is measured in a variant; in one for comparison, what is compared with it."""
        if variant in self.references:
            return [band for band in self.bands if "versus" in band]
        return [band for band in self.bands if variant in band.get("variants", [variant])]

    def reference(self, variant: str, versus: str) -> str:
        """The variant that a variant is compared with."""
        names = (f"{variant}, {versus}", versus)
        return next(name for name in names if name in self.variants)

    def phases(self) -> list[tuple[float, float, float]]:
        """Begin, end and capacity (s, s, Mbit/s) of each phase of the bottleneck."""
        ends = [at for at, _ in self.capacity[1:]] + [self.end]
        return [(at, end, rate) for (at, rate), end in zip(self.capacity, ends, strict=True)]


INHERITED = {
    "end": 0.0,
    "capacity": (),
    "link": "bottleneck",
    "back": (),
    "scenario": {},
    "media": (),
}
"""Keys that a case takes from its base, with the values they otherwise have."""


@dataclass
class Built:
    """A scenario of a case, with what is measured in it."""

    scenario: dict[str, Any]
    sets: list[tuple[str, Any]] = field(default_factory=list)
    media: list[Media] = field(default_factory=list)


@cache
def load() -> Mapping[str, Case]:
    """All cases by their number, in order."""
    found: dict[str, Case] = {}
    for file in sorted(FILES.iterdir(), key=lambda it: it.name):
        if file.name.endswith(".toml"):
            case = tomllib.loads(file.read_text(encoding="utf-8"))
            base = found.get(case.get("base", ""))
            inherited = {
                key: case.get(key, getattr(base, key, otherwise))
                for key, otherwise in INHERITED.items()
            }
            number = re.sub(r"\b(\d)-(\d)\b", r"\1.\2", file.name.removesuffix(".toml"))
            found[number] = Case(
                number,
                case["section"],
                case["title"],
                " ".join(case["about"].split()),
                variants=case["variants"],
                bands=[{**band, "why": " ".join(band["why"].split())} for band in case["bands"]],
                **inherited,
            )
    return found


def select(asked: Iterable[str]) -> list[Case]:
    """Cases by number: ``5.1``, ``6.2`` with its parts, ``8867`` or ``8869``; default: all.

    Raises:
        BadInputError: with everything that is no case.
    """
    faults, every = Faults(), load()
    chosen: dict[str, Case] = {}
    for text in asked:
        rest = text.removeprefix("8867-") or text
        found = {
            id: case
            for id, case in every.items()
            if id == rest
            or id.startswith(f"{rest}-")
            or (rest == "8867" and case.section.startswith("RFC 8867"))
        }
        faults.add(f"--case {text}: expected one of {', '.join(every)}, 8867 or 8869", unless=found)
        chosen |= found
    faults.check()
    return [case for id, case in every.items() if id in chosen or not chosen]


def unable(case: Case, variant: str, candidate: Candidate) -> str:
    """Why a candidate has not what a variant needs; empty if it has."""
    need = case.variants[variant].get("needs")
    if need is None:
        return ""
    why, able = NEEDS[need]
    # The profile of the authors' controller has no ECN.
    known = candidate.kind in able
    if need == "ecn" and (candidate.controller or {}).get("profile") == "ns3-rmcat":
        known = False
    return "" if known else why


def build(
    case: Case, variant: str, candidate: Candidate, sets: Sequence[tuple[str, Any]] = ()
) -> Built:
    """The scenario of a variant of a case, in which a candidate carries the media.

    A path of ``sets`` that begins with ``media.`` is of every video flow.
    """
    how = case.variants[variant]
    made = Built(copy.deepcopy(dict(case.scenario)))
    others = made.scenario.pop("flows", {})
    made.scenario = {
        "title": f"{case.section}: {case.title}; {variant}; {candidate.name}",
        "record": {"packets": True},
        **made.scenario,
        "flows": {},
    }
    media = [*how.get("media", case.media), *_at_radio(made.scenario, how)]
    for n, one in enumerate(media, 1):
        suffix = f"-{n}" if len(media) > 1 else ""
        _add_media(made, one, suffix, case.end, BULK if how.get("tcp") else candidate)
    flows = made.scenario["flows"]
    flows |= {**others, **copy.deepcopy(how.get("flows", {})), **_short(how.get("short", 0))}
    flows |= {
        f"other-{n}": {"from": f"other-{n}", "to": "fixed", **how["others"]}
        for n in range(1, 6)
        if "others" in how
    }
    _vary_capacity(case, how, made.scenario)
    videos = [name for one in made.media for name in one.video]
    wanted = [*how.get("set", {}).items()]
    if "needs" in how and not unable(case, variant, candidate):
        path, value, _ = NEEDS[how["needs"]][1][candidate.kind]
        # Of priorities, the first flow has the higher one.
        alone = how["needs"] == "priority"
        wanted.append((f"flows.{videos[0]}.{path}" if alone else f"media.{path}", value))
    if found := NEEDS[how["without"]][1].get(candidate.kind) if "without" in how else None:
        wanted.append((f"media.{found[0]}", found[2]))
    for path, value in (*wanted, *sets):
        if path.startswith("media."):
            made.sets += [
                (f"flows.{video}.{path.removeprefix('media.')}", value)
                for video in videos
                # A flow that shares a session has the controller of the other.
                if not (path.startswith("media.controller") and "session" in flows[video])
                # TCP in place of media is none.
                and not how.get("tcp")
            ]
        else:
            made.sets.append((path, value))
    return made


def _add_media(
    made: Built, one: Mapping[str, Any], suffix: str, end: float, candidate: Candidate
) -> None:
    """A media flow: video that the candidate carries, and audio of a constant rate beside it."""
    flows = made.scenario["flows"]
    ends = {"from": one.get("from", "sender"), "to": one.get("to", "receiver")}
    timing = {"start": f"{one.get('start', 0)}s", "stop": f"{one.get('stop', end)}s"}
    times = {suffix: timing | {key: one[key] for key in ("start_spread",) if key in one}}
    if "pause" in one:
        # A paused flow is two flows of the scenario.
        before, after = (f"{at}s" for at in one["pause"])
        times = {
            suffix: {**timing, "stop": before},
            f"{suffix}-resumed": {**timing, "start": after},
        }
    controlled = {} if candidate.controller is None else {"controller": candidate.controller}
    for ending, when in times.items():
        name = f"video{ending}"
        flows[name] = {**ends, **when, "transport": candidate.transport, "source": candidate.source}
        if ending != suffix and candidate.transport["kind"] == "udp":
            flows[name]["session"] = f"video{suffix}"
        else:
            flows[name] |= controlled
    audio = {} if candidate is BULK else {f"audio{it}": {**ends, **times[it]} for it in times}
    flows |= {name: {**its, **AUDIO_FLOW} for name, its in audio.items()}
    made.media.append(Media(tuple(f"video{it}" for it in times), tuple(audio)))


def _at_radio(scenario: dict[str, Any], how: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The stations of a cell with media flows up and down, and these flows."""
    up, down = how.get("up", 0), how.get("down", 0)
    count = up + down
    if not count:
        return []
    queue = {"queue": {"kind": "droptail", "bytes": f"{RADIO_QUEUE_BYTES // count}B"}}
    stations = {f"mn-{n}": queue for n in range(1, count + 1)}
    if "others" in how:
        stations |= {f"other-{n}": queue for n in range(1, 6)}
    scenario["cells"]["wifi"]["stations"] = stations
    step = SPREAD_S / max(count - 1, 1)
    return [
        {
            "from": f"mn-{n}" if n <= up else "fixed",
            "to": "fixed" if n <= up else f"mn-{n}",
            "start_spread": f"{SPREAD_S:g}s",
            "stop": round(110 + step * (n - 1), 3),
        }
        for n in range(1, count + 1)
    ]


def _short(count: int) -> dict[str, Any]:
    """Short TCP flows: downloads of 30 to 50 kB, a size each, and idle times (RFC 8868 §5.1)."""
    return {
        f"web-{n}": {
            "from": "sender",
            "to": "receiver",
            "stop": "250s",
            # Two begin with a download (RFC 8867 §5.7), the others after an idle time.
            **({"start_spread": "20s"} if n > 2 else {}),
            "transport": {"kind": "tcp", "controller": "newreno"},
            "source": {
                "kind": "web",
                "size": f"{30_000 + 20_000 * (n - 0.5) / count:.0f}B",
                "sizes": {"kind": "constant"},
                "think": "10s",
                "thinks": {"kind": "exponential"},
            },
        }
        for n in range(1, count + 1)
    }


def _vary_capacity(case: Case, how: Mapping[str, Any], scenario: dict[str, Any]) -> None:
    """Change the bottleneck's rate, or let sources without control take the rest of 4 Mbit/s."""
    back = how.get("back", case.back)
    if len(case.capacity) < 2:
        return
    link = scenario["links"][case.link]
    if how.get("by") != "traffic":
        link["steps"] = _steps(case.capacity)
        if back:
            link["back"] = {"rate": f"{back[0][1]}Mbit/s", "steps": _steps(back)}
        return
    link["rate"] = f"{LOAD:g}Mbit/s"
    _add_loads(scenario, "load", ("from", "to"), case.capacity)
    if back:
        link["back"] = {"rate": f"{LOAD:g}Mbit/s"}
        _add_loads(scenario, "load-back", ("to", "from"), back)


def _steps(capacity: Sequence[Sequence[float]]) -> list[dict[str, str]]:
    return [{"at": f"{at}s", "rate": f"{rate}Mbit/s"} for at, rate in capacity[1:]]


def _add_loads(
    scenario: dict[str, Any], name: str, ends: tuple[str, str], capacity: Sequence[Sequence[float]]
) -> None:
    link = scenario["links"]["bottleneck"]
    until = [f"{at}s" for at, _ in capacity[1:]] + [scenario["duration"]]
    for n, ((at, rate), stop) in enumerate(zip(capacity, until, strict=True)):
        if rate < LOAD:
            # Of 1000 bytes of an IP packet, 28 are headers.
            payload = (LOAD - rate) * 1e6 * 972 / 1000
            scenario["flows"][f"{name}-{n}"] = {
                "from": link[ends[0]],
                "to": link[ends[1]],
                "start": f"{float(at)}s",
                "stop": stop,
                "transport": {"kind": "udp"},
                "source": {"kind": "cbr", "rate": f"{payload:.0f}bit/s", "packet": "972B"},
            }
