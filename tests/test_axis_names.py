"""Axes may be called anything: no name of an axis meets a column that a table has of its own."""

import json

import polars as pl
import pytest

import talkspurt
from conftest import SCENARIO, made
from talkspurt._storage.file_access import file_name
from talkspurt._storage.writer import run_folder
from talkspurt._terminal import tables
from talkspurt.figures import comparison, style
from talkspurt.metrics.catalogue import ALL
from talkspurt.report.study import _rows
from talkspurt.results.axis import Axis
from talkspurt.results.result import Study
from texts import axis_text, put

VALUES = {"A": [4.0, 3.0], "B": [3.5, 2.4]}
OWN = ("count", "mean", "low", "high", "deviation", "replications", "flow", "measure", "baseline",
       "members", "member_low", "member_high", "replicate", "seed", "name", "transport", "group",
       "settings", "axis", "axis.count", "self", "literal")  # fmt: skip
ODD = ("a.b", "two words", "größe", "数", "x/y", "..", "\x1b[31m", "\u202ecount", "[bold]", "$x$",
       "$\\frac$", "%s{}", "*", "a" * 300)  # fmt: skip
NAMES = sorted({*OWN, *ODD, *(one.name for one in ALL)})


def study(name, other="other"):
    """Two settings of an axis of this name, and one of another, two replications of each."""
    runs = [
        made({name: value, other: "only"}, replicate, mos, group=[None], r_factor=[None],
             video_frames=pl.Series([None], dtype=pl.Int64))
        for value, numbers in VALUES.items()
        for replicate, mos in enumerate(numbers)
    ]  # fmt: skip
    axes = (Axis(name, "flows.call.source", ("A", "B")), Axis(other, "links.a.rate", ("only",)))
    return Study("made", "Made", "", axes, 2, 0.95, "", runs)


@pytest.mark.parametrize("name", NAMES)
def test_an_axis_of_any_name_falsifies_no_table(name):
    plain, named = study("plain"), study(name)
    for asked in ("summary", "differences"):
        axis = (name,) if asked == "differences" else ()
        old = ("plain",) if axis else ()
        found = getattr(named, asked)(*axis, names=["mos"])
        expected = getattr(plain, asked)(*old, names=["mos"])
        # By hand: the means of 4 and 3 and of 3.5 and 2.4, and of their differences.
        means = [-0.55] if axis else [3.5, 2.95]
        assert found["mean"].to_list() == pytest.approx(means)
        assert found.rename({f"axis.{name}": "axis.plain"}).equals(expected)
    assert named.flows.columns[:4] == [f"axis.{name}", "axis.other", "replicate", "seed"]
    assert named.flows[f"axis.{name}"].to_list() == ["A", "A", "B", "B"]
    assert named.flows["mos"].to_list() == [4.0, 3.0, 3.5, 2.4]
    assert [run.replicate for run in named.select(**{name: "B"})] == [0, 1]
    rows = _rows(named.summary(["mos"]).to_dicts(), [axis.column for axis in named.axes])
    assert [line["settings"] for line in rows] == [("A", "only"), ("B", "only")]
    shown = tables._wide(named, "Calls", named.summary(["mos"]).to_dicts(), ["mos"])
    assert [row[0] for row in shown.rows] == ["A", "B"]


@pytest.mark.parametrize("name", ["count", "flow", "mos", "$\\frac$", "$x$", "größe", "a\nb"])
def test_a_figure_over_an_axis_of_any_name_is_drawn(name):
    figure = comparison.over_axis(study(name), "mos")
    assert figure is not None
    figure.savefig("/dev/null", format="svg")


def test_axes_of_which_one_is_called_as_the_column_of_another_stay_apart():
    both = study("count", "axis.count")
    assert both.flows.columns[:2] == ["axis.count", "axis.axis.count"]
    assert both.flows["axis.axis.count"].unique().to_list() == ["only"]


