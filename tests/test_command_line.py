"""Command lines: groups in the help, wrong ones answered in plain words, and what is the last run."""

import io
import json
import os
import re
import shlex
import shutil

import pytest
from rich.console import Console

import talkspurt as package
from command import refused, succeed, talkspurt, told
from talkspurt import _commands
from talkspurt._commands.options import COMMANDS, DPI, GROUPS, inches
from talkspurt.metrics.catalogue import ALL
from texts import put

NO_BROWSER = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "BROWSER": ""}
OF_THE_PARSER = re.compile(r"token|convert|parameter|argument|[╭│╰]|\[\'", re.IGNORECASE)


@pytest.fixture(scope="module")
def saved(folder, tmp_path_factory):
    """A run and a study in runs/ of a folder."""
    place = tmp_path_factory.mktemp("saved")
    for name, file in (("single", "small"), ("several", "study")):
        found = package.run(folder / f"{file}.toml", study=file == "study")
        found.save(place / "runs" / name, report=False)
    return place


def test_help_has_four_groups_with_every_command_once():
    text = succeed("--help").stdout
    heads = re.findall(r"^╭─ (.*?) ─", text, re.MULTILINE)
    assert heads == list(GROUPS) and len(heads) == 4
    assert sorted(COMMANDS) == sorted(re.findall(r"^│ ([a-z]+) ", text, re.MULTILINE))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("rnu x.toml", "rnu: no command; did you mean run?"),
        ("x.toml", "x.toml: no command; `talkspurt run x.toml` runs a scenario"),
        ("runs/single", "`talkspurt open runs/single` opens"),
        ("help", "help: no command; `talkspurt --help` helps"),
        ("help run", "`talkspurt run --help` helps"),
        ("''", "'': no command; `talkspurt --help`"),
        ("--out x run x.toml", "--out: an option follows its command, as in `talkspurt run … --out`"),
        ("--json run x.toml", "--json: an option follows its command"),
        ("-- run x.toml", "--: stands behind a command"),
        ("--versoin", "--versoin: no option; did you mean --version?"),
        ("-v", "-v: no option; `talkspurt --help`"),
        ("run", "run: SCENARIO is missing; expected `talkspurt run [OPTIONS] SCENARIO`"),
        ("run --", "run: SCENARIO is missing"),
        ("run x.toml y.toml", "run: y.toml: too many words; expected `talkspurt run [OPTIONS] SCENARIO"),
        ("run x.toml ''", "run: '': too many words"),
        ("run x.toml --sed 3", "run: --sed: no option; did you mean --seed?"),
        ("run x.toml --sed=3", "run: --sed: no option; did you mean --seed?"),
        ("run -x x.toml", "run: -x: no option; `talkspurt run --help` lists the options"),
        ("run x.toml -", "run: -: expected the name of a file"),
        ("run --scenario x.toml", "SCENARIO is given without an option"),
        ("run x.toml --no-json", "run: --no-json: no option; leave --json out"),
        ("run x.toml --json=3", "run: --json 3: expected no value"),
        ("run x.toml --seed", "run: --seed: expected a whole number behind it"),
        ("run x.toml --seed x", "run: --seed x: expected a whole number"),
        ("run x.toml --seed 1.5", "run: --seed 1.5: expected a whole number"),
        ("run x.toml --seed=", "run: --seed '': expected a whole number"),
        ("run x.toml --seed 1 --seed 2", "run: --seed: given twice"),
        ("run x.toml --out", "run: --out: expected the name of a file or folder behind it"),
        ("run x.toml --set", "run: --set: expected a value behind it"),
        ("run x.toml -jx", "run: -j x: expected a whole number"),
        ("serve --max-sessions 2.5", "serve: --max-sessions 2.5: expected a whole number"),
        ("export runs/single", "export: --to is missing; expected one of table, xlsx, csv"),
        ("export --to csv", "export: SOURCE is missing"),
        ("export runs/single --to pcap", "did you mean pcapng?"),
        ("init wfi", "init: TEMPLATE wfi: expected one of first-call, "),
        ("plot", "plot: RUN is missing; expected `talkspurt plot [OPTIONS] RUN MEASURE…`"),
        ("plot runs/single", "plot: MEASURE is missing; `talkspurt metrics` lists metrics"),
        ("plot runs/single mos --kind pie", "--kind pie: expected one of lines, bars"),
        ("metrics runs/single mos --bin x", "metrics: --bin x: expected a number"),
        ("open runs/single runs/several", "open: runs/several: too many words"),
        ("emulate", "emulate: SCENARIO is missing"),
        ("emulate x.toml --nope", "emulate: --nope: expected one scenario"),
    ],
)  # fmt: skip
def test_a_wrong_command_line_is_answered_in_plain_words(saved, words, said):
    asked = shlex.split(words)
    if "emulate x.toml" in words:
        asked += ["--", "true"]
    line = told(*asked, cwd=saved)
    assert line.startswith("talkspurt: ") and said in line, line
    given = re.sub(re.escape(words), "", line)
    assert not OF_THE_PARSER.search(given), line


