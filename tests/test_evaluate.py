"""Controllers judged by the cases of RFC 8867 and RFC 8869: what is measured, said and kept."""

import json
import math
import shlex
import signal
import sys
import tomllib
from dataclasses import replace

import polars as pl
import pytest

from command import refused, start, succeed, talkspurt, told, until
from pages import ROOT
from talkspurt._storage import file_access
from talkspurt.analysis.means import holm
from talkspurt.evaluate import cases, judging, measuring, program, running, showing
from talkspurt.evaluate.judging import Measured
from talkspurt.scenarios.source import read

ONE = ("evaluate", "rmcat", "--controller", "nada")


def packets(flow, sent, *, size=125, delay=0.05, wait=0.0, lost=(), link="bottleneck"):
    """Packets of a flow that are sent at these times; those with these places are lost."""
    there = [place not in lost for place in range(len(sent))]
    waits = wait if callable(wait) else lambda _: wait
    return [
        {
            "flow": flow,
            "side": "from",
            "number": place,
            "link": link,
            "ip_bytes": size,
            "enqueued_s": at,
            "dequeued_s": at + waits(at),
            "received_s": at + waits(at) + delay if there[place] else None,
        }
        for place, at in enumerate(sent)
    ]


def every(step, begin, end):
    """Times with this step."""
    return [begin + step * n for n in range(round((end - begin) / step))]


def a_run(*rows, media=1, capacity=((0, 1.0),), end=20):
    """A run of these packets; flows are named as the engine names them."""
    case = replace(cases.load()["5.1"], capacity=capacity, end=end)
    names = [("video", "audio")] if media == 1 else [(f"video-{n}",) for n in range(1, media + 1)]
    flows = [cases.Media(its[:1], its[1:]) for its in names]
    return measuring.Run(pl.DataFrame([row for part in rows for row in part]), case, flows)


def measured(run, name, **band):
    """The only value of a measure."""
    (value,) = measuring.measures(run, [{"measure": name, **band}]).values()
    return value


def test_goodput_is_what_arrives_over_the_lower_of_capacity_and_the_sources_rate():
    # 1000 bits each 2 ms are 0.5 Mbit/s.
    run = a_run(packets("video", every(0.002, 0, 20)))
    assert measured(run, "goodput", capacity=1.0, **{"from": 5, "to": 15}) == pytest.approx(0.5)
    assert measured(run, "goodput", capacity=9.0, **{"from": 5, "to": 15}) == pytest.approx(
        0.5e6 / cases.MOST
    )
    assert pytest.approx(1.5e6 * 1240 / 1212 + 20e3 * 78 / 50) == cases.MOST
    both = a_run(packets("video", every(0.002, 0, 20)), packets("web-1", every(0.005, 0, 20)))
    left = measured(both, "goodput", capacity=1.0, less="web", **{"from": 5, "to": 15})
    assert left == pytest.approx(0.5 / 0.8)
    only = measured(both, "goodput", capacity=1.0, flows=["web"], **{"from": 5, "to": 15})
    assert only == pytest.approx(0.2)


def test_phases_are_judged_after_they_have_settled_and_the_last_seconds_by_themselves():
    # 1 Mbit/s until 10 s and from 15 s on, 0.5 between.
    times = every(0.001, 0, 10) + every(0.002, 10, 15) + every(0.001, 15, 20)
    run = a_run(packets("video", times, delay=0.0), capacity=((0, 2.0), (10, 1.0)))
    found = measuring.measures(run, [{"measure": "goodput", "phases": 5}])
    assert found == pytest.approx({"goodput 1": 1 / 1.5658, "goodput 2": 1.0}, rel=1e-3)
    found = measuring.measures(run, [{"measure": "goodput", "last": 10}])
    assert found["goodput 2"] == pytest.approx(0.75)


def test_shares_by_hand():
    run = a_run(
        packets("video-1", every(0.002, 0, 20)), packets("video-2", every(0.006, 0, 20)), media=2
    )
    window = {"from": 2, "to": 20}
    assert measured(run, "jain", **window) == pytest.approx((3 + 1) ** 2 / (2 * (9 + 1)), rel=1e-3)
    assert measured(run, "spread", **window) == pytest.approx(3, rel=1e-3)
    assert measured(run, "ratio", media=[1], against=[2], **window) == pytest.approx(3, rel=1e-3)
    nothing = a_run(packets("video-1", every(0.002, 0, 20)), media=2)
    assert measured(nothing, "spread", **window) == math.inf