def test_files_of_names_that_look_alike_are_several():
    names = ["a/b", "a_b", "a\\b", "a" * 300, "a" * 301, "ß" * 300, "..", "\ud800"]
    made_of = [file_name(name, "parquet") for name in names]
    assert len(set(made_of)) == len(names)
    assert max(len(name.encode()) for name in made_of) < 200
    assert file_name("voip-1", "sent.wav") == "voip-1.sent.wav"
    many = {f"axis {i}": "value " * 9 for i in range(30)}
    assert max(map(len, run_folder(7, many, 2).encode().split(b"/"))) < 200


CALLS = SCENARIO.replace("[flows.call]\n", "[flows.call]\ncount = 2\n").replace('"4s"', '"2s"')


@pytest.fixture(scope="module")
def counted(folder, tmp_path_factory):
    """A study over `flows.call.count`, whose axis is called `count` unless it is named."""
    text = CALLS.replace("speech.wav", str(folder / "speech.wav"))
    text += axis_text("flows.call.count", "[1, 3]") + "[replications]\ncount = 2\n"
    return talkspurt.run(put(tmp_path_factory.mktemp("counted") / "counted.toml", text), study=True)


def test_an_axis_over_count_is_saved_and_opened(counted, tmp_path):
    assert [axis.name for axis in counted.axes] == ["count"]
    where = counted.save(tmp_path / "out")
    again = talkspurt.load(where, study=True)
    table = pl.read_parquet(where / "summary.parquet")
    assert table.equals(again.summary())
    assert set(table["axis.count"]) == {1, 3}
    assert set(table["count"]) <= {0, 2}
    assert (where / "differences-count.parquet").exists()
    assert json.loads(json.dumps(again.to_json()))["summary"][0]["axis.count"] == 1
    assert set(pl.read_parquet(where / "flows.parquet")["axis.count"]) == {1, 3}


def test_a_count_is_one_row_of_a_study_and_its_members_can_be_asked_for(counted):
    found = counted.summary(["mos"]).filter(**{"axis.count": 3}, flow="call")
    (row,) = found.to_dicts()
    each = counted.summary(["mos"], members=True).filter(**{"axis.count": 3})
    each = each.filter(pl.col("flow").str.starts_with("call-"))
    assert each["flow"].to_list() == ["call-1", "call-2", "call-3"]
    assert (row["members"], row["count"]) == (3, 2)
    flows = counted.flows.filter(pl.col("group") == "call", **{"axis.count": 3})
    assert row["mean"] == pytest.approx(flows["mos"].mean())
    # The interval is of the replications, which are independent; the calls of one run are not.
    means = flows.group_by("replicate").agg(pl.col("mos").mean())["mos"]
    assert row["deviation"] == pytest.approx(means.std())
    assert (row["member_low"], row["member_high"]) == (each["mean"].min(), each["mean"].max())
    (one,) = counted.summary(["mos"]).filter(**{"axis.count": 1}, flow="call").to_dicts()
    assert one["members"] == 1 and one["member_low"] == one["member_high"] == one["mean"]
    (pair,) = counted.differences("count", names=["mos"]).filter(flow="call").to_dicts()
    assert pair["mean"] == pytest.approx(row["mean"] - one["mean"])


def test_figures_and_tables_of_a_study_show_a_count_once(counted, capsys):
    from talkspurt.figures.panel import across, lines_over

    lines = lines_over(counted, across(counted), "goodput_bps")
    assert [line.key[0] for line in lines] == ["call", "tcp-call", "upload"]
    figure = comparison.over_axis(counted, "goodput_bps")
    assert len(figure.axes) <= 3
    assert "of the flows" in style.notes_of(figure)
    tables.print_study(counted)
    said = capsys.readouterr().out
    assert "call × 3" in said and "call-1" not in said
    assert "the least and the greatest of the flows" in said


def test_the_report_of_a_study_shows_a_count_once(counted, tmp_path):
    page = counted.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<td>call × 3</td>" in page or ">call × 3<" in page
