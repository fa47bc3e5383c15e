"""The studies as they run: one document, known values, and pages a stranger can check a row from."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import threading
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean

import numpy as np
import polars as pl
import pytest

import talkspurt
from command import needs_ns, refused, succeed
from talkspurt import reproduce
from talkspurt.reproduce import (
    NAMES,
    Reproduction,
    dossier,
    formulas,
    hops,
    lab,
    ns2,
    running,
    sarao2019,
    study_file,
)
from talkspurt.reproduce.rows import CANNOT_FOLLOW, CLASSES, GIVEN, MATCHES
from texts import UDP, cbr, flow_text, link_text

KEYS = ["id", "quantity", "unit", "paper", "stated", "inferred", "ns2", "verdict", "reason"]
MORE = ["given", "of", "restates", "changed_after_runs"]
MORE += [f"{who}_{what}" for who in ("stated", "inferred") for what in ("replications", "interval")]


Found = dict[str, Reproduction]


@pytest.fixture(scope="module")
def four() -> Found:
    """Four studies; the fifth takes as long as they together and has a test of its own."""
    names = [name for name in NAMES if name != "maldonado2005"]
    return {one.file.name: one for one in reproduce.reproduce(names)}


@pytest.fixture(scope="module")
def the_long() -> Reproduction:
    return reproduce.reproduce(["maldonado2005"])[0]


@pytest.fixture(scope="module")
def every(four: Found, the_long: Reproduction) -> list[Reproduction]:
    return [*four.values(), the_long]


def row(found: Found, id: str):
    name, _, rest = id.partition("/")
    return next(row for row in found[name].rows if row.spec.id == rest)


def test_the_command_prints_one_document_and_nothing_else() -> None:
    done = succeed("reproduce", "sarao2019", "--json")
    document = json.loads(done.stdout)
    assert list(document) == ["study", "rows"]
    assert document["study"] == "sarao2019"
    ids = [row["id"] for row in document["rows"]]
    assert len(set(ids)) == len(ids) > 50
    for found in document["rows"]:
        assert list(found) == KEYS + MORE
        assert found["verdict"] in CLASSES
        assert found["reason"].endswith(".")
        assert isinstance(found["unit"], str) and found["paper"] is not None
        for key in ("stated", "inferred", "ns2"):
            assert found[key] is None or isinstance(found[key], float | str)
        for whose in ("stated", "inferred"):
            interval, value = found[f"{whose}_interval"], found[whose]
            if found[f"{whose}_replications"] < 2 or value is None or isinstance(value, str):
                assert interval is None
            else:
                assert interval[0] <= value <= interval[1]


def test_an_unknown_study_is_refused() -> None:
    done = refused("reproduce", "nor2011")
    assert "nor2010" in done.stderr + done.stdout


def test_several_studies_are_one_document(four: Found) -> None:
    document = reproduce.document(list(four.values()), "all")
    json.dumps(document, allow_nan=False)
    assert document["study"] == "all"
    assert {row["id"].split("/")[0] for row in document["rows"]} == set(four)


@pytest.mark.parametrize(
    ("id", "value"),
    [
        # Printed by the study, to the digit; each from what its own wiring must have been.
        ("sarao2019/table3/tcp", 611.108),
        ("sarao2019/table3/udp", 54.0),
        ("sarao2019/table3/tfrc", 82.25),
        ("sarao2019/table3/dccp", 52.75),
        ("sarao2019/table2/length/tcp", 10.3887),
        ("sarao2019/table2/generated-packets/tcp", 674.0),
        ("sarao2019/table2/sent-packets/tcp", 638.0),
        ("sarao2019/table2/received-packets/tcp", 634.0),
        ("sarao2019/table2/generated-packets/udp", 992.0),
        ("sarao2019/table2/length/sctp", 10.39787),
        ("sarao2019/table2/generated-packets/sctp", 204.0),
        ("sarao2019/table2/received-packets/sctp", 202.0),
        ("sarao2019/table2/generated-bytes/sctp", 150808.0),
        ("sarao2019/table3/sctp", 81.9691),
        # ns-2.35's with the same parameters.
        ("wheeb2017/table3/data/udp", 799.78),
        ("wheeb2017/table4/data/udp", 0.10846),
        ("nor2010/fig8/20", 20.5),
    ],
)
def test_known_values(four: Found, id: str, value: float) -> None:
    assert row(four, id).ours.value == pytest.approx(value, rel=2e-3)


@pytest.mark.parametrize(
    ("id", "band"),
    [
        # What the kernel's sender makes of its first loss, a second of queue before it.
        ("full/x-calc", 0.1),
        ("full/p", 0.15),
        ("full/rtt", 0.15),
        ("full/first-loss", 0.1),
        ("full/rtt-peak", 0.05),
        ("full/recovers", 0.05),
        ("3min/x-calc", 0.01),
        ("3min/rtt-load", 0.02),
        ("cbr2/rtt", 0.02),
    ],
)
def test_a_linux_kernel_does_the_same_on_the_same_wire(four: Found, id: str, band: float) -> None:
    theirs = study_file.recorded("renker2008", "linux")["values"][id]
    ours = row(four, f"renker2008/{id}").ours
    assert ours.value == pytest.approx(theirs, rel=band)


def test_the_notes_own_example_of_the_equation(four: Found) -> None:
    found = row(four, "renker2008/equation/x-calc")
    assert found.stated.value == pytest.approx(753, abs=1)


def test_what_cannot_be_is_said_to(four: Found) -> None:
    for id, words in (
        ("sarao2019/table3/dccp", "shorter than the link's"),
        ("nor2010/fig9/delay-stable", "shorter than the link's"),
        ("wheeb2017/table3/voip/sctp", "above the 64 kb/s"),
        ("nor2010/fig3/tcp-starved", "leave 400 kb/s"),
        ("wheeb2017/fig7/lowest", "and DCCP has 0.128799 s"),
    ):
        found = row(four, id)
        assert found.verdict == "cannot follow from the stated parameters", id
        assert words in found.reason, id


def test_nothing_cannot_follow_but_what_a_check_says(every: list[Reproduction]) -> None:
    inputs = set()
    for one in every:
        facts = one.file.facts
        for each in one.rows:
            found = formulas.impossible(each.spec, facts)
            assert all(sentence in each.reason for sentence in found)
            if found and each.verdict == GIVEN:
                inputs.add(f"{one.file.name}/{each.spec.id}")
            else:
                assert bool(found) == (each.verdict == CANNOT_FOLLOW), each.spec.id
    # Inputs that contradict the text or a standard; of any other row a finding is the verdict.
    assert inputs == {
        f"maldonado2005/{id}"
        for id in ("codec/g729", "fig5/load/16", "fig5/load/50", "fig5/load/100", "fig6/load/25")
    }


def test_each_row_that_rests_on_computed_packets_says_so(four: Found) -> None:
    """Other packets in place of the computed ones change the rows that rest on them."""
    one = four["sarao2019"]
    runs = {"UDP": "udp-inferred", "TFRC": "tfrc-without-feedback", "DCCP": "dccp-unanswered"}
    frames = {protocol: compute() for protocol, compute in sarao2019.COMPUTED.items()}
    frames |= {p: sarao2019.wired(p, one.run(name).packets) for p, name in runs.items()}
    rng = np.random.default_rng(1)

    def values(of: dict[str, pl.DataFrame]) -> dict[str, object]:
        parts = {f"{protocol.lower()}-stated": frame for protocol, frame in of.items()}
        return formulas.of_parts("sarao2019", "stated", parts)

    def other(frame: pl.DataFrame) -> pl.DataFrame:
        late = rng.uniform(0.05, 1, frame.height) * rng.uniform(0, 1, frame.height) ** 3
        took = (frame["received_s"] - frame["enqueued_s"]).to_numpy()
        kind = rng.integers(4)
        if kind == 1:  # evenly less
            late = 0.2 - frame["enqueued_s"].to_numpy() / 100 - took
        elif kind == 2:  # less than of any other protocol
            late = 0.001 - took
        elif kind == 3:  # from 0.5 s on more than of any other, and later few arrive
            began = frame["enqueued_s"].to_numpy()
            late = np.where(began > 0.5, 0.9 - took, 0)
            late[(began > 2) & (np.arange(frame.height) % 12 > 0)] = np.nan
        scale = rng.choice([0, 0.02, 0.5, 50])
        return frame.with_columns(
            (pl.col("bytes") * scale).ceil().cast(pl.Int64) + rng.choice([1, 99]),
            pl.col("enqueued_s") + 0.01,
            pl.col("received_s") + pl.Series(late, nan_to_null=True),
        ).gather_every(int(rng.integers(1, 4)))

    before = values(frames)
    documents = {each["id"].partition("/")[2]: each for each in one.to_json()["rows"]}
    for protocol in ("TCP", "SCTP"):
        rest = set()
        for _ in range(40):
            after = values(frames | {protocol: other(frames[protocol])})
            rest |= {id for id, value in before.items() if value != after[id]}
        said = set()
        for id, each in documents.items():
            found = re.search(r"What is inferred of ([A-Z and]+) is computed event", each["reason"])
            if found and protocol in found[1].split():
                said.add(id)
        assert len(rest) > 15
        assert rest & set(documents) <= said, sorted(rest - said)
        # UDP's jitter is 0, so that no other packets can have less.
        assert said - rest <= {"fig4/lowest"}, sorted(said - rest)


def test_what_restates_an_input_is_no_match(every: list[Reproduction]) -> None:
    rows = [row for one in every for row in one.rows]
    given = [row for row in rows if row.verdict == GIVEN]
    assert given and all(row.spec.given for row in given)
    ids = {row.spec.id for row in rows if row.verdict == MATCHES}
    assert not ids & {"codec/g711", "table2/sending-nodes/udp", "equation/x-calc"}
    assert {"table3/udp", "fig8/20"} <= ids


def by_ccid3(*runs: talkspurt.Result) -> float:
    """As the dossier of nor2010 has it; a bin bears the time of its end."""
    late = (run.series().filter(pl.col("time_s") > 30) for run in runs)
    both = [bins.filter(pl.col("flow").str.starts_with("call")) for bins in late]
    two, three = (bins["received_packets"].sum() for bins in both)
    return two / three


def end_to_end(run: talkspurt.Result) -> float:
    """As the dossier of wheeb2017 has it."""
    data = run.packets("traffic").filter(pl.col("side") == "from", pl.col("ip_bytes") > 100)
    first = data.filter(link="in").select("number", pl.col("enqueued_s").alias("sent"))
    last = data.filter(link="out").select("number", "received_s").drop_nulls()
    whole = last.join(first, on="number")
    return (whole["received_s"] - whole["sent"]).mean()


def so_far(run: talkspurt.Result) -> float:
    """As the dossier of sarao2019 has it."""
    arrived = run.packets("voice").drop_nulls("received_s").sort("received_s")
    delays = (arrived["received_s"] - arrived["enqueued_s"]).to_list()
    early = [d for d, at in zip(delays, arrived["received_s"], strict=True) if at <= 2.1]
    return fmean(delays) / fmean(early)


def fallen(run: talkspurt.Result) -> float:
    """As the dossier of maldonado2005 has it."""
    bins = run.series("call").select("generated_packets", "sent_bytes").rows()
    spurts = [
        [sent for _, sent in spurt]
        for talks, spurt in itertools.groupby(bins, lambda each: each[0] >= 5)
        if talks
    ]
    # The last is left out where the run ends in it.
    ended = spurts[1:-1] if bins[-1][0] >= 5 else spurts[1:]
    long = [spurt for spurt in ended if len(spurt) >= 25]
    return 100 * sum(min(spurt[10:-1]) < 1000 for spurt in long) / len(long)


def highest_by_highest(*runs: talkspurt.Result) -> float:
    """As the dossier of renker2008 has it."""
    high = []
    for run in runs:
        trips = run.gauges("iperf", "srtt").filter(side="from")
        before = trips.filter(pl.col("time_s") <= 5)["value"][-1]
        high.append(max(before, trips.filter(pl.col("time_s") >= 5)["value"].max()))
    return high[0] / high[1]


@pytest.mark.parametrize(
    ("id", "scenarios", "by_hand"),
    [
        (
            "nor2010/fig5/ccid2-above-ccid3",
            ("load-ccid2-inferred", "load-ccid3-inferred"),
            by_ccid3,
        ),
        ("wheeb2017/table4/video/tfrc", ("video-tfrc-inferred",), end_to_end),
        ("sarao2019/fig2/tcp-grows", ("tcp-stated",), so_far),
        ("maldonado2005/fig7/tb-reduced", ("talk-tb-fast-stated",), fallen),
        ("renker2008/cbr6/builds-up", ("cbr-6-cell", "cbr-2-cell"), highest_by_highest),
    ],
)
def test_a_row_with_dice_is_what_comes_out_by_hand(
    every: list[Reproduction],
    id: str,
    scenarios: tuple[str, ...],
    by_hand: Callable[..., float],
) -> None:
    """Each replication is a run under its own seed, the value their mean."""
    found = {one.file.name: one for one in every}
    whose = "stated" if scenarios[0].endswith("stated") else "inferred"
    one, sample = found[id.partition("/")[0]], getattr(row(found, id), whose)
    assert set(scenarios) <= set(one.values.cases[id.partition("/")[2]])
    for seed in (1, 2):
        runs = []
        for name in scenarios:
            scenario = tomllib.loads(one.cases[name].toml)
            del scenario["replications"]
            runs.append(talkspurt.run(scenario, seed=seed))
        assert by_hand(*runs) == pytest.approx(sample.values[seed - 1], rel=1e-9)
    assert sample.replications == one.file.repeated(scenarios[0]) == 10
    assert len(set(sample.values)) > 2
    assert sample.value == pytest.approx(fmean(sample.values))


def test_a_verdict_is_that_of_the_mean_and_not_of_a_seed(four: Found) -> None:
    found = row(four, "nor2010/fig5/ccid2-above-ccid3")
    assert min(found.inferred.numbers) < 1.05 < max(found.inferred.numbers)
    assert found.inferred.ends[1] < 1.05 and found.verdict == "differs"
    spikes = row(four, "renker2008/cbr5/spikes")
    low, high = spikes.inferred.ends
    assert low < 2 < high and spikes.verdict == "undecided"


def test_a_scenario_that_is_asked_is_not_what_its_maker_makes_of_it_later() -> None:
    wire = link_text("wire", "a>b", "1Mbit/s", "1ms", 10)
    call = flow_text("call", "a>b", UDP, cbr("64kbit/s", "160B"))
    asked = tomllib.loads(f'duration = "1s"\n{wire}{call}')
    with ThreadPoolExecutor(1) as pool:
        waiting = threading.Event()
        pool.submit(waiting.wait, 30)
        case = lab.Lab(pool).ask("a", asked, "stated")
        asked["flows"]["call"]["transport"]["kind"] = "tcp"
        assert tomllib.loads(case.toml)["flows"]["call"]["transport"]["kind"] == "udp"
        waiting.set()


def test_what_is_kept_of_a_run_is_a_copy_of_a_part() -> None:
    table = pl.DataFrame(
        {"flow": ["a"] * 1000 + ["b"] * 9000, "value": range(10_000), "other": range(10_000)}
    )
    kept = lab.part("flow", "value", flow="a")(table)
    assert kept.columns == ["flow", "value"] and kept.height == 1000
    assert kept.filter(flow="a")["value"].to_list() == list(range(1000))
    whole, part = (frame["value"].to_numpy(allow_copy=False) for frame in (table, kept))
    assert not np.shares_memory(whole, part)
    sliced = table.filter(flow="a").select("value")["value"].to_numpy(allow_copy=False)
    assert np.shares_memory(whole, sliced), "then this test could not fail"


def test_rows_rest_on_runs_that_are_there(four: Found) -> None:
    for one in four.values():
        for id, cases in one.values.cases.items():
            assert any(row.spec.id == id for row in one.rows), id
            assert set(cases) <= set(one.cases), id
        known = {row.spec.id for row in one.rows}
        for values in (one.values.stated, one.values.inferred, one.values.ns2, one.values.notes):
            assert set(values) <= known, one.file.name
        for each in one.rows:
            # What was repeated was repeated as often as the file says.
            counts = {
                one.cases[name].replications for name in one.values.cases.get(each.spec.id, ())
            }
            for sample in (each.stated, each.inferred):
                assert sample.replications in counts | {0, 1}, each.spec.id


VARIED = {
    "the access links": r"links\.(in|out)-.*\.(rate|delay)$",
    "the length of queues": r"links\..*\.queue\.packets$",
    "the rates and delays of the links": r"links\..*\.(rate|delay)$",
    "how many on/off sources there were, of numbers that fit the link": r"flows\.web-",
    "when the sources start and stop, and when the run ends": r"duration$|.*\.(start|stop)",
}
"""What a text leaves out, and where in a scenario it stands."""
NOT_IN_A_SCENARIO = {"how the agents are wired"}
"""Computed by the study's module, or a scenario of another name."""