def test_oscillations_by_hand():
    """Two seconds of 1 Mbit/s and two of 0.6, around 0.8: each second is out of 15 %."""
    times = [t for n in range(5) for t in every(0.001, 4 * n, 4 * n + 2)]
    times += [t for n in range(5) for t in every(1 / 600, 4 * n + 2, 4 * n + 4)]
    run = a_run(packets("video", times, delay=0.0))
    assert measured(run, "oscillation", **{"from": 0, "to": 20}) == 0
    # Three seconds at the mean, one far from it: it leaves the range every fourth second.
    times = [t for n in range(20) for t in every(0.0005 if n % 4 == 3 else 0.001, n, n + 1)]
    run = a_run(packets("video", times, delay=0.0))
    assert measured(run, "oscillation", **{"from": 0, "to": 20}) == 0, "0.8, 0.8, 0.8, 1.6 of it"
    times = [t for n in range(20) for t in every(0.0012 if n % 10 == 9 else 0.001, n, n + 1)]
    run = a_run(packets("video", times, delay=0.0))
    assert measured(run, "oscillation", **{"from": 0, "to": 20}) == pytest.approx(1.0)
    assert measured(a_run(packets("audio", [1.0])), "oscillation", **{"from": 5, "to": 9}) == 0


def test_waits_delays_and_losses_are_without_the_seconds_behind_a_fall():
    capacity = ((0, 2.0), (10, 1.0))

    def wait(at):
        return 0.4 if 10 <= at < 15 else 0.01

    run = a_run(
        packets("video", every(0.01, 0, 20), wait=wait, lost=range(1000, 1100)), capacity=capacity
    )
    assert measured(run, "queue", calm=5) == pytest.approx(10)
    assert measured(run, "queue", calm=4) == pytest.approx(400)
    assert measured(run, "loss", calm=1) == 0
    assert measured(run, "loss", calm=0.5) == pytest.approx(50 / 1950)
    assert measured(run, "delay", **{"from": 15, "to": 18}) == pytest.approx(60)
    assert measured(run, "loss", **{"from": 5, "to": 10}) == 0, "none of the second behind it"
    late = a_run(packets("video", [19.0, 20.5], wait=lambda at: 0.1 if at > 20 else 0.0))
    of_all = measured(late, "queue", **{"from": 10})
    assert of_all == pytest.approx(95), "with what is sent after the media's end"


def test_a_packet_of_two_links_waits_at_both_and_arrives_at_the_last():
    first = packets("video", [1.0, 2.0, 3.0], wait=0.1, delay=0.05, lost=[2])
    second = packets("video", [1.15, 2.15], wait=0.2, delay=0.05, lost=[1], link="far")
    run = a_run(first, second)
    its = run.of(["video"])
    assert its.waits == pytest.approx([0.3, 0.3, 0.1])
    assert its.received[0] == pytest.approx(1.4)
    assert [math.isnan(at) for at in its.received] == [False, True, True]
    assert measured(run, "loss") == pytest.approx(2 / 3)


def test_the_retreat_is_the_time_until_what_is_sent_fits():
    # 1 Mbit/s until 12.5 s, then 0.5; the capacity falls to 0.6 at 10 s. Of a window from 12.2 s
    # on, a third is of the higher rate: 0.65.
    times = every(0.001, 0, 12.5) + every(0.002, 12.5, 20)
    run = a_run(packets("video", times), capacity=((0, 2.0), (10, 0.6)))
    assert measured(run, "retreat") == pytest.approx(2.3, abs=0.11)
    run = a_run(packets("video", every(0.001, 0, 40)), capacity=((0, 2.0), (10, 0.6)))
    assert measured(run, "retreat") == 20, "the most that is looked at"


def test_times_until_a_rate_or_a_share_is_reached():
    times = every(0.01, 0, 5) + every(0.001, 5, 20)
    run = a_run(packets("video", times, delay=0.0))
    until_then = measured(run, "reach", capacity=1.0, share=0.8, limit=15, **{"from": 0})
    assert until_then == pytest.approx(4.8, abs=0.11)
    never = measured(run, "reach", capacity=1.5, share=0.8, limit=15, **{"from": 0})
    assert never == 15
    web = packets("web-1", every(0.1, 0, 3.05), delay=0.0)
    both = a_run(packets("video", times, delay=0.0), web)
    recovered = measured(both, "recovery", after="web", capacity=1.0, share=0.8, limit=15)
    assert recovered == pytest.approx(1.8, abs=0.11)
    shared = a_run(
        packets("video-1", every(0.002, 0, 20)),
        packets("video-2", every(0.02, 0, 8) + every(0.002, 8, 20)),
        media=2,
    )
    fair = measured(shared, "fair", jain=0.95, limit=15, **{"from": 0})
    assert 3 < fair <= 8
    assert measured(shared, "change", before=[0, 8], **{"from": 10, "to": 20}) > 1.5


def test_a_starved_flow_is_so_for_seconds_one_after_another():
    times = every(0.005, 0, 4) + every(0.1, 4, 7) + every(0.005, 7, 9) + every(0.1, 9, 20)
    run = a_run(packets("video", times, delay=0.0))
    assert measured(run, "starved", below=0.15, **{"from": 0, "to": 20}) == 11
    assert measured(run, "starved", below=0.15, **{"from": 0, "to": 12}) == 3


