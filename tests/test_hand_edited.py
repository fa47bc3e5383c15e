"""Results that somebody edited, damaged or copied in part: every command that reads one ends in a
result or in a sentence that names what is damaged, and never in a traceback."""

import functools
import json
import operator
import os
import random
import shutil
import struct
import sys
import warnings

import polars as pl
import pytest

import talkspurt as package
from captures import media, written
from command import succeed, talkspurt
from conftest import SCENARIO
from talkspurt import import_trace as imported
from talkspurt._commands import entry
from test_emulate import ASK, ECHO, NETWORK, real
from test_measure import SECRET, serving

SHORT = SCENARIO.replace('duration = "4s"', 'duration = "2s"')
STUDY = """
[[axes]]
name = "delay"
path = "links.sky.delay"
values = ["20ms", "200ms"]
[replications]
count = 2
"""
DESIGN = """
[design]
kind = "latin-hypercube"
samples = 4
[[design.factors]]
path = "links.sky.delay"
from = "20ms"
to = "200ms"
"""


def run(folder, place):
    asked = {"record.packets": True, "record.gauges": True}
    return package.run(folder / "small.toml", set=asked).save(place)


def study(folder, place):
    (place.parent / "study.toml").write_text(
        SHORT.replace("speech.wav", str(folder / "speech.wav")) + STUDY, encoding="utf-8"
    )
    return package.run(place.parent / "study.toml", study=True).save(place)


def import_(folder, place):
    call = [(i / 50, media(i, 160 * i)) for i in range(200) if i % 9]
    return imported([written(place.parent / "call.pcap", call)]).save(place)


