"""What anybody writes in titles, names and paths is shown, and steers neither terminal nor page."""

import json
import re
import unicodedata

import pytest

import talkspurt as package
from command import talkspurt
from conftest import SCENARIO, made
from talkspurt import _commands, _core
from talkspurt._terminal import tables
from talkspurt._terminal.layout import Column, Table, name
from talkspurt._terminal.progress import Bar
from talkspurt._text.escaping import to_json, visible

# Control characters of ASCII and ISO 6429, and of Unicode what turns directions, ends lines, is of
# no width or is not a character at all.
EVIL = (
    *map(chr, range(0x20)), "\x7f", *map(chr, range(0x80, 0xA0)), "\u00ad", "\u061c", "\u180e",
    *map(chr, range(0x200B, 0x2010)), *map(chr, range(0x2028, 0x202F)),
    *map(chr, range(0x2060, 0x2070)), "\ufeff", "\ufff9", "\U000e0001", "\U000e0041", "\udc80",
    "\u034f", "\u3164", "\ufe0f", "\U0001d173", "\U00013430",
)  # fmt: skip
TITLE = "A\x1b[2J\x1b]0;owned\x07\x9b31m\u202eevil\u2066\u200b\r\x08B"
INVISIBLE = "A\u200b\u2060\ufeffevil\U000e0041"
"""A title may not have control characters; these are of other categories."""
NAME = "call\u202e\x1b[31mx"


def harmless(text):
    """Nothing in a text but signs, spaces and line ends."""
    bad = {"Cc", "Cf", "Zl", "Zp", "Cs"}
    return not [c for c in text if c not in "\n\t" and unicodedata.category(c) in bad]


@pytest.mark.parametrize("sign", EVIL, ids=lambda sign: f"{ord(sign):04x}")
def test_a_sign_that_is_none_is_written_out(sign):
    shown = visible(f"a{sign}b")
    assert re.fullmatch(r"a\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})b", shown)
    assert int(re.search(r"[xuU]([0-9a-f]+)b", shown)[1], 16) == ord(sign)
    said = to_json({"name": f"a{sign}b"})
    assert harmless(said) and json.loads(said) == {"name": f"a{sign}b"}


@pytest.mark.parametrize("text", ["plain", "Grüße", "通話", "עברית", "😀 × µ – ±", "a\\x1bb", ""])
def test_what_can_be_read_stays(text):
    assert visible(text) == text
    assert json.loads(to_json(text)) == text


def test_every_sign_of_unicode_that_steers_is_caught():
    for code in range(0x110000):
        sign = chr(code)
        if unicodedata.category(sign) in {"Cc", "Cf", "Zl", "Zp", "Cs"}:
            assert visible(sign) != sign or code in ARABIC_SIGNS, hex(code)


ARABIC_SIGNS = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2}
"""Of category Cf, and seen: signs before a number or above a letter."""


@pytest.fixture(scope="module")
def evil(folder, tmp_path_factory):
    """A scenario with a harmful title and path: names are letters, digits, - and _, and a description
    with control characters is refused."""
    text = SCENARIO.replace(
        'title = "Small"', f"title = {json.dumps(INVISIBLE, ensure_ascii=False)}"
    )
    text = text.replace('duration = "4s"', 'duration = "2s"')
    file = tmp_path_factory.mktemp("evil") / "ev\u202eil\x1b[31m.toml"
    file.write_text(text.replace("speech.wav", str(folder / "speech.wav")), encoding="utf-8")
    return file


def test_what_is_printed_is_harmless(evil, tmp_path):
    for words in (
        ("check", evil),
        ("run", evil, "--no-report", "--out", "o\u202eut"),
        ("run", evil, "--json"),
        ("check", evil.with_name("no\x1b[31mne\u202e\n.toml")),
        ("check", evil, "--set", "links.\x1b[31m\u202e=1"),
        ("check", evil, "--set", "duration=\x1b[31m\u202e"),
        ("export", "o\u202eut", "--to", "csv", "--out", "c\x9bsv"),
        ("metrics", "o\u202eut", "mos"),
        ("metrics", "o\u202eut", "mos", "--flow", "\x1b[31m"),
        ("metrics", "none\x1b[2J"),
        ("check", "--\x1b[31m\u202e"),
        ("\x1b[31m\u202e",),
    ):
        done = talkspurt(*words, cwd=tmp_path, env={"PYTHONIOENCODING": "utf-8"})
        assert "Traceback" not in done.stderr
        assert harmless(done.stdout), (words, done.stdout)
        assert harmless(done.stderr), (words, done.stderr)
        assert done.stdout + done.stderr
    said = talkspurt("check", evil, cwd=tmp_path, env={"COLUMNS": "300"})  # the path is long
    assert said.stdout.splitlines()[0].count("nothing wrong") == 1
    assert "\\u202eil" in said.stdout and "\\u200b" in said.stdout
    document = json.loads(talkspurt("run", evil, "--json", cwd=tmp_path).stdout)
    assert document["scenario"] == evil.stem