def test_no_command_has_words_of_the_parser_for_what_is_wrong(tmp_path):
    """Whatever its options are: a missing and an unknown one, and one word too many."""
    for command in COMMANDS:
        for words in (["--no-such-option"], ["a", "b", "c", "d", "--no-such-option=1"]):
            if command == "emulate":
                words = [*words, "--", "true"]
            line = refused(command, *words, cwd=tmp_path).stderr
            assert line.startswith("talkspurt: ") and not OF_THE_PARSER.search(line), line
    assert not list(tmp_path.iterdir())


def test_open_and_report_take_the_last_run_and_say_which(result, tmp_path):
    for command in ("open", "report"):
        line = told(command, cwd=tmp_path)
        assert line == "talkspurt: no result is here or in runs/: name the folder of one\n"
    result.save(tmp_path / "runs/first", report=False)
    result.save(tmp_path / "second")
    result.save(tmp_path / "runs/group/third", report=False)
    for place, created in (("runs/first", 1), ("second", 3), ("runs/group/third", 2)):
        file = tmp_path / place / "manifest.json"
        manifest = json.loads(file.read_text(encoding="utf-8"))
        manifest["created"] = f"2026-01-0{created}T00:00:00+00:00"
        put(file, json.dumps(manifest))
        os.utime(tmp_path / place, (1, 1))
    done = succeed("open", cwd=tmp_path, env=NO_BROWSER)
    assert done.stdout.startswith("The last result: second\n")
    assert f"{tmp_path}/second/report.html" in done.stdout
    (tmp_path / "second/manifest.json").write_text("{}", encoding="utf-8")
    done = succeed("report", cwd=tmp_path)
    assert done.stdout == (
        "The last result: runs/group/third\nReport: runs/group/third/report.html\n"
    )
    assert (tmp_path / "runs/group/third/report.html").is_file()


def test_help_names_units_and_forms_instead_of_types():
    for command in COMMANDS:
        paper = Console(file=io.StringIO(), width=400, color_system=None)
        _commands.app([command, "--help"], console=paper, result_action="return_value")
        types = re.findall(r"--\S+ (?:STR|INT|FLOAT)\b.*", paper.file.getvalue())
        assert not types, f"{command}: {types}"


OVERWRITING = (
    "answer", "call", "compare", "crosscheck", "emulate", "evaluate", "export", "import", "init",
    "measure", "merge", "plot", "reproduce", "run", "schema", "sensitivity",
)  # fmt: skip
"""Commands that write what is not part of a result yet."""


def test_overwrite_has_one_meaning_on_every_command_that_writes():
    meanings = {}
    for command in COMMANDS:
        paper = Console(file=io.StringIO(), width=400, color_system=None)
        _commands.app([command, "--help"], console=paper, result_action="return_value")
        found = re.search(r"│ +--overwrite(?: --force)? +(.*?) *│", paper.file.getvalue())
        if found:
            meanings[command] = found[1]
    assert tuple(sorted(meanings)) == OVERWRITING
    assert len(set(meanings.values())) == 1, meanings