def a_measure(values, **band):
    """A measure with a band."""
    return Measured("c", "v", "who", "m", {"of": "x", "why": "y", **band}, values)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(
    ("values", "band", "verdict"),
    [
        ([1.0, 1.1, 0.9, 1.0], {"most": 2}, "held"),
        ([1.0, 1.1, 0.9, 1.0], {"most": 0.5}, "missed"),
        ([1.0, 1.1, 0.9, 1.0], {"least": 0.98, "most": 2}, "open"),
        ([1.0, 1.1, 0.9, 1.0], {"least": 0.5, "most": 1.02}, "open"),
        # Six values on one side of a limit are improbable, fewer are not.
        ([0.0] * 6, {"most": 0}, "held"),
        ([0.5] * 6, {"most": 0}, "missed"),
        ([0.0] * 5, {"most": 0}, "open"),
        ([0.5, 0.5], {"most": 0}, "open"),
        ([0.5, 0.5 + 1e-15], {"most": 0}, "open"),
        ([1.0], {"most": 2}, "open"),
        # One seed that is infinite makes the mean infinite, whatever the others are.
        ([1.0, math.inf, 1.0], {"most": 2}, "missed"),
        ([math.inf, math.inf], {"least": 0.5, "most": 2}, "missed"),
        ([1.0, math.inf, 1.0], {"least": 0.5}, "held"),
        ([math.inf], {"most": 2}, "open"),
        ([math.inf, math.nan], {"most": 2}, "open"),
        ([], {"most": 2}, "cannot run"),
    ],
)
def test_verdicts(values, band, verdict):
    one = a_measure(values, **band)
    judging.judge([one], {"v": True})
    assert one.verdict == verdict


def test_an_infinite_mean_is_shown_and_named():
    """A flow without any rate: the spread of the rates is infinite."""
    one = a_measure([1.0, math.inf], most=3)
    judging.judge([one], {"v": True})
    assert showing.value_text(one) == "∞"
    said = json.loads(file_access.to_json(one.to_json()))
    assert (said["mean"], said["values"], said["verdict"]) == (None, [1.0, None], "missed")
    assert said["note"] == "m is infinite with 1 of 2 seeds"
    less = Measured("c", "v", "who", "m", {**one.band, "better": "lower"}, [1.0, -math.inf])
    less = replace(less, note="", is_difference=True)
    assert (showing.value_text(less), less.to_json()["mean"]) == ("-∞", None)
    assert showing.value_text(replace(less, values=[math.inf])) == "+∞"
    assert less.note == "difference of m is infinite with 1 of 2 seeds"
    assert showing.value_text(replace(less, values=[math.inf, -math.inf])) == "–"


def test_the_verdict_of_one_band_agrees_with_its_interval_and_many_make_it_harder():
    values = [1.0, 1.4, 0.8, 1.1, 1.2]
    one = a_measure(values)
    limit = one.mean + one.half
    for most, verdict in ((limit * 1.001, "held"), (limit * 0.999, "open")):
        one = a_measure(values, most=most)
        judging.judge([one], {"v": True})
        assert one.verdict == verdict
    many = [a_measure(values, most=limit * 1.001) for _ in range(20)]
    judging.judge(many, {"v": True})
    assert {one.verdict for one in many} == {"open"}
    reported = a_measure(values, most=9)
    judging.judge([reported], {"v": False})
    assert reported.verdict == "reported"


BEFORE = {
    ("nada", "50ms, link"): [
        0.928888, 0.947908, 0.78484, 0.97729, 0.4, 0.0, 2.0, 0.0, 280.883035, 0.031732, 0.6,
    ],
    ("nada-ns3-rmcat", "50ms, link"): [
        0.943995, 0.982446, 1.002357, 0.999736, 0.0, 0.0, 0.0, 0.0, 22.132067, 0.0, 0.6,
    ],
}  # fmt: skip
"""RFC 8867 §5.1 with seed 1, as the script of validation/rmcat measured it before this command."""


def test_the_first_case_has_the_numbers_of_the_script_before():
    case = cases.load()["5.1"]
    wanted = {variant: case.variants[variant] for _, variant in BEFORE}
    plan = running.Plan([replace(case, variants=wanted)], cases.candidates([], []), 1)
    found = running.evaluate(running.Work.of(plan)).measured["5.1"]
    for (candidate, variant), numbers in BEFORE.items():
        its = [m.mean for m in found if (m.candidate, m.variant) == (candidate, variant)]
        assert its == pytest.approx(numbers, abs=1e-6)