def leaves(table: object, at: str = "") -> dict[str, object]:
    """The values of nested tables by their paths."""
    if not isinstance(table, dict):
        return {at: table}
    found: dict[str, object] = {}
    for key, value in table.items():
        found |= leaves(value, f"{at}.{key}" if at else key)
    return found


def test_what_is_said_to_be_missing_is_what_the_two_columns_differ_in(
    every: list[Reproduction],
) -> None:
    looked_at = 0
    for one in every:
        for each in one.rows:
            if not (each.spec.missing and each.stated.there and each.inferred.there):
                continue
            names = one.values.cases.get(each.spec.id, ())
            pairs = [(n, n.removesuffix("stated") + "inferred") for n in names if "stated" in n]
            pairs = [pair for pair in pairs if set(pair) <= set(names)]
            differ: set[str] = set()
            for pair in pairs:
                stated, inferred = (leaves(tomllib.loads(one.cases[name].toml)) for name in pair)
                keys = (stated.keys() | inferred.keys()) - {"title"}
                differ |= {key for key in keys if stated.get(key) != inferred.get(key)}
            if not pairs:
                continue
            for word in set(each.spec.missing) - NOT_IN_A_SCENARIO:
                looked_at += 1
                found = [key for key in differ if re.match(VARIED[word], key)]
                assert found, (one.file.name, each.spec.id, word)
    assert looked_at > 30


