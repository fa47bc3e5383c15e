"""Checks of a saved result, before anything uses what was read: shapes of JSON, columns of tables.

Every check raises ValueError; :func:`talkspurt._storage.file_access.reading` adds the file and says
that it is damaged. What passes is what a run could have written, as far as readers rely on it.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from talkspurt._lazy import pl
from talkspurt.metrics import dictionary
from talkspurt.metrics.dictionary import MAX_EXACT, MAX_U64
from talkspurt.results.manifest import Manifest, StudyManifest
from talkspurt.scenarios.resolved import routed

Test = Callable[[Any], bool]
"""Whether a value is what it must be."""
Shape = Any
"""A type; a :data:`Test`; a list of one shape, for lists; a tuple of shapes, for lists of that
length; or a dict of shapes, for objects. A key that ends in ``?`` may be absent; the key ``*``
stands for all others, which are ignored without it."""

MAX_RUN_S = 78 * 3600
"""The longest run, as the engine has it."""
MAX_BESIDE_S = 3600
"""Times may lie so far outside of a run: captured before it began, to be played after its end."""
MAX_FLOWS = 10_000_000
MAX_RUNS = 10_000_000


def count(value: Any) -> bool:
    """A number of things, or a seed."""
    return type(value) is int and 0 <= value < 2**63


def number(least: float = 0.0, most: float = MAX_EXACT) -> Test:
    """A finite number from ``least`` to ``most``."""
    return lambda value: type(value) in (int, float) and least <= value <= most


def text(pattern: str) -> Test:
    """A text that matches a regular expression as a whole."""
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def maybe(shape: Shape) -> Test:
    """The shape, or null."""
    return lambda value: value is None or not any(_faults(value, shape, ""))


def check(value: Any, shape: Shape) -> None:
    """Raise ValueError at the first part of a JSON document that has another shape."""
    for fault in _faults(value, shape, ""):
        raise ValueError(fault)


def _faults(value: Any, shape: Shape, at: str) -> Iterator[str]:
    """What is wrong with a value; ``at`` is its place, with dots."""
    inner = f"{at}." if at else ""
    fits = True
    if isinstance(shape, dict):
        fits = isinstance(value, dict)
        for key, of in shape.items() if fits else ():
            name = key.removesuffix("?")
            if key == "*":
                for other in value:
                    if other not in shape and f"{other}?" not in shape:
                        yield from _faults(value[other], of, f"{inner}{other}")
            elif name in value:
                yield from _faults(value[name], of, f"{inner}{name}")
            elif name == key:
                yield f"{inner + name!r} is missing"
    elif isinstance(shape, (list, tuple)):
        alike = isinstance(shape, list)
        fits = isinstance(value, list) and (alike or len(value) == len(shape))
        for place, one in enumerate(value if fits else ()):
            yield from _faults(one, shape[0 if alike else place], f"{inner}{place}")
    else:
        fits = isinstance(value, shape) if isinstance(shape, type) else shape(value)
    if not fits:
        yield f"{at or 'it'!r} is not what it must be"


def _runs(value: Any) -> bool:
    return count(value) and 1 <= value <= MAX_RUNS


_COLOUR = text("#[0-9A-Fa-f]{6}")
"""A colour as a scenario gives it: pages and pictures contain it as it is."""
_KIND = text("String|Int64|Float64")
_FILE_NAME = text(r"(?!\.{1,2}\Z)[^/\0]+")
_INSIDE = text(r"runs/(?!\.{1,2}\Z)[^/]+")
"""The folder of a run in that of its study: not a place elsewhere."""
_TEXTS = {"*": str}
_PACKETS = {"*": maybe(number(-MAX_EXACT))}
_SAID = {
    "talkspurt": str, "name": str, "title": str, "description": str, "file?": maybe(str),
    "set?": _TEXTS, "files?": [str],
}  # fmt: skip
RESULT: Shape = {
    **_SAID,
    "settings": _TEXTS, "replicate": count, "seed": count, "digest": maybe(str),
    "duration_s": number(1e-9, 1e8), "hops": count, "cpu_s": number(),
    "made_of": {"engine?": str, "scenario": str, "files?": _TEXTS},
    "empty_tables?": {"*": {"*": _KIND}},
    "speech_start_s?": {"*": maybe(number(-MAX_RUN_S, MAX_RUN_S))},
    "excerpt?": {"begins": str, "from_s": number(-MAX_RUN_S), "to_s": number(-MAX_RUN_S)},
    "imported?": {"notes": [str], "not_imported": {"*": count}},
    "measured?": {"call?": dict},
    "real_time?": {
        "hosts": [
            {
                "node": str, "device": maybe(_PACKETS), "killed": bool, "failure": maybe(str),
                "read_packets": count, "written_packets": count, "refused_packets": count,
                "malformed_packets": count, "unroutable_packets": count, "*": maybe(count),
            }
        ],
        "lateness": {"packets": count, "*": maybe(number())},
        "window_s?": (number(), number()),
        "commands": [
            {"node": str, "command": [str], "status": maybe(number(-MAX_EXACT)), "stopped": bool}
        ],
        "priority": str, "uncaptured_packets": count,
    },
}  # fmt: skip
_AXIS = {
    "name": str, "path": str, "labels": [str], "unit?": maybe(str), "factor?": maybe(str),
    "numbers?": maybe([number(-MAX_U64, MAX_U64)]),
}  # fmt: skip
STUDY: Shape = {
    **_SAID,
    "axes": [_AXIS], "replications": _runs, "confidence": number(1e-6, 1 - 1e-6), "set": _TEXTS,
    "runs": [{"folder": _INSIDE}],
    "design?": maybe({"kind": str, "samples": count, "indices": bool, "points": count}),
}  # fmt: skip
SHARD: Shape = {
    **STUDY,
    "name": _FILE_NAME,
    "study": str, "engine": str, "shard": _runs, "shards": _runs, "total": _runs,
    "runs": [{"run": count, "folder": _INSIDE, "digest": str}],
}  # fmt: skip

_DIRECTION = {
    "rate_bps?": maybe(number(most=MAX_U64)), "delay_s?": maybe(number()),
    "jitter_s?": maybe(number()), "queue?": maybe(str), "loss?": maybe(number(0, 1)),
    "bursts?": bool, "bit_error_rate?": maybe(number(0, 1)), "changes?": bool,
}  # fmt: skip
_LINK = {
    **{key.removesuffix("?"): shape for key, shape in list(_DIRECTION.items())[:5]},
    **dict(list(_DIRECTION.items())[5:]),
    "name": str, "from": str, "mtu": maybe(count), "fails?": bool, "back?": _DIRECTION,
    "contends?": bool,
}  # fmt: skip
_HOPS = [[str]]
_SPEECH = maybe(
    {"bytes": count, "interval_s": number(1e-9, 3600), "look_ahead_s": number(most=3600)}
)
TOPOLOGY: Shape = {
    "nodes": [{"name": str, "colour": maybe(_COLOUR)}],
    "links": [{**_LINK, "to": str}],
    "access_points": [{**_LINK, "to": [str]}],
    "flows": [
        {
            "name": str, "transport": str, "from": str, "to": str, "routes": _HOPS,
            "back": _HOPS, "links": {"from": _HOPS, "to": _HOPS}, "speech": (_SPEECH, _SPEECH),
            "members?": (str, count, count),
        }
    ],
}  # fmt: skip


def result(manifest: Any, scenario: str, hashed: str) -> Manifest:
    """The manifest of a run, checked, also that it is the scenario's."""
    check(manifest, RESULT)
    is_real = not {"real_time", "measured"}.isdisjoint(manifest)
    check(manifest, {"digest": (lambda value: value is None) if is_real else str})
    if "imported" in manifest:
        told = re.search(r'^duration = "([0-9.]+)s"$', scenario, re.MULTILINE)
        longest = float(told[1]) if told else 0.0
        is_long = abs(manifest["duration_s"] - longest) > 1e-6
    else:
        is_long = manifest["duration_s"] > MAX_RUN_S
    if is_long:
        raise ValueError("'duration_s' is not what it must be")
    if manifest["made_of"]["scenario"] != hashed:
        raise ValueError("its scenario.toml is not the one that it was made of")
    return cast("Manifest", manifest)


