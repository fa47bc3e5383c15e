"""What ``make bench-peers`` and ``make bench-gate`` make of their measurements.

The figures themselves are not asserted anywhere: they are the machine's.
"""

import json
import sys
import tomllib
from functools import partial
from pathlib import Path

import pytest

import talkspurt
from benches import commands, gate, guided
from benches.cost import FailedError, cost
from benches.peers import __main__ as command
from benches.peers import page, plan, programs, tables
from benches.peers.compare import ratio, unlike
from benches.peers.matches import MATCHES, Match, network
from benches.peers.results import Results, Step
from command import output, process
from talkspurt.scenarios import units
from talkspurt.scenarios.resolved import values
from talkspurt.scenarios.source import read
from texts import put

ROOT = Path(__file__).parent.parent
MATCH = Match("w1", "ns-2 lean", 100, 1, must=3.8)


def test_a_ratio_is_the_median_of_those_of_the_pairs():
    # A machine that slows down by half for two pairs changes CPU times, but not their ratios.
    pairs = [(1.0, 5.0), (1.0, 5.2), (2.0, 10.0), (2.0, 9.6), (1.0, 30.0)]
    found = ratio(pairs)
    assert (found.median, found.lowest, found.highest, found.pairs) == (5.0, 4.8, 30.0, 5)


@pytest.mark.parametrize(
    ("here", "there", "why"),
    [
        ({"hops": 1029, "loss": 0.010}, {"hops": 1000, "loss": 0.0149}, []),
        ({"hops": 1031, "loss": 0.010}, {"hops": 1000, "loss": 0.010}, ["hops +3.1%"]),
        ({"hops": 969, "loss": 0.010}, {"hops": 1000, "loss": 0.010}, ["hops -3.1%"]),
        ({"hops": 1000, "loss": 0.010}, {"hops": 1000, "loss": 0.0151}, ["loss 1.00% and 1.51%"]),
        ({"hops": 1000, "loss": 0.010}, {"hops": 1000, "loss": 0.0}, ["loss 1.00% and 0.00%"]),
        ({"hops": 1000, "loss": 0.0}, {"hops": 1000, "loss": 0.0}, []),
        ({"goodput_mbps": 4.19, "hops": 1}, {"goodput_mbps": 4.0}, []),
        ({"goodput_mbps": 4.21, "hops": 1}, {"goodput_mbps": 4.0}, ["goodput +5.2%"]),
    ],
)
def test_a_ratio_counts_only_between_equals(here, there, why):
    assert unlike(here, there) == why


def made_of(match, hops_there, folder, events=7):
    """Results in which ours took 1, 2 and 3 s and the peer's 5 times that."""
    here = {"hops": 1000, "loss": 0.01, "events": 3}
    pairs = {
        f"pair {match.key} #{i}": {
            "here": {"cpu_s": i + 1.0, "peak_mb": 5.0, "said": here},
            "there": {"cpu_s": 5.0 * (i + 1), "peak_mb": 20.0, "said": {"events": events}},
        }
        for i in range(3)
    }
    counted = {"hops": hops_there, "core_packets": 99, "drops": 1, "events": 7}
    return Results(folder / "kept.json", "of", {**pairs, f"count {match.run} in ns-2": counted})


def test_what_is_asked_is_met_only_by_a_ratio_that_counts(tmp_path):
    def line(results):
        return tables.lines(results, [MATCH])

    assert "5 (5–5), asked 3.8: met" in line(made_of(MATCH, 1000, tmp_path))
    assert "does not count: hops -9.1%, asked 3.8: not met" in line(made_of(MATCH, 1100, tmp_path))
    # The run that counted was not the one that was timed.
    assert "does not count: runs that differ" in line(made_of(MATCH, 1000, tmp_path, events=8))


def test_a_cell_is_compared_by_the_simulated_second():
    match = next(match for match in MATCHES if match.workload == "w6-100")
    said = {"goodput_mbps": 4.3, "saturated_cpu_s": match.seconds * 2.0}
    pair = {
        "here": {"cpu_s": programs.CELL_S * 0.01, "peak_mb": 1, "said": {"goodput_mbps": 4.3}},
        "there": {"cpu_s": 99.0, "peak_mb": 1, "said": said},
    }
    results = Results(Path("nowhere"), "of", {f"pair {match.key} #0": pair})
    assert results.outcome(match).ratio().median == pytest.approx(200)


