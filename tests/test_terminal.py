"""Tables on terminals of any width: nothing is broken, and what is missing is said."""

import contextlib
import io
import os
import pty
import re
import subprocess
import termios

import pytest
from rich.cells import cell_len
from rich.console import Console

import talkspurt
from command import TALKSPURT, succeed
from command import talkspurt as command
from conftest import made
from talkspurt import intervals, reproduce
from talkspurt._terminal import tables
from talkspurt._terminal.layout import Column, Table, name, shortened, wrapped
from talkspurt.analysis.answer import Answer
from talkspurt.ns2.crosscheck import Crosscheck
from talkspurt.reproduce import running, study_file
from talkspurt.reproduce.rows import SHORT, Values
from talkspurt.reproduce.sample import Sample
from talkspurt.results.axis import Axis
from talkspurt.results.result import Study

WIDTHS = (40, 80, 100, 120)
LONG = "a-call-with-a-name-that-is-longer-than-any-terminal-should-have-to-show"


def screen(width):
    return Console(file=io.StringIO(), width=width, highlight=False, markup=False)


def printed(show, what, width):
    out = screen(width)
    show(what, out)
    lines = out.file.getvalue().splitlines()
    assert max(map(cell_len, lines)) <= width
    return "\n".join(lines)


def whole(text, *words):
    """Every word is there in one piece."""
    missing = [word for word in words if not re.search(rf"(?<!\S){re.escape(word)}(?!\S)", text)]
    assert not missing, (missing, text)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_run_is_readable(result, width):
    text = printed(tables.print_result, result, width)
    whole(text, "call", "tcp-call", "upload", "udp", "tcp-newreno", "unheard", "MOS", "goodput")
    for row in result.flows.iter_rows(named=True):
        if row["mos"] is not None:
            assert row["mos_bound"] > row["mos"]
            whole(text, f"<{row['mos_bound']:.2f}")
    assert result.answer.sentences[0].replace("\u00a0", " ") in text.replace("\n  ", " ")
    assert "not heard" not in text and "to ear" not in text.replace("mouth-to-ear", "")
    if width == 40:
        note = " ".join(text.split("Not shown: ")[1].split("\n\n")[0].split())
        assert "network delay p50" in note
        # What judges calls has no room in columns, and is not left out.
        assert "mean mouth-to-ear delay" in text
        assert "(wider terminal, or flows.parquet)" in note.split("tcp-call")[0]
    if width == 120:
        assert "Not shown" not in text


def answered(sentences, about, width=80):
    """The lines of an answer on a terminal, as sentences."""
    found = Answer(
        sentences=sentences, about=about, notes=[], judged_by=[], questions=[], comparisons=1
    )
    text = printed(tables.print_answer, found, width)
    return text, re.sub("\n  ", " ", text).split("\n") if text else []


WORD = "word"