def test_a_dossier_has_all_it_takes_to_check_a_row(four: Found, tmp_path: Path) -> None:
    dossier.write([four["sarao2019"]], "sarao2019", tmp_path)
    place = tmp_path / "sarao2019"
    page = (place / "index.html").read_text(encoding="utf-8")
    part = page[page.index('id="table3-dccp"') :]
    commands = dict(
        re.findall(r"<code>talkspurt run (scenarios/[a-z0-9-]+\.toml)</code>.*? (\w+)</span>", part)
    )
    file = "scenarios/dccp-unanswered.toml"
    digest = commands[file]
    again = talkspurt.run(place / file)
    assert isinstance(again, talkspurt.Result)
    assert again.digest.startswith(digest)
    packets = again.packets("voice").filter(link="wire")
    mean = (packets["received_s"] - packets["enqueued_s"]).mean()
    assert 1e3 * mean == pytest.approx(52.75)
    # A run with rng is repeated by the same command, seed by seed.
    several = talkspurt.run(place / "scenarios" / "dccp-stated.toml", study=True)
    assert isinstance(several, talkspurt.Study)
    digests = json.loads((place / "scenarios" / "digests.json").read_text(encoding="utf-8"))
    assert {str(run.seed): run.digest for run in several.runs} == digests["dccp-stated"]
    assert len(digests["dccp-stated"]) == 10
    # Every figure is there twice, and the summary leads to the page.
    drawn = sorted(f.stem for f in (place / "figures").glob("*.svg"))
    assert drawn == sorted(f.stem for f in (place / "figures").glob("*.png"))
    assert "companion-mos" in drawn
    companion = (place / "figures" / "companion-mos.svg").read_text("utf-8")
    assert "One run each, seed 1." in companion
    assert 'href="sarao2019/index.html"' in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_a_dossier_says_whence_a_kernels_series_comes(four: Found, tmp_path: Path) -> None:
    dossier.write([four["renker2008"]], "renker2008", tmp_path)
    place = tmp_path / "renker2008"
    page = (place / "index.html").read_text(encoding="utf-8")
    recorded = json.loads((place / "renker2008.linux.json").read_text(encoding="utf-8"))
    assert recorded["origin"] in page and recorded["licence"] in page
    assert 'href="renker2008.linux.json"' in page
    for figure in (place / "figures").glob("s3*.svg"):
        assert "Of seed 1 alone, no mean." in figure.read_text("utf-8"), figure.name