def test_every_scenario_is_valid_and_every_band_can_be_measured():
    every_kind = cases.candidates([*cases.CONTROLLERS], [*cases.TRANSPORTS])
    for case in cases.load().values():
        for variant in case.variants:
            for candidate in every_kind:
                if not cases.unable(case, variant, candidate):
                    built = cases.build(case, variant, candidate)
                    read(built.scenario, set=built.sets, seed=1)
        for band in case.bands:
            assert band["measure"] in measuring.MEASURES
            assert band["of"] and len(band["why"]) >= 10
            assert {"least", "most", "better"} & band.keys()
            for variant in band.get("variants", ()):
                assert variant in case.variants
            if "versus" in band:
                for variant in case.variants:
                    if variant not in case.references and band in case.bands_of(variant):
                        assert case.reference(variant, band["versus"]) in case.references
        for variant in case.variants:
            bands = case.bands_of(variant)
            names = [name for band in bands for name in measuring.windows(case, band)]
            assert len(names) == len(set(names)), "two measures have one name"


def test_scenarios_say_what_the_rfc_says():
    every_case = cases.load()
    (nada,) = cases.candidates(["nada"], [])
    second = cases.build(every_case["5.2"], "50ms, traffic", nada).scenario
    # 4 − Y·r Mbit/s of IP packets, of which 28 of 1000 bytes are headers; none in the first phase.
    loads = {n: f["source"]["rate"] for n, f in second["flows"].items() if n.startswith("load")}
    wanted = {1: 2.0, 2: 0.5, 3: 3.0, 4: 2.0}
    assert loads == {f"load-{n}": f"{r * 972_000:.0f}bit/s" for n, r in wanted.items()}
    paused = cases.build(every_case["5.8"], "50ms", nada)
    assert paused.media[1].video == ("video-2", "video-2-resumed")
    flows = paused.scenario["flows"]
    assert flows["video-2"]["stop"] == "40s" and flows["video-2-resumed"]["start"] == "60s"
    assert flows["video-2-resumed"]["session"] == "video-2"
    sizes = [
        int(flow["source"]["size"].removesuffix("B"))
        for name, flow in cases.build(every_case["5.7"], "ten", nada).scenario["flows"].items()
        if name.startswith("web")
    ]
    assert min(sizes) > 30_000 and max(sizes) < 50_000 and sum(sizes) / 10 == 40_000
    five = cases.build(every_case["5.5"], "10 to 150ms", nada).scenario
    delays = [
        int(five["links"][f"access-{n}"]["delay"].removesuffix("ms")) + 5 for n in range(1, 6)
    ]
    assert delays == [10, 25, 50, 100, 150]
    assert [five["flows"][f"video-{n}"].get("start", "0s") for n in (1, 2, 5)] == [
        "0s",
        "10s",
        "40s",
    ]
    radio = cases.build(every_case["8869-3.2"], "8 up, 8 down, TCP", nada).scenario
    ends = [radio["flows"][f"video-{n}"] for n in (8, 9)]
    assert [flow["to"] for flow in ends] == ["fixed", "mn-9"]


def test_what_is_set_is_of_all_video_flows():
    (nada,) = cases.candidates(["nada"], [])
    case = cases.load()["5.8"]
    built = cases.build(case, "50ms", nada, [("media.controller.max", "1Mbit/s"), ("seed", 3)])
    assert [path for path, _ in built.sets] == [
        *(f"flows.video-{n}.controller.max" for n in (1, 2, 3)), "seed",
    ]  # fmt: skip
    radio = cases.load()["8869-3.2"]
    (tcp, *_) = (name for name, variant in radio.variants.items() if variant.get("tcp"))
    assert cases.build(radio, tcp, nada, [("media.controller.max", "1Mbit/s")]).sets == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--case", "9.9", "--seeds", "0", "--jobs", "0"],
         ["--case 9.9: expected one of 5.1", "--seeds 0: expected", "--jobs 0: expected"]),
        (["--controller", "{ kind = "], ["--controller { kind = : not a table of TOML"]),
        (["--controller", "{ max = '1Mbit/s' }"], ["kind is missing"]),
        (["--controller", "a b"], ["--controller a b: expected one of nada", "or a table"]),
        (["--controller", "gcc", "--controller", "gcc"], ["given twice: gcc"]),
        (["--controller", "scream", "--case", "5.1"],
         ["--controller scream: expected one of nada, nada-ns3-rmcat, gcc,", "not support scream"]),
        (["--transport", "tpc", "--case", "5.1"], ["--transport tpc: expected one of tfrc, ccid2,"]),
        (["--transport", "{ kind = 'external', stack = 'x' }", "--case", "5.1"],
         ["--transport x: stack: no stack of this name is registered"]),
        (["--set", "links.nix.rate=1Mbit/s"],
         ['--set links.nix.rate=1Mbit/s: links has no "nix" – names here are: bottleneck']),
        (["--case", "5.4", "--set", "flows.video-1.controller.max=3q"],
         ['--set flows.video-1.controller.max=3q: "3q" is not a rate']),
        (["--case", "9.9", "--controller", "foo", "--set", "links.nix.rate=1Mbit/s", "--seeds", "0"],
         ["--case 9.9: ", "--controller foo: ", 'links has no "nix"', "--seeds 0: "]),
        (["--set", "nix"], ["'nix' is not PATH=VALUE"]),
        (["--baseline", "tcp"], ["--baseline tcp: expected one of several", "nada, nada-ns3-rmcat"]),
        (["--controller", "gcc", "--baseline", "gcc"], ["expected one of several candidates"]),
    ],
)  # fmt: skip
def test_bad_input_is_said_at_once(words, said, tmp_path):
    line = told("evaluate", "rmcat", *words, cwd=tmp_path)
    for part in said:
        assert part in line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words",
    [
        ["--controller", "foo"],
        ["--controller", "{ kind = 'gcc', maxx = 1 }"],
        ["--transport", "{ kind = 'udp', x = 1 }", "--controller", "nada"],
        ["--set", "media.controller.max=3q"],
        ["--set", "media.source.kind=nix", "--controller", "nada"],
    ],
)
def test_a_fault_of_all_flows_is_said_once(words, tmp_path):
    line = told("evaluate", "rmcat", "--case", "5.4", "--case", "8869", *words, cwd=tmp_path)
    assert line.startswith(f"talkspurt: {words[0]} {words[1]}: ")
    assert line.count(words[1]) == 1 and "; " not in line and "video-" not in line