def measurement(folder, place):
    with serving() as (port, _):
        done = talkspurt(
            "measure", f"127.0.0.1:{port}", "--both", "--for", "1s", "--traffic", "talkspurts",
            "--out", place, env=SECRET,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return place


def emulation(folder, place):
    (place.parent / "case.toml").write_text(NETWORK, encoding="utf-8")
    python = sys.executable, "-I", "-S", "-c"
    succeed(
        "emulate", place.parent / "case.toml", "--for", "3s", "--out", place,
        "--serve", "server", "--", *python, ECHO, "10.0.0.3",
        "--at", "laptop", "--", *python, ASK, "10.0.0.3", 40, 50, 0.02,
    )  # fmt: skip
    return place


KINDS = {
    "run": run, "study": study, "import": import_, "measurement": measurement,
    "emulation": pytest.param(emulation, marks=real),
}  # fmt: skip
COMMANDS = {
    "sheet": ("metrics", "{place}"),
    "table": ("metrics", "{place}", "--table"),
    "metric": ("metrics", "{place}", "mos", "--json"),
    "over time": ("metrics", "{place}", "goodput_over_time"),
    "packets": ("metrics", "{place}", "throughput"),
    "gauge": ("metrics", "{place}", "gauges.cwnd"),
    "links": ("metrics", "{place}", "links.queue_mean_packets"),
    "plot": ("plot", "{place}", "delay_p95_s", "-o", "{out}.svg"),
    "plot over time": ("plot", "{place}", "goodput_over_time", "-o", "{out}.svg"),
    "figure": ("plot", "{place}", "goodput", "-o", "{out}.svg"),
    "report": ("report", "{place}"),
    "open": ("open", "{place}"),
    "compare": ("compare", "{place}", "{other}", "--no-report", "--out", "{out}"),
    "compare reports": ("compare", "{place}", "{other}", "--out", "{out}"),
    "csv": ("export", "{place}", "--to", "csv", "--out", "{out}"),
    "parquet": ("export", "{place}", "--to", "parquet", "--out", "{out}"),
}


def cells(frame, column):
    """Other values for the first row of a column, the column without values, and in other types."""
    kind = frame.schema[column]
    others = {pl.String: ["nonsense", "=1+1", "<b>"], pl.Int64: [-1, -(2**63), 2**62, 10**9],
              pl.Float64: [float("nan"), float("inf"), -1e9, 1e300, 1e12]}[kind]  # fmt: skip
    for value in (*others, None):
        yield f"{value}", pl.concat([pl.Series([value], dtype=kind), frame[column][1:]])
    yield "as in the last row", pl.concat([frame[column][-1:], frame[column][1:]])
    yield "no values", pl.Series([None] * frame.height, dtype=kind)
    for other in (pl.String, pl.Int64, pl.Float64, pl.Boolean)[: 3 if kind == pl.String else 4]:
        if other == kind:
            continue
        yield f"{other}", frame[column].cast(other, strict=False)
    yield "lists", frame[column].map_elements(lambda value: [value], return_dtype=pl.List(kind))


def tables(file):
    """A table without a column, with another value, without rows, and with rows twice."""
    frame = pl.read_parquet(file, glob=False)
    for column in frame.columns:
        yield f"{column} removed", lambda c=column: frame.drop(c).write_parquet(file)
        for words, values in cells(frame, column):
            changed = frame.with_columns(values.alias(column))
            yield f"{column} {words}", lambda f=changed: f.write_parquet(file)
    yield "no rows", lambda: frame.clear().write_parquet(file)
    yield "one row", lambda: frame.head(1).write_parquet(file)
    yield "all but the first row", lambda: frame[1:].write_parquet(file)
    yield "all rows twice", lambda: pl.concat([frame, frame]).write_parquet(file)
    yield "first row twice", lambda: pl.concat([frame[:1], frame]).write_parquet(file)
    yield "last row twice", lambda: pl.concat([frame, frame[-1:]]).write_parquet(file)


def leaves(value, at=()):
    """Places in a JSON document: all in objects, the first in lists."""
    yield at
    if isinstance(value, dict):
        for key in value:
            yield from leaves(value[key], (*at, key))
    if isinstance(value, list) and value:
        yield from leaves(value[0], (*at, 0))


OTHERS = [..., None, True, -1, 0, 1e308, 10**30, float("nan"), [], ["x"], {}, {"x": 1}]
OTHERS += ["x", "", "\ud800", "\0"]


def documents(file):
    """A JSON file without one of its values, with another in its place, or with entries of a list twice."""
    text = file.read_text(encoding="utf-8")

    def changed(at, value):
        found = json.loads(text)
        inner = found
        for key in at[:-1]:
            inner = inner[key]
        if value is ...:
            del inner[at[-1]]
        else:
            inner[at[-1]] = value
        file.write_text(json.dumps(found), encoding="utf-8")

    for at in leaves(json.loads(text)):
        there = functools.reduce(operator.getitem, at, json.loads(text))
        again = isinstance(there, list) and there and [[*there, there[0]], there[:1] * len(there)]
        for value in (*(again or ()), *OTHERS):
            if at:
                words = ".".join(map(str, at))
                yield f"{words} {value!r}", lambda at=at, value=value: changed(at, value)
    yield "infinite", lambda: file.write_text(text.replace("{", '{"x": 1e999, ', 1))
    yield "deep", lambda: file.write_text("[" * 100_000)


def sounds(file):
    """A recording with another header, or half a sample more."""
    data = file.read_bytes()
    for at, form, values in ((20, "<H", (0, 3)), (22, "<H", (0, 3, 65535)), (24, "<I", (0, 1, 2**32 - 1)),
                             (34, "<H", (0, 8, 24)), (40, "<I", (0, 3, 2**32 - 1))):  # fmt: skip
        for value in values:
            changed = bytearray(data)
            struct.pack_into(form, changed, at, value)
            yield f"{value} at {at}", lambda c=changed: file.write_bytes(bytes(c))
    yield "no samples", lambda: file.write_bytes(data[:40] + bytes(4))
    yield "odd", lambda: file.write_bytes(data + b"x")


def contents(file):
    """Anything in place of the file."""
    data = file.read_bytes()

    def folder():
        file.unlink()
        file.mkdir()

    def huge():
        os.truncate(file, 6 << 30)

    yield "missing", file.unlink
    yield "folder", folder
    yield "huge", huge
    for words, other in {
        "empty": b"", "half": data[: len(data) // 2], "not UTF-8": b"\xff\xfe" + data,
        "zeros": bytes(len(data)), "text": b"title = 'x'\n", "list": b"[]", "tail": data[9:],
    }.items():  # fmt: skip
        yield words, lambda other=other: file.write_bytes(other)


OF = {".parquet": tables, ".json": documents, ".wav": sounds}


def damages(place):
    """Everything that is done to a folder: words, and what does it."""
    files = [file for file in sorted(place.rglob("*")) if file.is_file()]
    read_ones = [f for f in files if f.suffix in (".parquet", ".json", ".wav", ".toml")]
    if (place / "runs").is_dir():
        # The runs of a study are alike.
        first = sorted((place / "runs").iterdir())[0]
        read_ones = [f for f in read_ones if "runs" not in f.relative_to(place).parts
                     or f.is_relative_to(first)]  # fmt: skip
    for file in read_ones:
        name = file.relative_to(place)
        for make in (contents, *([OF[file.suffix]] if file.suffix in OF else [])):
            for words, harm in make(file):
                yield f"{name}: {words}", harm


def called(words, monkeypatch):
    """A command in this process: its exit code, or the exception that would be a traceback."""
    monkeypatch.setattr(sys, "argv", ["talkspurt", *map(str, words)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return entry._code()


SENTENCES = (
    "is damaged: ", "is missing", "is not a manifest of talkspurt", "there is no result of talkspurt",
    "reads format", "not a result", "has no report", "cannot be repeated", "cannot be done again",
    "does not set record.packets", "no value",
)  # fmt: skip


def judged(place, words, harm, command, monkeypatch, capsys):
    """Do harm to a folder and run a command: 0, None if it says what is damaged, or what is wrong."""
    given = {"place": place, "other": place.parent / "other", "out": place.parent / "out"}
    harm()
    capsys.readouterr()
    try:
        code = called([word.format(**given) for word in COMMANDS[command]], monkeypatch)
    except BaseException as error:
        return f"{words}: {command}: {type(error).__name__}: {error}"
    said = capsys.readouterr().err
    # Behind what was shown of the progress.
    told = said.splitlines()[-1:] != [] and said.splitlines()[-1].startswith("talkspurt: ")
    if code and not (told and any(sentence in said for sentence in SENTENCES)):
        return f"{words}: {command}: {code}: {said}"
    return 0 if not code else None


@pytest.fixture(scope="module", params=KINDS.values(), ids=KINDS)
def saved(request, folder, tmp_path_factory):
    return request.param(folder, tmp_path_factory.mktemp("edited") / "out")


SAMPLES = 25
"""Pairs of a damage and a command that are tried; all of them take hours."""


def test_no_damage_ends_in_a_traceback(saved, tmp_path, monkeypatch, capsys):
    place = shutil.copytree(saved, tmp_path / "place")
    shutil.copytree(saved, tmp_path / "other")
    every = list(damages(place))
    assert len(every) > 1000
    draw = random.Random(len(every))
    fine = [c for c in COMMANDS if judged(place, "", lambda: None, c, monkeypatch, capsys) == 0]
    assert len(fine) > 10
    wrong = []
    for words, harm in draw.sample(every, SAMPLES):
        shutil.rmtree(place)
        shutil.copytree(saved, place)
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        command = draw.choice(fine)
        wrong.append(judged(place, words, harm, command, monkeypatch, capsys))
    assert not list(filter(None, wrong))