def test_a_bar_a_table_and_a_fault_are_harmless(capsys):
    assert harmless(Bar(TITLE).title)
    rows = made({}, 0, 4.0, flows=((NAME, TITLE),), **columns()).flows.to_dicts()
    out = tables.console()
    odd = Table(TITLE, [name(NAME), Column(TITLE)], [[NAME, TITLE]], NAME, [TITLE])
    for table in (tables._flows(rows), tables._calls(rows), odd):
        table.print(out)
    out.print(TITLE, TITLE)
    said = capsys.readouterr().out
    assert harmless(said) and "call\\u202e\\x1b[31mx" in said
    problem = {"file": TITLE, "line": 3, "path": NAME, "message": TITLE + "\n", "hint": "\u2066"}
    assert harmless(_commands.problem_line(problem)) and "\n" not in _commands.problem_line(problem)


def columns():
    """What a table of flows needs beside names and MOS."""
    numbers = ("goodput_bps", "delay_p50_s", "delay_p95_s", "jitter_s", "sent_packets",
               "lost_packets", "late_packets", "mouth_to_ear_mean_s", "concealed_ratio", "r_factor",
               "mos_lost_to_delay", "mos_lost_to_loss", "mos_lost_to_codec")  # fmt: skip
    return {**{name: [1] for name in numbers}, "video_frames": [None]}


def test_reports_and_pictures_are_harmless(evil, tmp_path):
    result = package.run(evil)
    where = result.save(tmp_path / "out")
    for file in (where / "report.html", *where.glob("figures/*.svg")):
        text = file.read_text(encoding="utf-8")
        assert harmless(text), file
        # As JSON's escape a sign would be itself again when the page reads it.
        for script in re.findall(r"<script type=.application/json.*?</script>", text, re.DOTALL):
            assert not re.search(r"(?<!\\)\\u(202e|001b)", script)
    assert "\\u200b" in (where / "report.html").read_text(encoding="utf-8")
    assert harmless(result._repr_html_())
    assert any((where / "audio").iterdir())


@pytest.mark.parametrize("asked", [{"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
                                   {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
                                   {"PYTHONIOENCODING": "latin-1"}, {"PYTHONIOENCODING": "cp437"}])  # fmt: skip
def test_a_terminal_without_unicode_is_no_reason_to_fail(folder, tmp_path, asked):
    encoding = asked.get("PYTHONIOENCODING", "ascii")
    file = tmp_path / "grüße.toml"
    text = SCENARIO.replace("Small", "Grüße – 通話").replace('duration = "4s"', 'duration = "2s"')
    file.write_text(text.replace("speech.wav", str(folder / "speech.wav")), encoding="utf-8")
    for words in (("check", file), ("run", file, "--no-report", "--out", "out"),
                  ("metrics",), ("schema",), ("--help",), ("run", file, "--json")):  # fmt: skip
        done = talkspurt(*words, cwd=tmp_path, env=asked, encoding=encoding)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert json.loads(done.stdout)["flows"]["call"]["sent_packets"] > 0


def test_a_problem_of_a_fault_in_rust_is_told_whole():
    with pytest.raises(_core.ScenarioError) as error:
        _core.load("\x00", "a\x1b.toml", "/", [], None)
    assert harmless(_commands.problem_line(error.value.problems[0]))


def test_no_time_is_estimated_from_less_than_a_percent(capsys):
    bar = Bar("x")
    bar._began -= 100
    for fraction in (1e-9, 0.5):
        bar._said = -1e9
        bar.on_fraction(fraction)
    first, second = capsys.readouterr().err.splitlines()
    assert first == "x:   0%"
    assert second == "x:  50%, 100 s left"