@pytest.mark.parametrize(
    "words",
    [
        ("plot", "runs/single", "mos", "-o", "file.svg"),
        ("plot", "runs/single", "mos", "-o", "file.png"),
        ("plot", "runs/single", "mos", "-o", "file.pdf"),
        ("schema", "--out", "file.json"),
        ("export", "runs/several", "--to", "table", "-o", "file.csv"),
    ],
)
def test_a_file_of_another_kind_is_replaced_only_when_asked(saved, tmp_path, words):
    shutil.copytree(saved / "runs", tmp_path / "runs")
    file = put(tmp_path / words[-1], "%PDF-1.4 and a thesis; or numbers, 1, 2, 3\n")
    assert f"{words[-1]}: exists and is no " in told(*words, cwd=tmp_path)
    assert "thesis" in file.read_text(encoding="utf-8")
    succeed(*words, "--overwrite", cwd=tmp_path)
    content = file.read_bytes()
    assert b"thesis" not in content
    # Its own output is replaced without further ado.
    succeed(*words, cwd=tmp_path)
    assert file.read_bytes() == content


def test_an_export_may_replace_another_result_but_not_its_own(saved, tmp_path):
    shutil.copytree(saved / "runs", tmp_path / "runs")
    export = ("export", "runs/several", "--to", "csv", "-o")
    assert "or say --overwrite" in told(*export, "runs/single", cwd=tmp_path)
    assert "is what is exported" in told(*export, "runs/several", "--overwrite", cwd=tmp_path)
    package.load(tmp_path / "runs/several", study=True)
    succeed(*export, "runs/single", "--overwrite", cwd=tmp_path)
    assert (tmp_path / "runs/single/summary.csv").is_file()


def completed(saved, *words):
    """What a shell is offered for the last word."""
    done = succeed("__complete", *words, cwd=saved)
    begin, *lines = done.stdout.strip("\n").split("\n")
    assert begin == "\x1fbegin"
    return [line.partition("\t")[0] for line in lines]


def test_completion_knows_metrics_axes_flows_and_links(saved):
    several = package.load(saved / "runs/several", study=True)
    metrics = completed(saved, "metrics", "runs/several", "")
    assert {metric.name for metric in ALL} >= set(metrics) - {one.full_name for one in ALL}
    assert {"mos", "goodput_bps", "fairness"} <= set(metrics)
    plotted = completed(saved, "plot", "runs/several", "")
    assert set(plotted) == set(metrics)
    assert {"queue", "waveform", "mos"} <= set(completed(saved, "plot", "runs/single", ""))
    for option in ("--over", "--by"):
        axes = completed(saved, "plot", "runs/several", "mos", option, "")
        assert axes[: len(several.axes)] == [axis.name for axis in several.axes]
        assert {"flow", "transport", "time"} <= set(axes)
    single = package.load(saved / "runs/single", study=False)
    flows = completed(saved, "metrics", "runs/single", "mos", "--flow", "")
    assert set(flows) == {flow["name"] for flow in single.topology["flows"]}
    links = completed(saved, "plot", "runs/single", "links.drops", "--link", "")
    assert set(links) == {link["name"] for link in single.topology["links"]}
    assert completed(saved, "plot", "runs/nowhere", "mos", "--flow", "") == []


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("7.2", 7.2), ("7.2in", 7.2), ("18 cm", 18 / 2.54), ("180mm", 18 / 2.54), (".5in", None),
        ("41", None), ("9pt", None), ("-3", None), ("", None), ("1e1", None), ("nan", None),
    ],
)  # fmt: skip
def test_lengths(text, length):
    assert inches(text) == (length and pytest.approx(length))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--width wide", "--width wide: expected 1 to 40 inches, as in 7.2, 7.2in, 18cm or 180mm"),
        ("--height 0", "--height 0: expected 1 to 40 inches"),
        ("--dpi 10", f"--dpi 10: expected {DPI[0]} to {DPI[1]}"),
        ("--dpi 100 -o a.svg", "--dpi: for a .png; .svg has no pixels"),
    ],
)
def test_a_size_that_no_figure_has_is_told(saved, tmp_path, words, said):
    line = told("plot", saved / "runs/single", "mos", *words.split(), cwd=tmp_path)
    assert said in line
    assert not list(tmp_path.iterdir())


def test_exit_status_of_success_is_zero():
    assert talkspurt("--version").returncode == 0