def test_three_flows_of_one_figure_are_told_apart(four: Found) -> None:
    from talkspurt.reproduce import figures

    drawn = {one.name: one for one in figures.pictures(four["nor2010"])}
    for ax in drawn["fig9-13-three-flows"].figure.axes:
        flows = [line for line in ax.get_lines() if str(line.get_label()).startswith("flow")]
        assert len({line.get_color() for line in flows}) == 3


def test_a_folder_of_dossiers_is_replaced_and_is_no_result(tmp_path: Path) -> None:
    for more, endings in (((), {"svg", "png"}), (("--pdf",), {"svg", "png", "pdf"})):
        done = succeed("reproduce", "sarao2019", *more, "--out", tmp_path / "out")
        assert "sarao2019" in done.stdout and "index.html" in done.stdout
        drawn = [file.name for file in (tmp_path / "out" / "sarao2019" / "figures").iterdir()]
        assert {name.rpartition(".")[2] for name in drawn} == endings
        assert len(drawn) % len(endings) == 0
    rows = json.loads((tmp_path / "out" / "rows.json").read_text(encoding="utf-8"))
    assert rows["study"] == "sarao2019"
    with pytest.raises(OSError, match=r"open index\.html"):
        talkspurt.load(tmp_path / "out")


@pytest.mark.parametrize("name", ["nor2010", "wheeb2017", "sarao2019", "maldonado2005"])
def test_recorded_values_of_ns2_are_of_the_script_that_is_there(name: str) -> None:
    file = Path(str(ns2.FILES / f"{name}.ns2.json"))
    recorded = json.loads(file.read_text(encoding="utf-8"))
    script = (ns2.FILES / f"{name}.tcl").read_bytes()
    assert recorded["script_sha256"] == hashlib.sha256(script).hexdigest()
    assert recorded["origin"].startswith("ns-2") and recorded["date"]


