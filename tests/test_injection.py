"""No text of a scenario is executed or changes the form of a file that it is written to."""

from __future__ import annotations

import random
import shutil

import polars as pl
import pytest

import talkspurt as package
from command import needs_ns, output, succeed, talkspurt
from conftest import problems
from talkspurt.ns2 import crosscheck as both
from talkspurt.ns2 import script
from talkspurt.ns2.tcl import comment, word
from talkspurt.report import single
from talkspurt.scenarios.source import read
from texts import UDP, cbr, flow_text, link_text, put, scenario_text

needs_tclsh = pytest.mark.skipif(shutil.which("tclsh") is None, reason="tclsh is not installed")

LINK = link_text("l", "a>b", "1Mbit/s", "10ms", 10)
FLOW = flow_text("x", "a>b", UDP, cbr("80kbit/s", "200B", noise="0ms"), start_spread="0s")
SCENARIO = "\n" + scenario_text("t", "1s", LINK, FLOW)


def titled(title):
    return SCENARIO.replace('"t"', title)


SPECIAL = "[]{}\"'\\$;#\n\r\t\x1a\x00 \u2028\u0085abcäß→()/*-+=@%&|<>`~"


def texts(count: int, least: int = 0) -> list[str]:
    draw = random.Random(5)
    return ["".join(draw.choices(SPECIAL, k=draw.randint(least, 12))) for _ in range(count)]


@needs_tclsh
def test_a_word_of_tcl_is_the_text_itself(tmp_path):
    asked = texts(500)
    lines = [f"puts [binary encode hex [encoding convertto utf-8 {word(text)}]]" for text in asked]
    (tmp_path / "words.tcl").write_text("\n".join(lines), encoding="utf-8")
    done = output("tclsh", "words.tcl", cwd=tmp_path)
    # Tcl may write NUL in its own way (Tcl_UtfToUniChar(3)).
    got = [line.replace("c080", "00") for line in done.split("\n")[:-1]]
    assert got == [text.encode().hex() for text in asked]


@needs_tclsh
def test_a_comment_of_tcl_does_nothing(tmp_path):
    asked = [f"{text}[exec touch {n}]{end}" for n, text in enumerate(texts(300))
             for end in ("", "\\", "\n", "\r", "\x1a")]  # fmt: skip
    code = "".join(f"# {comment(text)}\nincr seen\nset a 1 ;# {comment(text)}\n" for text in asked)
    (tmp_path / "comments.tcl").write_text(f"set seen 0\n{code}puts $seen", encoding="utf-8")
    done = output("tclsh", "comments.tcl", cwd=tmp_path)
    assert done == f"{len(asked)}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["comments.tcl"]


@pytest.mark.parametrize(
    "character", ["\\n", "\\r", "\\t", "\\u001B", "\\u0085", "\\u2028", "\\u202E", "\\u2066"]
)
def test_a_title_has_no_control_characters(character):
    (problem,) = problems(read, titled(f'"a{character}[exec touch harmed]"'))
    assert problem["path"] == "title"
    assert "has the control character U+" in problem["message"]
    assert problem["line"] == 2


AXIS = '[[axes]]\npath = "links.l.delay"\nvalues = ["1ms", "2ms"]\nlabels = ["a", "\\u202E"]'


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("description", 'description = "a\\u001B"', ""),
        ("flows.x.group", "", 'group = "a\\nb"'),
        ("axes[0].labels[1]", "", AXIS),
    ],
)
def test_other_texts_that_are_shown_have_none_either(path, before, after):
    (problem,) = problems(read, before + titled('"a"') + after)
    assert problem["path"] == path
    assert "has the control character U+" in problem["message"]
    assert problem["line"] is not None