@pytest.mark.parametrize("about", ["", "About this.", "About " + "this " * 20 + "end."])
@pytest.mark.parametrize("first", [1, 60, 150, 300, 600])
@pytest.mark.parametrize("others", [(), (60,), (150, 60), (60,) * 9, (400, 20)])
def test_an_answer_has_six_lines_and_no_cut_sentence(first, others, about):
    sentences = [
        f"{n}: " + " ".join([WORD] * max(1, length // 5))
        for n, length in enumerate((first, *others))
    ]
    text, lines = answered(sentences, about)
    count = len(text.splitlines())
    least = len(wrapped(sentences[0], 78))
    assert count <= max(6, least), text
    said = [line for line in lines if line != about]
    more = [line for line in said if line.endswith("in the report.")]
    shown = [line for line in said if line not in more]
    assert shown == sentences[: len(shown)] and shown, text
    left = len(sentences) - len(shown)
    if more:
        assert more == [f"{left} more sentence{'' if left == 1 else 's'} in the report."]
    elif left:
        assert count >= 6
    # The second sentence comes before what intervals mean.
    second = (len(wrapped(sentences[1], 78)) if others else 0) + (len(others) > 1)
    second = second if least + second <= 6 else 0
    assert not second or len(shown) > 1
    if about and least + second + len(wrapped(about, 78)) <= 6:
        assert lines[-1] == about
    # One sentence more would not have had room, with a line for those that are left out after it.
    if left:
        following = len(wrapped(sentences[len(shown)], 78)) + (left > 1)
        assert count - len(more) + following > 6


def test_the_answer_comes_last_on_six_lines_of_eighty_columns(folder, tmp_path):
    for kind in ("small", "study"):
        where = {"cwd": tmp_path, "env": {"COLUMNS": "80"}}
        text = succeed("run", folder / f"{kind}.toml", **where).stdout
        *_, last, results, page = text.rstrip("\n").split("\n")
        assert results.startswith("Results: ") and page.startswith("Report: ") and not last
        body = text[: text.index("\nResults: ")].rstrip("\n").split("\n\n")[-1]
        assert 0 < len(body.splitlines()) <= 6
        found = talkspurt.load(tmp_path / "runs" / kind, study=kind == "study").answer
        joined = body.replace("\n  ", " ")
        assert joined.startswith(found.sentences[0].replace("\u00a0", " "))
        quiet = succeed("run", folder / f"{kind}.toml", "--quiet", **where)
        assert not quiet.stderr and len(quiet.stdout.splitlines()) <= 6
        # Why a call is not ranked stands above the answer there, and is a part of it here.
        only = quiet.stdout.replace("\n  ", " ").splitlines()
        assert only[0] == found.sentences[0].replace("\u00a0", " ")


@pytest.mark.parametrize("width", WIDTHS)
def test_a_study_is_readable(study, width):
    text = printed(tables.print_study, study, width)
    whole(text, "MOS", "tcp-call", "upload", "20ms")
    for row in study.summary(["mos"]).to_dicts():
        if row["mean"] is not None:
            assert intervals.texts(row)[0] in text
    assert "value − 20ms" in text.replace("\n", " ")
    assert "delay 20ms: " in text.replace("\n  ", " ")


@pytest.mark.parametrize("width", WIDTHS)
def test_every_table_of_flows_has_delivery_loss_delay_and_jitter(study, width):
    """In 80 columns, delivery and jitter were left out."""
    text = printed(tables.print_study, study, width).split("\nFlows\n")[1].split("Paired")[0]
    whole(text, "delivered", "lost", "mean", "jitter")
    assert not re.search("Not shown:[^(]*(delivered|lost|delay mean|jitter)", text)
    for measure in ("delivery_ratio", "network_loss", "delay_mean_s", "jitter_s"):
        for row in study.summary([measure]).to_dicts():
            if row["mean"] is not None:
                assert intervals.texts(row)[0] in text, (row, text)


def test_a_call_without_a_score_is_listed_with_the_reason(folder):
    changes = {"flows.call.source.codec": "g722"}
    text = printed(tables.print_result, talkspurt.run(folder / "small.toml", set=changes), 80)
    assert re.search(r"^call +udp .* – +<?\d\.\d\d +–$", text, re.MULTILINE), text
    sentence = "not validated against listeners): G.113 Appendix I has no Ie for G.722"
    flat = " ".join(text.split())
    assert (
        f"The MOS of call is estimated (our fit to PESQ and ViSQOL, not ITU-T's, and {sentence}"
        in flat
    )
    assert "quality.codecs" in text and "difference" not in text
    changes["replications.count"] = "2"
    study = talkspurt.run(folder / "small.toml", set=changes, study=True)
    text = printed(tables.print_study, study, 80)
    assert re.search(r"^call +\S.* –$", text, re.MULTILINE), text
    assert sentence in " ".join(text.split()), text


def test_a_score_with_declared_values_names_their_source(folder):
    source = "fitted, not ITU: a test"
    values = [{"codec": "g722", "ie": 12.5, "bpl": 9.0, "source": source}]
    changes = {"flows.call.source.codec": "g722", "flows.call.quality.codecs": values}
    sentence = f"The score of call uses declared values: Ie 12.5 and Bpl 9 for G.722 ({source})."
    result = talkspurt.run(folder / "small.toml", set=changes)
    text = printed(tables.print_result, result, 80)
    assert sentence in " ".join(text.split()), text
    assert sentence in result.answer.notes
    assert source in result.flows.filter(name="call")["quality_note"].item()
    study = talkspurt.run(
        folder / "small.toml", set={**changes, "replications.count": 2}, study=True
    )
    text = printed(tables.print_study, study, 80)
    assert " ".join(text.split()).count(sentence) == 1, text
    assert study.answer.notes.count(sentence) == 1
    # Values that are not used, since the codec is another, are not mentioned.
    del changes["flows.call.source.codec"]
    text = printed(tables.print_result, talkspurt.run(folder / "small.toml", set=changes), 80)
    assert "declared" not in text, text


COUNTS = ("sent_packets", "received_packets", "lost_packets")


@pytest.fixture(scope="module")
def many_axes():
    """A study of five axes with long labels, whose calls have long names."""
    names = [f"flows.the-call.transport.parameter-{k}" for k in range(5)]
    labels = ("a label of several words", "a label of several words too")
    runs = [
        made(
            dict.fromkeys(names, label),
            replicate,
            mos,
            flows=((LONG, "udp"), (LONG + "-back", "udp")),
            group=[None] * 2,
            r_factor=[70.0] * 2,
            **{c: [1.5] * 2 for c in (*tables.CALL_COLUMNS[:3], *tables.FLOW_COLUMNS, *COUNTS)},
            **dict.fromkeys(("video_frames", "handshake_wait_s"), [None] * 2),
            **dict.fromkeys(("rejected_packets", "quality_note"), [None] * 2),
        )
        for label in labels
        for replicate, mos in enumerate((3.25, 3.5, 3.75))
    ]
    axes = tuple(Axis(axis, "flows.x", labels) for axis in names)
    return Study("made", "Made", "", axes, 3, 0.95, "", runs)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_study_of_many_axes_is_readable(many_axes, width, monkeypatch):
    monkeypatch.setattr(tables, "cautions", lambda *_: [])
    text = printed(tables.print_study, many_axes, width)
    whole(text, "3.50", "±0.62")
    assert "MOS" in text


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("study", reproduce.NAMES)
def test_a_reproduction_is_readable(study, width):
    file = study_file.load(study)
    values = {row.id: Sample((1000.25, 1003.5, 990.125)) for row in file.rows}
    found = reproduce.judged(file, Values(values, values), {})
    text = printed(lambda one, out: running._print_rows(study, one.rows, out), found, width)
    whole(text, *(row.id for row in file.rows), "±17")
    words = {word for row in file.rows for word in str(row.paper).split() if row.paper is not None}
    whole(text, *(word for word in words if not re.search(r"\d", word)))
    for verdict in {SHORT[row.verdict] for row in found.rows}:
        assert verdict in text
    summary = printed(running._print_summary, [found], width)
    whole(summary, study, "rows", "matches")


@pytest.mark.parametrize("width", WIDTHS)
def test_a_crosscheck_is_readable(width):
    from talkspurt.ns2.crosscheck import Row

    rows = [
        Row(flow, measure, (123456.789,), (123456.0,))
        for flow in ("call", LONG)
        for measure in ("sent_packets", "throughput_bps", "delay_p50_s")
    ]
    links = [Row("bottleneck", "sent_packets", (5.0,), (5.0,))]
    found = Crosscheck("t", [1], {}, [], rows, links)
    text = printed(tables.print_crosscheck, found, width)
    whole(text, "call", "123456789.000", "bottleneck", "throughput,")
    assert "±" not in text
    # From 4, 6 and 8: the mean 6, and t(2, 97.5 %) = 4.303 times 2 / √3.
    links = [Row("bottleneck", "sent_packets", (4.0, 6.0, 8.0), (5.0, 5.0, 5.0))]
    links += [Row("bottleneck", "queue_mean_packets", (4.0, 6.0, 8.0), ())]
    found = Crosscheck("t", [1, 2, 3], {}, [], [], links)
    text = printed(tables.print_crosscheck, found, 80)
    assert re.search(r"sent +6 +5 +1 +\+20\.00 %\n +±5 +±5\n", text), text
    assert re.search(r"queue, mean +6\.000 +– +– +–\n +±4\.968\n", text), text
    assert "Means over 3 seeds" in text
    half = links[0].to_json()["difference_half_width"]
    assert half == pytest.approx(4.302653 * 2 / 3**0.5, rel=1e-6)


def table(rows, *columns, **more):
    return Table("T", columns, rows, "t.parquet", **more)


def test_columns_are_dropped_by_rank_and_named():
    one = table([["a", "1", "2", "3"]], name("n"), Column("x" * 10, 1),
                Column("y" * 10, 2, full="the whole name"), Column("z" * 10))  # fmt: skip
    wide, less, least = ([str(line) for line in one.lines(width)] for width in (37, 36, 24))
    assert "yyyyyyyyyy" in wide[1] and len(wide) == 4
    assert wide[1].split() == ["n", "x" * 10, "y" * 10, "z" * 10]
    assert less[1].split() == ["n", "x" * 10, "z" * 10]
    assert less[4:] == ["Not shown: the whole name (wider", "terminal, or t.parquet)"]
    assert least[1].split() == ["n", "z" * 10]
    assert "xxxxxxxxxx, the whole" in " ".join(least[4:])


def test_marks_are_explained_where_they_are_shown():
    columns = [name("flow"), Column("goodput"), Column("a long header", 1)]
    marked = Table("", columns, [["x", "1 =", "2 *"]], "flows.parquet", legend=["= equal", "* cut"])
    assert [line.plain for line in marked.lines(80)][-2:] == ["= equal", "* cut"]
    assert [line.plain for line in marked.lines(16)][-1] == "= equal"
    assert "* cut" not in [line.plain for line in marked.lines(16)]


def test_names_are_shortened_in_the_middle_only_if_nothing_else_helps():
    rows = [[LONG + end, "1.50"] for end in ("-a", "-b")]
    one = table(rows, name("call"), Column("MOS"))
    assert [cell for row in rows for cell in row[:1]] == [LONG + "-a", LONG + "-b"]
    text = [str(line) for line in one.lines(len(LONG) + 8)]
    assert LONG + "-a" in text[3]
    short = [str(line) for line in one.lines(40)]
    assert max(map(len, short)) <= 40
    names = [line.split()[0] for line in short[3:5]]
    assert len(set(names)) == 2 and all(re.fullmatch(r"a-.*…..*-[ab]", each) for each in names)


def test_a_row_that_fits_no_line_becomes_a_list():
    columns = [name("call"), name("over"), *(Column(f"measure\nunit{k}") for k in range(4))]
    one = table([["call", "udp", *["123456789"] * 4]], *columns)
    assert [str(line) for line in one.lines(40)] == [
        "T",
        "call, udp",
        *(f"  measure, unit{k}  123456789" for k in range(4)),
    ]


def test_a_list_of_several_names_says_what_they_are():
    rows = [["UDP", "20ms", "call", "1" * 30], ["", "", "", "2" * 30]]
    one = table(rows, name("transport"), name("delay"), name("flow"), Column("measure"))
    text = [str(line) for line in one.lines(46)]
    assert text[1:3] == ["transport UDP, delay 20ms, call", f"  measure  {'1' * 30}"]
    assert text[3:] == [f"  measure  {'2' * 30}"]


@pytest.mark.parametrize("width", [5, 8, 13, 30])
def test_shortened_names_stay_distinct(width):
    names = ["x" * 40, "x" * 39 + "y", "y" + "x" * 39, "short"]
    found = shortened(names, width)
    assert found is not None and len(set(found)) == 4
    assert max(map(cell_len, found)) <= width
    # What differs in the middle alone cannot be kept.
    assert shortened(["a" * 20 + c + "a" * 20 for c in "xyz"], 12) is None


def test_wrapping_breaks_no_word_that_fits():
    text = "one two 1\u202f234 thirteenletters"
    assert wrapped(text, 13) == ["one two 1\u202f234", "thirteenlette", "rs"]
    assert wrapped("", 5) == [""]
    assert wrapped("a b\nc", 80, 2) == ["  a b", "  c"]


def run(folder, tmp_path, **env):
    done = succeed("run", folder / "small.toml", "--no-report", cwd=tmp_path, env=env)
    return done.stdout


def test_ascii_terminals_get_aligned_tables(folder, tmp_path):
    text = run(folder, tmp_path, COLUMNS="80", PYTHONIOENCODING="ascii")
    assert text.isascii()
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    rule = lines.index(next(line for line in lines if set(line) == {"-"}))
    head, first = lines[rule - 1], lines[rule + 1]
    assert head.index("MOS") + 3 == re.search(r" <?\d\.\d\d(?= )", first).end()


def on_terminal(folder, tmp_path, columns, **env):
    """What is printed on a terminal of this width."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    environ = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
    words = [*TALKSPURT, "run", folder / "small.toml", "--no-report"]
    with subprocess.Popen(
        words, cwd=tmp_path, stdout=theirs, stderr=subprocess.PIPE, stdin=theirs,
        env={**environ, "TERM": "xterm-256color", **env},
    ) as process:  # fmt: skip
        os.close(theirs)
        found = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while piece := os.read(ours, 65536):
                found += piece
        process.wait()
    os.close(ours)
    return found.decode()


def test_a_terminal_decides_width_and_colour(folder, tmp_path):
    coloured = on_terminal(folder, tmp_path, 80)
    assert "\x1b[" in coloured
    plain = on_terminal(folder, tmp_path, 80, TERM="dumb")
    assert "\x1b" not in plain
    assert max(map(len, plain.splitlines())) <= 80
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
    grey = on_terminal(folder, tmp_path, 80, NO_COLOR="1")
    assert not re.search(r"\x1b\[(?:\d+;)*(?:3|9)\d", grey)
    narrow = on_terminal(folder, tmp_path, 40, TERM="dumb")
    assert max(map(len, narrow.splitlines())) <= 40


def test_the_list_of_metrics_fits_a_terminal():
    for width in (40, 80):
        done = command("metrics", env={"COLUMNS": str(width)})
        assert max(map(len, done.stdout.splitlines())) <= width
    everything = command("metrics").stdout
    flat = " ".join(everything.split())
    for line in done.stdout.splitlines():
        assert " ".join(line.split()) in flat


def test_check_wraps_its_warnings(folder):
    done = command("check", folder / "small.toml", env={"COLUMNS": "60"})
    assert max(map(len, done.stdout.splitlines())) <= 60 + len(str(folder))
    whole(done.stdout, "Warning:", "handshake")
    assert "\n  " in done.stdout


def test_a_cut_table_says_how_many_rows_it_has_and_where_all_are(monkeypatch):
    monkeypatch.setattr(tables, "MAX_ROWS", 2)
    cut = tables._cut([["a"], ["b"], ["c"]], tables.SUMMARY, 2)
    assert cut["rows"] == [["a"], ["b"]]
    assert cut["notes"] == [
        "2 of 5 rows; all are in summary.parquet; `talkspurt export --to table` makes a CSV file "
        "of them"
    ]
    assert tables._cut([["a"], ["b"]], tables.SUMMARY)["notes"] == []
