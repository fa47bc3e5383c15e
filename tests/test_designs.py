"""Designs: sampled points, and the sensitivity of measures, against closed forms."""

import json
import math
import re

import numpy as np
import polars as pl
import pytest
from scipy.stats import qmc

import talkspurt
from command import refused, succeed
from conftest import problems
from talkspurt.analysis import sensitivity
from talkspurt.report import study as study_page
from talkspurt.scenarios import source
from texts import UDP, cbr, flow_text, link_text, put, scenario_text

BASE = scenario_text(
    "Designed",
    "2s",
    link_text("wire", "a>b", "1Mbit/s", "10ms", 50),
    flow_text("call", "a>b", UDP, cbr("64kbit/s", "160B"), start="10ms", stop="1s"),
    seed=3,
)
DELAY = '{ path = "links.wire.delay", min = "10ms", max = "40ms" }'
RATE = '{ path = "links.wire.rate", min = "200kbit/s", max = "2Mbit/s", scale = "log" }'
IDLE = '{ path = "links.wire.queue.packets", min = 20, max = 60 }'


def design(kind, samples, *factors, more=""):
    told = ",\n".join(factors)
    return f'{BASE}\n{more}\n[design]\nkind = "{kind}"\nsamples = {samples}\nfactors = [{told}]\n'


@pytest.fixture(scope="module")
def saltelli():
    return talkspurt.run(design("sobol", 64, DELAY, RATE, IDLE), study=True)


def test_the_cube_is_the_one_of_scipy_and_depends_on_the_seed_alone():
    for kind, sampler in (("sobol", qmc.Sobol), ("latin_hypercube", qmc.LatinHypercube)):
        cube = np.array(source.unit_cube(kind, 64, 3, 5))
        more = {"bits": 64} if kind == "sobol" else {}
        assert (cube == sampler(3, rng=np.random.default_rng(5), **more).random(64)).all()
        assert (cube != np.array(source.unit_cube(kind, 64, 3, 6))).any()
        # Each of 64 parts of each range has one point.
        assert (np.sort((cube * 64).astype(int), axis=0) == np.arange(64)[:, np.newaxis]).all()


def test_indices_of_the_ishigami_function():
    # Ishigami and Homma 1990: a = 7, b = 0.1; closed forms as in Saltelli et al. 2008, p. 196.
    n, d = 4096, 3
    cube = np.array(source.unit_cube("sobol", n, 2 * d, 1))
    a, b = cube[:, :d], cube[:, d:]
    blocks = [a, b, *(np.where(np.arange(d) == i, b, a) for i in range(d))]
    x = (2 * np.concatenate(blocks) - 1) * math.pi
    y = np.sin(x[:, 0]) + 7 * np.sin(x[:, 1]) ** 2 + 0.1 * x[:, 2] ** 4 * np.sin(x[:, 0])
    found = {(e.factor, e.index): e for e in sensitivity.sobol(["x", "y", "z"], y, 0.95)}
    variance = 7**2 / 8 + 0.1 * math.pi**4 / 5 + 0.1**2 * math.pi**8 / 18 + 0.5
    alone = [0.5 * (1 + 0.1 * math.pi**4 / 5) ** 2 / variance, 49 / 8 / variance, 0.0]
    pair = 8 * 0.1**2 * math.pi**8 / 225 / variance
    total = [alone[0] + pair, alone[1], pair]
    for name, first, whole in zip("xyz", alone, total, strict=True):
        for index, exact in (("first", first), ("total", whole)):
            one = found[name, index]
            assert one.value == pytest.approx(exact, abs=0.02)
            assert one.low - 0.01 <= exact <= one.high + 0.01


def test_src_and_prcc_of_a_linear_model():
    cube = np.array(source.unit_cube("latin_hypercube", 400, 3, 2))
    inputs = {name: cube[:, i] for i, name in enumerate("abc")}
    y = 3 * cube[:, 0] - 4 * cube[:, 1]
    found = {(e.factor, e.index): e.value for e in sensitivity.regression(inputs, y, 0.95)}
    # Without residuals the coefficients are exact: b · s(x) / s(y).
    for name, slope in (("a", 3), ("b", -4)):
        exact = slope * inputs[name].std() / y.std()
        assert found[name, "src"] == pytest.approx(exact, rel=1e-9)
    assert found["c", "src"] == pytest.approx(0, abs=1e-9)
    assert found[None, "r2"] == pytest.approx(1)
    assert found["a", "prcc"] > 0.9
    assert found["b", "prcc"] < -0.9
    assert abs(found["c", "prcc"]) < 0.15


def test_a_partial_correlation_is_the_one_of_the_inverse_correlation_matrix():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3))
    y = x @ [1.0, -0.5, 0.2] + rng.normal(size=60)
    inverse = np.linalg.inv(np.corrcoef(np.column_stack([x, y]), rowvar=False))
    for i in range(3):
        exact = -inverse[i, 3] / math.sqrt(inverse[i, i] * inverse[3, 3])
        assert sensitivity._partial(x, y, i) == pytest.approx(exact)