def test_another_suite_is_refused(tmp_path):
    assert "expected" in refused("evaluate", "rmcta", cwd=tmp_path).stderr


def test_the_variants_of_the_page_are_valid():
    page = (ROOT / "docs/evaluate.md").read_text(encoding="utf-8")
    lines = [line for line in page.splitlines() if line.startswith("talkspurt evaluate rmcat")]
    sets = [shlex.split(line)[1:] for line in lines if " --set " in line]
    assert "links.bottleneck.jitter=15ms" in [words[-1] for words in sets], "RFC 8868 §4.5"
    for words in sets:
        succeed(*words, "--list")


def test_the_orderings_of_the_paper_can_be_measured():
    folder = ROOT / "validation" / "rmcat"
    found = tomllib.loads((folder / "orderings.toml").read_text(encoding="utf-8"))["ordering"]
    page = (ROOT / "docs/validation/rmcat.md").read_text(encoding="utf-8")
    for one in found:
        case = replace(cases.load()[one["case"]], bands=[one["band"]])
        sets = [(path, str(value)) for path, value in one.get("set", {}).items()]
        for candidate in cases.candidates([], []):
            built = cases.build(case, one["variant"], candidate, sets)
            read(built.scenario, set=built.sets, seed=1)
        assert one["band"]["measure"] in measuring.MEASURES and one["better"] in ("gcc", "nada")
        assert one["band"]["of"] in page


def test_the_list_says_what_there_is_and_what_is_not(tmp_path):
    said = succeed("evaluate", "rmcat", "--list", cwd=tmp_path, env={"COLUMNS": "80"}).stdout
    assert max(map(len, said.splitlines())) <= 80
    for part in ("5.1", "8869-3.2", "Round-trip time fairness", "only with", "RFC 8869 §2", "gcc"):
        assert part in said
    listed = json.loads(succeed("evaluate", "rmcat", "--list", "--json", "--case", "5.4").stdout)
    assert [case["id"] for case in listed] == ["5.4"]
    assert all(band["why"] for band in listed[0]["bands"])


def test_what_is_missed_is_in_the_exit_status_and_everything_in_the_folder(tmp_path):
    # NADA keeps a queue of 300 ms full after the capacity has fallen.
    words = (*ONE, "--case", "5.1", "--seeds", "3", "--set", "duration=100s")
    ended = talkspurt(*words, "--out", "out", cwd=tmp_path, env={"COLUMNS": "80"})
    assert ended.returncode == 1, ended.stderr
    assert max(map(len, ended.stdout.splitlines())) <= 80
    assert "! the band is missed" in ended.stdout and "5.1" in ended.stdout
    found = json.loads((tmp_path / "out/results.json").read_text())
    assert found["seeds"] == 3 and found["set"] == {"duration": "100s"}
    (case,) = found["cases"]
    missed = [one for one in case["measures"] if one["verdict"] == "missed"]
    assert {one["name"] for one in missed} <= {"queue", "loss"} and missed
    assert all(len(one["values"]) == 3 for one in case["measures"])
    page = (tmp_path / "out/report.html").read_text()
    assert "Variable available capacity with a single flow" in page
    assert page.count("<talkspurt-chart data-chart=") == 2 * 6
    charts = json.loads(page.split('id="charts">')[1].split("</script>")[0])
    rates = charts[0]["panels"][0]["lines"]
    assert [line["label"] for line in rates] == ["media 1", "capacity"]
    assert len(rates[0]["values"]) == 100 and rates[1]["values"] == [1.0, 2.5, 0.6, 1.0, 1.0]
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == [
        "manifest.json", "report.html", "results.json",
    ]  # fmt: skip