def test_what_is_missing_is_named_and_nothing_done(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    words = programs.missing({"ns-2 lean", "ns-3"})
    assert "apt-get install ns2 g++ ns3 libns3-dev" in words
    assert programs.missing(set()) is None
    monkeypatch.setattr(sys, "argv", ["bench-peers", "--peers", "ns-2"])
    assert command.main() == 2


def test_what_is_done_is_kept_when_it_is_stopped(tmp_path):
    def stop():
        raise KeyboardInterrupt

    file, told = tmp_path / "deep" / "kept.json", []
    steps = [Step("a #0", 1, lambda: 1), Step("a #1", 2, lambda: 2), Step("b", 1, stop)]
    with pytest.raises(KeyboardInterrupt):
        Results.resumed(file, "this").run(steps, lambda *words: told.append(words))
    assert [(step.key, place, number, left) for step, place, number, left in told] == [
        ("a #0", 0, 3, 4), ("a #1", 1, 3, 3), ("b", 2, 3, 1)
    ]  # fmt: skip
    # The same goes on from there, another program begins anew.
    assert Results.resumed(file, "this").numbered("a") == [1, 2]
    assert Results.resumed(file, "another").done == {}
    file.write_text("{", encoding="utf-8")
    assert Results.resumed(file, "this").done == {}


def test_a_program_that_fails_says_so(tmp_path):
    fails = "import sys; sys.exit(print('no such thing', file=sys.stderr) or 3)"
    with pytest.raises(FailedError, match=r"status 3\nno such thing"):
        cost([sys.executable, "-c", fails])
    with pytest.raises(FailedError, match="could not be started"):
        cost([tmp_path / "absent"])
    done = cost([sys.executable, "-c", "print('words'); print('{\"hops\": 3}'); sum(range(10**7))"])
    assert done["said"] == {"hops": 3}
    assert 0.01 < done["cpu_s"] < 60


def test_peers_are_given_the_network_that_runs_here():
    """The dumbbells of matches.py are those that talkspurt-bench writes as scenarios."""
    if not programs.PLAIN.exists():
        pytest.skip("talkspurt-bench is not built: make bench-gate builds it")
    for name in ("w1", "w2", "w3", "w3d", "w4", "w5-10", "w5-1000"):
        words = [programs.PLAIN, name, "--scenario", *([] if name == "w2" else ["--noise"])]
        told = output(*words)
        scenario, net = tomllib.loads(told), network(name)
        core = scenario["links"]["core"]
        assert core["rate"] == ("2Gbit/s" if net.mbps == 2000 else f"{net.mbps}Mbit/s")
        assert core["queue"]["packets"] == net.limit
        assert core["queue"]["kind"] == net.queue.lower()
        assert len(scenario["flows"]) == net.each * len(net.kinds)
        if name != "w2":
            noise = values(told)["links"]["left0"]["jitter"]
            assert units.seconds(noise) == pytest.approx(net.service_s, abs=1e-9)


def test_what_the_program_is_trained_on_is_there_and_is_not_what_is_measured():
    if not programs.PLAIN.exists():
        pytest.skip("talkspurt-bench is not built: make bench-gate builds it")
    measured = {(match.workload, str(match.seconds)) for match in MATCHES}
    measured |= {(name, str(seconds)) for name, seconds in plan.BUILT.items()}
    for step in plan.steps(list(MATCHES), pairs=1, all_else=True):
        if isinstance(step.work, partial):
            for command_ in (word for word in step.work.args if isinstance(word, list)):
                measured |= {tuple(command_[:2]), tuple(command_[1:3])}
    for words in guided.TRAINING:
        assert tuple(words.split()[:2]) not in measured
        cost([programs.PLAIN, *words.split(), "--scenario"])


def test_without_the_compilers_tools_nothing_is_built(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(guided, "BENCH", tmp_path / "talkspurt-bench")
    monkeypatch.setattr(guided, "profdata", lambda: tmp_path / "llvm-profdata")
    monkeypatch.setattr(programs, "missing", lambda peers: "and ns2")
    monkeypatch.setattr(sys, "argv", ["bench-peers"])
    assert command.main() == 2
    said = capsys.readouterr().err
    assert "rustup component add llvm-tools" in said and "and ns2" in said
    assert list(tmp_path.iterdir()) == []


def test_a_program_is_built_anew_for_other_sources_or_flags(monkeypatch, tmp_path):
    monkeypatch.setattr(guided, "BENCH", tmp_path / "talkspurt-bench")
    monkeypatch.setattr(guided, "MADE_OF", tmp_path / "talkspurt-bench.made-of")
    guided.BENCH.touch()
    assert not guided.is_built()
    guided.MADE_OF.write_text(guided.made_of(), encoding="utf-8")
    assert guided.is_built()
    monkeypatch.setenv("RUSTFLAGS", "-Ctarget-cpu=native")
    assert not guided.is_built()


def test_a_page_of_nothing_is_a_page():
    text = page.page(Results(Path("nowhere"), "of", {}), (0.0, 0.0, 0.0))
    assert "## Build" in text
    lines = text.splitlines()
    rules = [number for number, line in enumerate(lines) if line.startswith("|---")]
    assert len(rules) > 5
    for number in rules:
        assert lines[number - 1].count("|") == lines[number].count("|"), lines[number - 1]


def test_the_gate_fails_beyond_its_tolerance_and_says_how_to_go_on():
    limits = gate.Limits(0.03, "rustc 1.95.0", {"w1": 1000, "w2": 2000})
    assert limits.exceeded({"w1": 1029.9, "w2": 1900}, "rustc 1.95.0") == []
    found = limits.exceeded({"w1": 1031, "w2": 2000}, "rustc 1.99.0")
    assert found[0].startswith("w1: 1031 instructions a hop, +3.1%")
    assert "rustc 1.99.0" in found[1]
    assert limits.cheaper({"w1": 969, "w2": 1950}) == [
        "w1: 969 instructions a hop, the limit is 1000"
    ]


def test_the_committed_limits_are_those_the_gate_counts(tmp_path):
    limits = gate.Limits.read()
    assert set(limits.instructions) == set(gate.LENGTHS)
    assert 0 < limits.tolerance <= 0.05
    again = put(tmp_path / "limits.toml", limits.text())
    assert gate.Limits.read(again) == limits == gate.Limits.read()
    assert limits.text() == gate.FILE.read_text(encoding="utf-8")


def test_the_command_line_refuses_what_it_cannot_do():
    def said(*words):
        done = process(sys.executable, "-m", "benches.peers", *words, cwd=ROOT)
        return done.returncode, done.stderr

    assert said("--shorten", "2") == (2, said("--shorten", "2")[1])
    assert "above 0 and at most 1" in said("--shorten", "2")[1]
    assert "at least one" in said("--pairs", "0")[1]
    assert said("--only", "w3d", "--peers", "ns-3") == (
        2,
        "none of these workloads has such a peer\n",
    )


def test_every_step_has_a_name_of_its_own():
    keys = [step.key for step in plan.steps(list(MATCHES), pairs=5, all_else=True)]
    counts = [key for key in keys if key.startswith("count ")]
    # ns-2 counts once for its lean and its plain runs.
    assert len(set(keys)) == len(keys) - (len(counts) - len(set(counts)))
    json.dumps(keys)


def test_costs_of_commands_are_multiples_of_the_engine_between_them(monkeypatch, tmp_path):
    engine = iter([0.5, 1.0, 0.25])
    monkeypatch.setattr(commands, "cost", lambda command: {"cpu_s": next(engine)})
    bench = commands.Bench("talkspurt-bench", tmp_path)
    # A machine that is slow for a while does not change the multiple.
    product = iter([1.0, 2.0, 0.6])
    assert bench.over_engine(lambda: next(product)) == 2
    assert bench.engine == [0.5, 1.0, 0.25]


def test_a_cost_of_a_command_is_compared_with_its_limits():
    row = commands.ROWS[0]
    assert [row.verdict(value) for value in (row.aim, row.must, row.must + 0.01)] == [
        "aim met", "met", "NOT MET"
    ]  # fmt: skip
    assert commands.numbers(row, 1.234) == ["4.70 ×", "1.23 ×", "1.70 ×", "1.35 ×"]
    # Limits in seconds hold for the machine on which the engine's run takes REFERENCE_S.
    assert commands.seconds(commands.REFERENCE_S) == 1


def test_scenarios_of_costs_are_valid():
    question = read(commands.calls(30, "20ms"))
    assert len(talkspurt.run(question.text).flows) == 30


def test_the_page_of_costs_has_a_place_for_the_table():
    page = commands.PAGE.read_text(encoding="utf-8")
    before, rest = page.split(commands.START)
    table, after = rest.split(commands.END)
    assert before and after
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert {row.split(" | ")[0][2:] for row in rows} <= {row.words for row in commands.ROWS}