def test_the_delay_of_a_link_depends_on_its_delay_and_rate_alone(saltelli):
    assert (len(saltelli.runs), saltelli.design["points"]) == (320, 320)
    delay = saltelli.flows["axis.delay"].to_numpy()
    rate = saltelli.flows["axis.rate"].to_numpy()
    # Propagation and serialisation of 160 bytes with the headers of RTP, UDP and IP, or without RTP's.
    header = saltelli.flows["network_header_bytes"] + saltelli.flows["transport_header_bytes"]
    octets = (saltelli.flows["sent_bytes"] / saltelli.flows["sent_packets"]).to_numpy()
    assert (header > 0).all()
    exact = delay + 8 * octets / rate
    assert saltelli.flows["delay_mean_s"].to_numpy() == pytest.approx(exact, abs=2e-9)
    rows = saltelli.sensitivity("delay_mean_s").rows(named=True)
    found = {(row["factor"], row["index"]): row for row in rows}
    for index in ("first", "total"):
        assert found["packets", index]["value"] == pytest.approx(0, abs=1e-12)
    # Of an additive model: V(delay) and V(8 L / rate) with a log-uniform rate.
    low, high, length = 8 * octets[0] / 2e6, 8 * octets[0] / 2e5, math.log(10)
    of_rate = (high**2 - low**2) / (2 * length) - ((high - low) / length) ** 2
    of_delay = 0.03**2 / 12
    assert found["delay", "total"]["value"] == pytest.approx(
        of_delay / (of_delay + of_rate), abs=0.05
    )
    assert found["rate", "total"]["value"] == pytest.approx(
        of_rate / (of_delay + of_rate), abs=0.03
    )


def test_a_constant_measure_has_no_index_and_says_so(saltelli):
    rows = saltelli.sensitivity("delivery_ratio")
    assert rows["value"].is_null().all()
    assert set(rows["note"]) == {sensitivity.CONSTANT}


def test_a_measure_without_values_says_how_many(saltelli):
    rows = saltelli.sensitivity("mos")
    assert set(rows["note"]) == {"320 of 320 points have no value"}
    assert set(rows["missing"]) == {320}


def test_points_are_those_of_the_seed_with_axes_and_replications():
    more = '[[axes]]\npath = "flows.call.dscp"\nvalues = [0, 46]\n[replications]\ncount = 2\n'
    text = design("latin_hypercube", 8, DELAY, RATE, IDLE, more=more)
    study = talkspurt.run(text, study=True)
    assert len(study.runs) == 2 * 8 * 2
    points = [tuple(run.settings.values())[1:] for run in study.runs]
    assert points[:16] == points[16:]
    assert points[0] == points[1] != points[2]
    # Latin: each eighth of the range of the delay has one value, on its scale that of the rate.
    delays = np.array(sorted(study.axis("delay").numbers))
    assert ((delays - 0.01) / 0.03 * 8).astype(int).tolist() == list(range(8))
    rates = np.log10(np.array(sorted(study.axis("rate").numbers)) / 2e5)
    assert (rates * 8).astype(int).tolist() == list(range(8))
    assert all(float(n).is_integer() and 20 <= n <= 60 for n in study.axis("packets").numbers)
    again = talkspurt.run(text, study=True)
    assert [run.digest for run in again.runs] == [run.digest for run in study.runs]
    other = talkspurt.run(text, study=True, seed=4)
    assert other.axis("delay").numbers != study.axis("delay").numbers
    rows = study.sensitivity("delay_mean_s")
    assert set(rows["axis.dscp"]) == {"0", "46"}


def test_categories_have_a_row_for_each_value_but_the_first():
    transports = (
        '{ path = "flows.call.transport", labels = ["UDP", "TCP"], '
        'values = [{ kind = "udp" }, { kind = "tcp", controller = "newreno" }] }'
    )
    study = talkspurt.run(design("latin_hypercube", 12, DELAY, transports), study=True)
    labels = [run.settings["transport"] for run in study.runs]
    assert {label: labels.count(label) for label in ("UDP", "TCP")} == {"UDP": 6, "TCP": 6}
    rows = study.sensitivity("delay_mean_s")
    assert set(rows["factor"].drop_nulls()) == {"delay", "transport = TCP"}


def test_the_command_line_runs_resumes_prints_and_draws(tmp_path):
    put(tmp_path / "d.toml", design("sobol", 4, DELAY, RATE))
    succeed("run", "d.toml", "--out", "out", "--no-report", cwd=tmp_path)
    summary = pl.read_parquet(tmp_path / "out" / "summary.parquet")
    assert {"axis.delay", "axis.rate"} <= set(summary.columns)
    assert summary["axis.delay"].dtype == pl.Float64
    shown = succeed("sensitivity", "out", "delay_mean_s", "-o", "bars.png", cwd=tmp_path)
    assert "first order" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert (tmp_path / "bars.png").read_bytes().startswith(b"\x89PNG")
    said = json.loads(succeed("sensitivity", "out", "delay_mean_s", "--json", cwd=tmp_path).stdout)
    assert (said["design"]["points"], len(said["rows"])) == (16, 4)
    succeed("plot", "out", "delay_mean_s", "--over", "rate", "-o", "p.png", cwd=tmp_path)
    loaded = talkspurt.load(tmp_path / "out", study=True)
    assert loaded.sensitivity("delay_mean_s").to_dicts() == said["rows"]
    wrong = refused("sensitivity", "out", "moss", cwd=tmp_path)
    assert "moss" in wrong.stderr