def test_open_bands_are_missed_only_if_that_is_asked_for():
    words = (*ONE, "--case", "5.4", "--seeds", "1", "--quiet")
    assert "5 open" in succeed(*words).stdout
    assert talkspurt(*words, "--strict").returncode == 1


def test_who_cannot_run_a_case_is_said_and_not_failed():
    ended = succeed("evaluate", "rmcat", "--controller", "gcc", "--case", "6.1", "--json")
    notes = {
        one["variant"]: (one["verdict"] == "cannot run", one["note"])
        for one in json.loads(ended.stdout)["cases"][0]["measures"]
    }
    assert notes["2:1:1"] == (True, "has no priority")
    assert notes["2:1:1, coupled"] == (True, "cannot be coupled")
    assert notes["2:1:1, one session"][0] is False
    words = ("evaluate", "rmcat", "--transport", "udp", "--case", "5.4", "--seeds", "1", "--json")
    notes = {one["note"] for one in json.loads(succeed(*words).stdout)["cases"][0]["measures"]}
    assert notes == {"no congestion control"}


def test_a_comparison_is_paired_by_seeds_and_made_once_for_all(tmp_path):
    case = cases.load()["5.3"]
    plan = running.Plan([case], cases.candidates(["nada"], []), 2)
    work = running.Work.of(plan)
    assert len(work.tasks) == 4 * 2
    done = {
        name: {"measures": {"goodput": 10.0 * place + seed, "delay": 5.0 * seed}, "curves": None,
               "cpu_s": 0.0}
        for name, (_, variant, _, seed) in work.tasks.items()
        for place in [[*case.variants].index(variant) + 1]
    }  # fmt: skip
    found = running._judged(work, done).measured["5.3"]
    values = {(one.variant, one.name): one.values for one in found}
    assert values["link", "goodput"] == pytest.approx([11 / 21, 12 / 22])
    assert values["link", "delay"] == [0.0, 0.0]
    radio = running.Plan([cases.load()["8869-3.2"]], cases.candidates([], []), 1)
    assert len(running.Work.of(radio).tasks) == 10 * 3 + 4, "TCP alone is of no candidate"


@pytest.mark.parametrize(
    ("band", "better", "limits"),
    [
        ({"least": 0.75, "most": 1.0}, "higher", {"least": 0}),
        ({"measure": "jain", "least": 0.9}, "higher", {"least": 0}),
        ({"measure": "queue", "most": 150}, "lower", {"most": 0}),
        ({"measure": "wait", "better": "lower"}, "lower", {"most": 0}),
        ({"measure": "ratio", "least": 1.5, "most": 2.5}, "", {}),
    ],
)
def test_which_side_of_a_baseline_is_better(band, better, limits):
    band = {"measure": "goodput", "of": "x", "why": "y", **band}
    known = {"measure": band["measure"], "of": "x", "why": "y", "better": better}
    assert judging.against(band, judged=True) == known | limits
    assert judging.against(band, judged=False) == known
    one = a_measure([0.1, 0.2, 0.15, 0.12], **judging.against(band, judged=True))
    judging.judge([one], {"v": True})
    assert one.verdict == {"higher": "no worse", "lower": "worse", "": "reported"}[better]


def test_candidates_are_compared_with_a_baseline_seed_by_seed(tmp_path):
    words = ("evaluate", "rmcat", "--case", "5.4", "--controller", "nada", "--controller", "gcc")
    words += ("--seeds", "3", "--no-report", "--out", "out", "--overwrite")

    def measured(*more):
        ended = talkspurt(*words, *more, cwd=tmp_path, env={"COLUMNS": "80"})
        found = json.loads((tmp_path / "out/results.json").read_text())
        its = {(m["candidate"], m["name"]): m for m in found["cases"][0]["measures"]}
        return ended, found["baseline"], its

    _, none, plain = measured()
    assert none is None
    for baseline, other, worse in (("nada", "gcc", "queue"), ("gcc", "nada", "reach")):
        ended, named, its = measured("--baseline", baseline)
        assert (ended.returncode, named) == (1, baseline), ended.stderr
        assert f"! worse than {baseline}." in ended.stdout
        for (who, name), one in its.items():
            values = plain[who, name]["values"]
            if who == baseline:
                assert (one["values"], one["verdict"]) == (values, "reported")
                continue
            less = [a - b for a, b in zip(values, plain[baseline, name]["values"], strict=True)]
            assert one["values"] == pytest.approx(less)
        assert its[other, worse]["verdict"] == "worse"
    # A controller is no worse than itself, which equal values say from six seeds on.
    words = ("evaluate", "rmcat", "--case", "5.4", "--quiet", "--baseline", "gcc")
    same = ("--controller", "gcc", "--controller", "{ kind = 'gcc', max = '1600kbit/s' }")
    assert "5 no worse, 0 worse, 0 open" in succeed(*words, "--seeds", "6", *same).stdout