def study(manifest: StudyManifest, settings: Sequence[tuple[Mapping[str, str], int]]) -> None:
    """Check the manifest of a study, whose runs have these settings and replicates."""
    axes = {axis["name"]: axis["labels"] for axis in manifest["axes"]}
    _unlike("axes", [axis["name"] for axis in manifest["axes"]])
    for axis in manifest["axes"]:
        _unlike(f"values of the axis {axis['name']!r}", axis["labels"])
        numbers = axis.get("numbers")
        if numbers is not None and len(numbers) != len(axis["labels"]):
            raise ValueError(f"the axis {axis['name']!r} has other numbers than labels")
    _unlike("runs", [run["folder"] for run in manifest["runs"]])
    if not settings:
        raise ValueError("it has no runs")
    for place, (chosen, replicate) in enumerate(settings):
        fits = chosen.keys() == axes.keys() and all(chosen[name] in axes[name] for name in axes)
        if not fits or replicate >= manifest["replications"]:
            raise ValueError(f"its run {place} has other settings than its axes, or replications")
    _complete(manifest, settings)


def _unlike(what: str, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise ValueError(f"two {what} are the same")


def _complete(
    manifest: Mapping[str, Any], settings: Sequence[tuple[Mapping[str, str], int]]
) -> None:
    """Check that every combination of the axes has all points of the design and replications."""
    listed = [axis for axis in manifest["axes"] if axis.get("factor") is None]
    points = (manifest.get("design") or {"points": 1})["points"]
    replications = manifest["replications"]
    total = math.prod(len(axis["labels"]) for axis in listed) * points * replications
    if len(settings) != total:
        raise ValueError(f"it has {len(settings)} runs, and its axes and replications {total}")
    found = Counter((*(run[axis["name"]] for axis in listed), k) for run, k in settings)
    # Points of a design can be alike, and each has every replication.
    whole = Counter((frozenset(run.items()), k) for run, k in settings)
    alike = all(whole[run, 0] == many for (run, _), many in whole.items())
    if max(found.values()) > points or not alike:
        raise ValueError("a run is there twice, and another is missing")
    for axis in manifest["axes"]:
        if len({run[axis["name"]] for run, _ in settings}) < len(axis["labels"]) and (
            axis.get("factor") != "values"
        ):
            raise ValueError(f"the axis {axis['name']!r} has a value without a run")


def topology(found: Any) -> dict[str, Any]:
    """The description of a network as read, with all flows."""
    check(found, TOPOLOGY)
    links = (*found["links"], *found["access_points"])
    for what, every in (("nodes", found["nodes"]), ("links", links)):
        if len({one["name"] for one in every}) < len(every):
            raise ValueError(f"two {what} have the same name")
    known, hops = {node["name"] for node in found["nodes"]}, _links(found)
    for link in links:
        _known(known, "node", [link["from"]])
        _known(known, "node", link["to"] if isinstance(link["to"], list) else [link["to"]])
    flows = 0
    for flow in found["flows"]:
        _known(known, "node", [flow["from"], flow["to"]])
        for route in (*flow["routes"], *flow["back"]):
            _known(known, "node", route)
        for route in (*flow["links"]["from"], *flow["links"]["to"]):
            _known(hops, "link", route)
        _, first, last = flow.get("members", ("", 1, 1))
        flows += last - first + 1
        if last < first or flows > MAX_FLOWS:
            raise ValueError(f"{flow['name']!r} has other members than a group can have")
    return routed({key: found[key] for key in TOPOLOGY})


def _known(names: Iterable[str], what: str, used: Iterable[str]) -> None:
    for name in used:
        if name not in names:
            raise ValueError(f"there is no {what} {name!r}")


def _links(found: Mapping[str, Any]) -> frozenset[str]:
    names = [link["name"] for link in (*found["links"], *found["access_points"])]
    return frozenset([*names, *(f"{name}.back" for name in names)])


class Known:
    """What tables of runs can name, read when it is asked for.

    Attributes:
        duration_s: length of the longest run.
        own: whether this version wrote them, which knows all their columns.
    """

    def __init__(self, duration_s: float, *networks: Mapping[str, Any], own: bool = True) -> None:
        self.duration_s, self.own = duration_s, own
        self._networks = networks

    @classmethod
    def union(cls, every: Sequence[Known]) -> Known:
        """What tables of several runs can name."""
        # Runs share the description of a network.
        networks = {id(network): network for one in every for network in one._networks}
        longest = max(one.duration_s for one in every)
        return cls(longest, *networks.values(), own=all(one.own for one in every))

    def named(self, table: str) -> Iterator[str]:
        """Names of flows or links as in the network, without those of other directions."""
        for network in self._networks:
            if table == "flows":
                yield from network["flows"].names
            else:
                yield from (link["name"] for link in (*network["links"], *network["access_points"]))

    @functools.cached_property
    def flows(self) -> frozenset[str]:
        """Names of flows, in both directions."""
        names = [*self.named("flows")]
        return frozenset([*names, *(f"{name}.reverse" for name in names)])

    @functools.cached_property
    def links(self) -> frozenset[str]:
        """Names of links, in both directions."""
        return frozenset().union(*map(_links, self._networks))


SIDES = ("from", "to")
STAND_IN = "^[^;]+: [^;]+(; [^;]+: [^;]+)*$"


def table(name: str, frame: pl.DataFrame, known: Known, of: str | None = None) -> pl.DataFrame:
    """The table of a run, checked as by :func:`check_table`.

    Columns that another version did not have are null, but those of the series, from which metrics
    over time are computed: they say which one they lack.
    """
    check_table(name, frame.lazy(), known, of)
    if name == "series":
        return frame
    kinds = {c: kind for c, kind in dictionary.kinds(name).items() if c not in frame.columns}
    return frame.with_columns(
        pl.lit(None, getattr(pl, kind)).alias(column)
        for column, kind in kinds.items()
        if column not in dictionary.ON_REQUEST
    )


def check_table(name: str, lazy: pl.LazyFrame, known: Known, of: str | None = None) -> None:
    """Check a table of a run: its columns and their types, that numbers are finite and possible.

    ``of`` is the column of the run, in a table of several, whose names are left to
    :func:`check_names`.
    """
    there, always = lazy.collect_schema(), dictionary.always(name)
    tests: dict[str, pl.Expr] = {}
    for column, kind in dictionary.kinds(name).items():
        if column not in there:
            if column in dictionary.ON_REQUEST or not (known.own or column in always):
                continue
            raise ValueError(f"the column {column!r} is missing")
        if there[column] != getattr(pl, kind):
            raise ValueError(f"the column {column!r} holds {there[column]}, not {kind}")
        if column in always:
            tests[f"{column!r} has a row without a value"] = pl.col(column).is_null().any()
        tests |= _tests(name, column, kind, known)
    found = lazy.select(test.alias(words) for words, test in tests.items()).collect()
    for words, is_so in zip(tests, found.row(0), strict=True):
        if is_so:
            raise ValueError(f"the column {words}")
    if name in dictionary.KEYS:
        _check_keys(name, lazy, of)
    if name in WHOLE and of is None:
        check_names(name, lazy.select("name").collect()["name"], known)


def _tests(name: str, column: str, kind: str, known: Known) -> dict[str, pl.Expr]:
    """What is wrong with the values of a column if it is true."""
    values = pl.col(column)
    if kind != "String":
        least, most = dictionary.bounds(name)[column]
        if column in dictionary.INSTANTS:
            least, most = -MAX_BESIDE_S, known.duration_s + MAX_BESIDE_S
        words = f"{column!r} has a value outside of {least:g} to {most:g}"
        inside = {words: ~values.is_between(least, most).all()}
        if kind == "Int64":
            return inside
        return {f"{column!r} has a value that is not finite": ~values.is_finite().all(), **inside}
    if column == "stand_in":
        words = f"{column!r} has another form than 'CODEC: CODEC; …'"
        return {words: ~values.str.contains(STAND_IN).all()}
    named = name.removesuffix("s") if column == "name" else column
    if named not in ("side", "flow", "link"):
        return {}
    among = SIDES if named == "side" else known.flows if named == "flow" else known.links
    words = f"{column!r} has a name that is not among those of the run"
    return {words: ~values.is_in(list(among)).all()}


def _check_keys(name: str, lazy: pl.LazyFrame, of: str | None) -> None:
    keys = dictionary.KEYS[name]
    runs = [] if of is None else [of]
    if len(keys) == 2:
        # Rows as a run writes them need only be compared with those before them.
        owner, column = pl.struct(*runs, keys[0]) if runs else pl.col(keys[0]), pl.col(keys[1])
        same = pl.all_horizontal(
            pl.col(one) == pl.col(one).shift() for one in (*runs, keys[0])
        ).fill_null(value=False)
        rises = (~same | (column > column.shift())).fill_null(value=False).all()
        if lazy.select(rises & ((~same).sum() == owner.n_unique())).collect().item():
            return
    if lazy.select(pl.struct(*runs, *keys).is_duplicated().any()).collect().item():
        raise ValueError(f"two rows have the same {' and '.join(keys)}")


WHOLE = {"flows": ".reverse", "links": ".back"}
"""Tables with a row for each flow or link, and the ending of the name of its other direction."""


def check_names(table: str, names: Iterable[str], known: Known) -> None:
    """Check that each flow or link of a run is among the names of its table, in some direction."""
    there = set(names)
    if table == "links" and not there:
        return  # a measurement sees none
    for name in known.named(table):
        if name not in there and name + WHOLE[table] not in there:
            raise ValueError(f"{name!r} has no row")