@needs_ns
@pytest.mark.parametrize(
    "title",
    ["[exec touch harmed]", "a \\\\", "${env(HOME)}", "}; exec touch harmed; {", '\\" [exit 3]'],
)
def test_a_title_runs_nothing_in_ns2(title, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = both.crosscheck(read(titled(f'"{title}"')))
    assert found.value("x", "received_packets").ns2 == found.value("x", "received_packets").here
    assert not (tmp_path / "harmed").exists()


@needs_ns
@pytest.mark.parametrize("name", ["a [exec touch harmed].toml", "$x;exit 3.toml", "b\nexit 3.toml"])
def test_the_name_of_a_file_runs_nothing_in_ns2(name, tmp_path):
    (tmp_path / name).write_text(SCENARIO, encoding="utf-8")
    succeed("crosscheck", tmp_path / name, cwd=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@needs_ns
@pytest.mark.parametrize(
    "stem", ["a [exit 3] $b", "|touch harmed", "~nobody", "-x", "\U0001f600 [exit 3]"]
)
def test_the_default_trace_is_a_file_beside_the_script_and_no_command(stem, tmp_path):
    file = put(tmp_path / f"{stem}.toml", SCENARIO)
    put(tmp_path / "s.tcl", script.write(read(file)).text)
    output("ns", "s.tcl", cwd=tmp_path)
    name = f"{stem}.tr".replace("\U0001f600", "_")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([file.name, "s.tcl", name])
    assert (tmp_path / name).stat().st_size > 1000


def program(tmp_path, text):
    ns = tmp_path / "ns"
    ns.write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
    ns.chmod(0o755)
    return {"PATH": f"{tmp_path}:/usr/bin:/bin"}


def crosscheck(tmp_path, text):
    file = put(tmp_path / "s.toml", SCENARIO)
    return talkspurt("crosscheck", file, env=program(tmp_path, text))


def test_an_ns2_that_ends_early_is_an_error(tmp_path):
    done = crosscheck(tmp_path, "exit 0")
    assert done.returncode == 1
    assert "ns-2 ended before the end of the run, with exit code 0" in done.stderr


def test_a_connection_that_ns2_resets_is_an_error(tmp_path):
    line = "7.2, DCCP/TCPlike(_o1)::processOption() - ECN check failed! "
    done = crosscheck(tmp_path, f"echo '{line}'; echo '{script.END}'")
    assert done.returncode == 1
    assert "ns-2's DCCP reset a connection because its sums of ECN nonces differ" in done.stderr
    assert "ECN check failed!" in done.stderr


def test_what_ns2_prints_besides_is_a_note(tmp_path):
    done = crosscheck(tmp_path, f"seq 7; echo '{script.END}'")
    assert done.returncode == 0, done.stderr
    assert "ns-2 printed: 5\n" in done.stderr
    assert "ns-2 printed 2 more lines" in done.stderr


def test_quantiles_are_nearest_rank():
    from talkspurt.ns2.trace import quantile

    values = [float(n) for n in range(1, 21)]
    assert [quantile(values, share) for share in (0.5, 0.95, 1.0)] == [10, 19, 20]
    assert quantile([3.0], 0.5) == 3


def test_the_flows_of_a_count_are_named_as_the_scenario_has_them(tmp_path):
    text = SCENARIO.replace("[flows.x]", "[flows.x]\ncount = 3")
    text = text.replace('kind = "udp"', 'kind = "dccp", ccid = 2, profile = "ns2"')
    (problem,) = problems(script.write, read(text))
    assert problem["path"] == "flows.x.sizing"
    assert problem["hint"] == "--set flows.x.sizing=ns2"
    assert text.splitlines()[problem["line"] - 1] == "[flows.x]"
    script.write(read(text, set={"flows.x.sizing": "ns2"}))


def test_a_spreadsheet_sees_no_formula(tmp_path):
    from talkspurt.runs.exporting import without_formulas

    words = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "call", None, "a=b"]
    frame = pl.DataFrame({"name": words, "value": range(len(words))})
    without_formulas(frame.lazy()).sink_csv(tmp_path / "x.csv")
    read_back = pl.read_csv(tmp_path / "x.csv")["name"].to_list()
    assert read_back == ["'=1+1", "'+1", "'-1", "'@x", "'\tx", "'\rx", "call", None, "a=b"]


def test_tables_are_those_of_the_named_folder(tmp_path):
    from talkspurt.runs.exporting import export

    for folder, rate in (("r1", "40kbit/s"), ("r[1]", "80kbit/s")):
        text = SCENARIO.replace("80kbit/s", rate)
        package.run(text).save(tmp_path / folder, report=False)
    tables = export(tmp_path / "r[1]", "csv", tmp_path / "c[1]")
    exported = pl.read_csv((tables / "flows.csv").read_bytes())
    for flows in (exported, package.load(tmp_path / "r[1]").flows):
        # A packet of 200 bytes every 20 ms for a second, the first one complete after 20 ms.
        assert flows["generated_packets"].to_list() in ([49], [50])


HOSTILE = '</script><img src=x onerror=alert(1)>"\\'


def test_the_report_has_no_script_of_a_title():
    title = HOSTILE.replace("\\", "\\\\").replace('"', '\\"')
    result = package.run(titled(f'"{title}"'))
    assert result.title == HOSTILE
    page = single.html(result)
    assert HOSTILE not in page
    assert "<img src=x" not in page