@needs_ns
@pytest.mark.parametrize("name", ["nor2010", "wheeb2017", "sarao2019", "maldonado2005"])
def test_ns2_gives_what_was_recorded(name: str) -> None:
    again, recorded = ns2.measured(name), study_file.recorded(name, "ns2")["values"]
    assert set(again) == set(recorded)
    # Beside FTP ns-2's CCID 3 does not repeat itself; ten runs of it are recorded besides.
    once = {f"fig5/{id}" for id in ("tcp-maintains", "regains", "ccid2-above-ccid3")}
    for id, value in recorded.items():
        if name == "nor2010" and id in once:
            continue
        close = pytest.approx(value, abs=1e-6) if isinstance(value, float) else value
        assert again[id] == close, id


def test_ns2_that_is_not_there_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ns2.shutil, "which", lambda _: None)
    with pytest.raises(ns2.Ns2Error, match="ns is not installed"):
        reproduce.reproduce(["sarao2019"], fresh_ns2=True)


def test_a_trace_of_ns2_is_read_as_hops(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.write_text(
        "+ 1.0 0 1 cbr 100 ------- 7 0.0 1.0 0 5\n"
        "- 1.1 0 1 cbr 100 ------- 7 0.0 1.0 0 5\n"
        "r 1.25 0 1 cbr 100 ------- 7 0.0 1.0 0 5\n"
        "+ 1.3 0 1 cbr 100 ------- 7 0.0 1.0 1 6\n"
        "d 1.3 0 1 cbr 100 ------- 7 0.0 1.0 1 6\n",
        encoding="ascii",
    )
    found = hops.of_ns2(trace)
    assert hops.mean_delay_s(found) == pytest.approx(0.25)
    assert hops.counts(found)["received-packets"] == 1
    assert hops.counts(found)["generated-packets"] == 2


def test_the_page_says_what_comes_out(every: list[Reproduction]) -> None:
    page = (Path(__file__).parent.parent / "docs" / "studies.md").read_text(encoding="utf-8")
    of = {one.file.name: one.rows for one in every}
    of["all"] = tuple(row for rows in of.values() for row in rows)
    for name, rows in of.items():
        counts = [len(rows), *running.tally(rows)]
        assert f"| {name} | " + " | ".join(map(str, counts)) + " |" in page


def test_a_row_that_restates_another_has_its_values(every: list[Reproduction]) -> None:
    pairs = set()
    for one in every:
        told = {each.spec.id: each for each in one.rows if not each.spec.given}
        for (a, first), (b, second) in itertools.combinations(told.items(), 2):
            # Numbers of several seeds do not agree by chance; counts and words may.
            same = first.ours.values == second.ours.values and len(set(first.ours.numbers)) > 2
            if first.spec.restates == b or second.spec.restates == a:
                pairs.add((a, b))
                assert same, (a, b)
            else:
                assert not same, (a, b)
    assert pairs == {("fig3/comparable/8", "fig4/tcp-gains")}


def test_the_fifth_study(the_long: Reproduction) -> None:
    one = the_long
    found = {"maldonado2005": one}
    assert row(found, "maldonado2005/restart/with").stated.value == 2
    assert row(found, "maldonado2005/restart/without").stated.value == 4
    assert row(found, "maldonado2005/restart/g711-rate").ours.value == pytest.approx(12.0, rel=1e-3)
    assert row(found, "maldonado2005/floyd/nominal").stated.value == pytest.approx(1460, rel=1e-3)
    assert row(found, "maldonado2005/floyd/interval").stated.value == pytest.approx(10.0, rel=1e-3)
    impossible = [r.spec.id for r in one.rows if "offer" in r.reason and "times what" in r.reason]
    assert impossible == ["fig5/load/50", "fig5/load/100", "fig6/load/25"]
    for id in (*impossible, "fig5/load/16"):
        assert row(found, f"maldonado2005/{id}").verdict == GIVEN
    assert row(found, "maldonado2005/codec/g729").verdict == GIVEN
    assert row(found, "maldonado2005/beritelli/40").verdict == "underspecified"
    assert row(found, "maldonado2005/fig3/best-codec").ours.value <= 80.8