def test_an_axis_of_sampled_values_has_the_ticks_of_a_range(saltelli):
    for name, words in (("delay", "delay / ms"), ("rate", "rate / ")):
        (ax, *_) = saltelli.figure("delay_mean_s", over=name).axes
        ticks = [tick.get_text() for tick in ax.get_xticklabels()]
        assert ax.get_xlabel().startswith(words)
        assert 3 <= len(ticks) <= 12 and all(float(tick) for tick in ticks)
        assert {tick.get_rotation() for tick in ax.get_xticklabels()} == {0.0}
    assert ax.get_xscale() == "log"


def test_a_map_of_sampled_values_would_be_empty_but_for_its_diagonal(saltelli):
    names = [axis.name for axis in saltelli.axes if axis.factor]
    with pytest.raises(ValueError, match="each point of the design has its own"):
        saltelli.figure("delay_mean_s", kind="map", over=names[0], by=names[1])


def test_the_report_says_the_range_of_what_was_sampled(saltelli):
    page = study_page.html(saltelli)
    assert "320 points of a design" in page
    (delay,) = re.findall(r" · delay: (.*?) · ", page)
    least, greatest = map(float, re.fullmatch(r"([\d.]+)ms to ([\d.]+)ms", delay).groups())
    values = [1e3 * value for value in saltelli.axis("delay").numbers]
    assert (least, greatest) == pytest.approx((min(values), max(values)))
    assert "Sensitivity to the factors</h2>" in page and "Over nothing" not in page


def test_a_negative_seed_is_an_error_of_the_seed():
    found = problems(talkspurt.run, design("sobol", 8, DELAY), set={"seed": -1})
    assert [problem["path"] for problem in found] == ["seed"]


def test_a_problem_at_many_points_is_one_error():
    base = BASE.replace(
        'kind = "droptail", packets = 50', 'kind = "red", packets = 20, min_threshold = 5'
    )
    above = '{ path = "links.wire.queue.max_threshold", min = 6, max = 30 }'
    text = design("latin_hypercube", 50, DELAY, above).replace(BASE, base)
    (problem,) = problems(talkspurt.read, text)
    # Of the range from 6 to 30, ten parts of 24 are above 20.
    found = re.search(r"\(at (\d+) of 50 points, such as delay = \S+, max_", problem["message"])
    assert int(found[1]) == pytest.approx(50 * 10 / 24, abs=2)


def told(text):
    found = problems(talkspurt.run, text, study=True)
    return [(p["line"], p["path"], p["message"]) for p in found]


def test_all_errors_of_a_design_are_told_at_once_with_their_lines():
    factors = [
        '{ path = "links.wire.delay", min = "40ms", max = "10ms" }',
        '{ path = "links.wire.loss", min = 0.0, max = 0.5, scale = "log" }',
        '{ path = "links.wire.rate", min = "1ms", max = "2Mbit/s" }',
        '{ path = "links.wire.dely", min = 1, max = 2 }',
        '{ path = "links.wire.from", min = 1, max = 2 }',
        '{ path = "links.wire.jitter", min = "1ms" }',
        '{ path = "links.wire.queue.packets", min = 1.5, max = 9 }',
        '{ path = "flows.call.dscp", min = 1, max = 2, values = [3] }',
    ]
    text = design("sobol", 48, *factors)
    found = told(text)
    first = text.splitlines().index(f"factors = [{factors[0]},") + 1
    for i in range(len(factors)):
        line = first + i
        assert any(place == line for place, *_ in found), (line, found)
    messages = "\n".join(f"{path}: {message}" for _, path, message in found)
    for words in (
        "48 is no power of two",
        "must be below max",
        "has no logarithm",
        "design.factors[2].min",
        'has no "dely"',
        "is neither a number nor a quantity",
        "missing (an end of the range)",
        "expected a whole number",
        "belongs to a range",
    ):
        assert words in messages, (words, messages)


def test_few_samples_and_values_out_of_range_are_told():
    (few,) = told(design("latin_hypercube", 3, DELAY, RATE))
    assert "expected at least 4" in few[2]
    loss = '{ path = "links.wire.loss", min = 0.5, max = 1.5 }'
    (wrong,) = told(design("sobol", 8, loss))
    assert wrong[1] == "design.factors[0].max"
    # What only a whole scenario can tell is told with the point.
    start = '{ path = "flows.call.start", min = "100ms", max = "1900ms" }'
    late = told(design("sobol", 8, start))
    assert late
    assert all("points, such as start = " in message for *_, message in late)