def finished(folder):
    names = [file.parent.name for file in folder.glob(".out.unfinished-*/runs/*/manifest.json")]
    return sorted(name for name in names if not name.endswith(".part"))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_evaluation_that_was_stopped_goes_on_and_mixes_with_nothing_else(tmp_path, number):
    words = (*ONE, "--case", "5.5", "--seeds", "6", "--out", "out", "--no-report", "--jobs", "1")
    begun = start(*words, cwd=tmp_path)
    until(lambda: len(finished(tmp_path)) >= 2, begun, 120)
    begun.send_signal(number)
    _, said = begun.communicate(timeout=60)
    kept = finished(tmp_path)
    assert 2 <= len(kept) < 6
    if number != signal.SIGKILL:
        assert f"{len(kept)} of 6 runs are kept: the same command goes on from there" in said
    # Another number of seeds is another evaluation.
    other = (*ONE, "--case", "5.5", "--seeds", "1", "--out", "out", "--no-report")
    assert "were there already" not in succeed(*other, cwd=tmp_path).stderr
    # What was half written is made again.
    (folder,) = tmp_path.glob(".out.unfinished-*")
    (folder / "runs" / kept[0] / "manifest.json").write_text('{"measures":')
    ended = talkspurt(*words, cwd=tmp_path)
    assert "Results: out" in ended.stdout
    assert f"{len(kept) - 1} of 6 runs were there already" in ended.stderr
    whole = json.loads((tmp_path / "out/results.json").read_text())
    assert not list(tmp_path.glob(".out*"))
    fresh = json.loads(talkspurt(*words[:8], "--json", cwd=tmp_path).stdout)
    assert whole["cases"] == fresh["cases"]


def test_what_a_program_reads_has_the_overrides_of_its_flow_alone():
    (nada,) = cases.candidates(["nada"], [])
    built = cases.build(cases.load()["6.1"], "2:1:1", nada, [("links.bottleneck.delay", "9ms")])
    text = program.applied(built.scenario, built.sets, 7)
    found = tomllib.loads(text)
    assert (found["seed"], found["links"]["bottleneck"]["delay"]) == (7, "9ms")
    flows = [found["flows"][f"video-{n}"]["controller"] for n in (1, 2, 3)]
    assert flows == [{"kind": "nada", "priority": 2}, {"kind": "nada"}, {"kind": "nada"}]
    assert cases.CONTROLLERS["nada"] == {"kind": "nada"}


PROGRAM = """#!{python}
import re, sys
import talkspurt
from talkspurt.scenarios import source
text = open(sys.argv[1]).read()
if "[30, 60]" in text or "pause" in text or "-resumed" in text:
    sys.exit("no connection can be resumed")
assert 'stack = "mine"' in text, text
text = re.sub(r'kind = "external"\\s+stack = "mine"', 'kind = "tfrc"', text)
run = talkspurt.run(re.sub(r"\\[flows.video.*.controller]\\n(.+\\n)+", "", text))
run.save(sys.argv[2], report=False)
print(run.digest)
"""
"""A program with a stack of its own, which is TFRC."""


def test_a_program_runs_external_stacks(tmp_path):
    mine_alone = tmp_path / "program"
    mine_alone.write_text(PROGRAM.format(python=sys.executable))
    mine_alone.chmod(0o755)
    mine = "{ kind = 'external', stack = 'mine' }"
    words = ("evaluate", "rmcat", "--case", "5.4", "--case", "5.8", "--seeds", "2", "--json")
    words += ("--set", "links.bottleneck.delay=40ms", "--transport", "tfrc", "--transport", mine)
    ended = talkspurt(*words, "--program", mine_alone)
    four, eight = json.loads(ended.stdout)["cases"]
    values = {name: [m["values"] for m in four["measures"] if m["candidate"] == name]
              for name in ("tfrc", "mine")}  # fmt: skip
    assert values["tfrc"] == values["mine"] and all(len(one) == 2 for one in values["mine"])
    said = {(m["verdict"], m["note"]) for m in eight["measures"] if m["candidate"] == "mine"}
    assert said == {("cannot run", "no connection can be resumed")}
    absent = told("evaluate", "rmcat", "--program", tmp_path / "nix", "--transport", mine)
    assert "no such program" in absent
    title = told(*words[:4], "--transport", mine, "--program", mine_alone, "--set", "title.x=1")
    assert "--set title.x: title is no table" in title


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ("import os; os.kill(os.getpid(), 11)", "it ended with status -11"),
        ("sys.exit('a bad port')", "a bad port"),
        ("sys.exit(0)", "it wrote no packets.parquet"),
    ],
)
def test_seeds_that_fail_leave_the_others_of_their_variant(tmp_path, ends, said):
    failing = tmp_path / "program"
    whole = PROGRAM.format(python=sys.executable)
    failing.write_text(
        whole.replace("assert ", f'if "seed = 2\\n" in text:\n    {ends}\nassert ', 1)
    )
    failing.chmod(0o755)
    mine = "{ kind = 'external', stack = 'mine' }"
    words = ("evaluate", "rmcat", "--case", "5.3", "--seeds", "3", "--transport", mine)
    ended = talkspurt(*words, "--program", failing, "--out", "out", cwd=tmp_path)
    assert ended.returncode == 2 and "Traceback" not in ended.stderr
    assert f"{failing} failed: mine, 5.3 link, without seed 2: {said}" in ended.stderr
    assert f"; mine, 5.3 link, clear way back, without seed 2: {said}" in ended.stderr
    found = json.loads((tmp_path / "out/results.json").read_text())["cases"][0]["measures"]
    assert {(len(one["values"]), one["note"]) for one in found} == {(2, f"without seed 2: {said}")}
    words += ("--transport", "tfrc", "--baseline", "mine", "--program", failing, "--json")
    ended = talkspurt(*words)
    assert ended.returncode == 2 and f"mine, 5.3 link, without seed 2: {said}" in ended.stderr
    both = json.loads(ended.stdout)["cases"][0]["measures"]
    tfrc = [one for one in both if one["candidate"] == "tfrc"]
    assert {tuple(one["values"]) for one in tfrc} == {(0.0, 0.0)}, "paired by seeds"
    assert {one["note"] for one in tfrc} == {f"mine: without seed 2: {said}"}


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ("kill -SEGV $$", "it ended with status -11"),
        ("echo no such stack >&2; exit 1", "no such stack"),
    ],
)
def test_a_program_that_runs_nothing_is_an_error(tmp_path, ends, said):
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\n{ends}\n")
    program.chmod(0o755)
    mine = "{ kind = 'external', stack = 'mine' }"
    words = ("evaluate", "rmcat", "--case", "5.4", "--seeds", "2", "--transport", mine)
    ended = talkspurt(*words, "--program", "./program", cwd=tmp_path)
    assert ended.returncode == 2 and said in ended.stderr
    assert "Traceback" not in ended.stderr


def test_ecn_is_not_compared_with_ecn():
    """Prague has ECN by default, and NADA may be given it."""
    prague = "{ kind = 'tcp', controller = 'prague' }"
    case = cases.load()["6.2-5.1"]
    plan = running.Plan([case], cases.candidates([], [prague]), 1)
    (why,) = set(running.Work.of(plan).unfit.values())
    assert "prague goes by marks" in why
    (nada,) = cases.candidates(["{ kind = 'nada', ecn = 'ect1' }"], [])
    sets = dict(cases.build(case, "no ECN", nada).sets)
    assert sets["flows.video.controller.ecn"] == "off"


def test_other_bands_are_other_inputs(monkeypatch):
    case = cases.load()["5.4"]
    plan = running.Plan([case], cases.candidates(["nada"], []), 1)
    bands = [{**case.bands[0], "least": 0.8}, *case.bands[1:]]
    keys = {
        plan.key,
        replace(plan, cases=[replace(case, bands=bands)]).key,
        replace(plan, seeds=2).key,
        replace(plan, sets=[("seed", "3")]).key,
        replace(plan, candidates=cases.candidates(["gcc"], [])).key,
    }
    assert len(keys) == 5
    assert plan.key == replace(plan).key


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("links.bottleneck.trace.file", "trace.csv"),
        ("links.bottleneck.trace.file", "'trace.csv'"),
        ("links.bottleneck.trace", "{ file = 'trace.csv' }"),
    ],
)
def test_the_content_of_a_file_is_an_input(path, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "trace.csv"
    set_there = running.Plan([cases.load()["5.4"]], cases.candidates([], []), 1, [(path, value)])
    table = f"{{ kind = 'gcc', trace = {{ file = '{file}' }} }}"
    as_table = replace(set_there, candidates=cases.candidates([table], []), sets=[])
    for plan in (set_there, as_table):
        file.write_text("a")
        before = plan.key
        file.write_text("bc")
        assert plan.key != before


def test_files_of_cases_have_no_unknown_keys():
    known = {
        "section", "title", "about", "end", "base", "capacity", "back", "link", "scenario", "media",
        "variants", "bands",
    }  # fmt: skip
    for file in cases.FILES.iterdir():
        if file.name.endswith(".toml"):
            assert not tomllib.loads(file.read_text(encoding="utf-8")).keys() - known
