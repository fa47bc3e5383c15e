"""The catalogue of metrics: complete, each found by its name, and shown in the right units."""

import json
import re

import polars as pl
import pytest

import talkspurt
from command import talkspurt as command
from one_call import SPEECH, write_call
from talkspurt import metrics
from talkspurt._terminal import tables
from talkspurt.metrics.catalogue import (
    ALL,
    COLUMNS,
    COMPUTED,
    FLOWS,
    GAUGES,
    LINKS,
    VIEWS,
    column,
    metric,
    near_names,
    of_a_flow,
)
from texts import flow_text, link_text, scenario_text


def test_names_are_unique():
    full = [one.full_name for one in ALL]
    assert len(full) == len(set(full))
    assert [metric(name) for name in full] == list(ALL)


def test_a_bare_name_is_what_is_computed_then_of_flows_then_of_links():
    bare = [one.name for one in ALL]
    shared = {name for name in bare if bare.count(name) > 1}
    assert shared == {"sent_packets", "sent_bytes", "received_bytes", "loss_event_rate"}
    assert metric("sent_packets").full_name == "flows.sent_packets"
    assert metric("sent_packets", of_links=True).full_name == "links.sent_packets"
    assert metric("loss_event_rate") in COMPUTED
    assert metric("gauges.loss_event_rate") in GAUGES
    assert metric("m").name == "delay_over_time"
    assert column("sent_packets").table == "flows"
    # What flows have one number of is what a study means.
    assert metric("received_bytes") in COMPUTED
    assert of_a_flow("received_bytes") in FLOWS
    assert of_a_flow("loss_event_rate") in COMPUTED


def test_every_column_is_there_and_every_score_is_explained(result):
    for one in (*FLOWS, *LINKS):
        frame = result.table(one.table)
        assert one.name in frame.columns
        assert frame[one.name].dtype in (pl.Float64, pl.Int64), one.name
        assert one.meaning.endswith("."), one.name
        assert one.formula and one.source
    names = {one.name for one in COLUMNS}
    for name in result.flows.columns:
        if name.startswith(("mos", "delay_m", "delay_p5", "r_")):
            assert name in names


def test_every_gauge_is_explained_and_every_one_explained_exists(result, controlled, tmp_path):
    catalogue = {one.name: one for one in GAUGES}
    opus = 'codec = "opus"\nopus = { fec = true, dred = "200ms", expected_loss = 0.1 }'
    redundant = talkspurt.run(
        write_call(tmp_path, opus, duration=2, file=SPEECH / "english-man.wav")
    )
    session = talkspurt.run(
        scenario_text(
            "A session",
            "2s",
            link_text("line", "a>b", "1Mbit/s", "10ms"),
            flow_text(
                "video",
                "a>b",
                source='{ kind = "video", encoder = {} }',
                controller='{ kind = "nada" }',
            ),
            flow_text(
                "browsers",
                "a>b",
                source='{ kind = "video", encoder = {} }',
                controller='{ kind = "gcc" }',
            ),
        )
    )
    runs = (result, controlled, redundant, session)
    found = {gauge for run in runs for gauge in run.gauges()["gauge"]}
    assert found == set(catalogue)
    for one in catalogue.values():
        assert one.table == "gauges"
        assert one.meaning.endswith(".") and one.formula and one.source


def test_every_column_can_be_asked_for(result):
    for one in COLUMNS:
        of = "link" if one.of_links else "flow"
        table = metrics.compute(result, one.full_name)
        if one.table == "gauges":
            assert table.columns == ["flow", "side", "time_s", "value"]
        else:
            assert table.columns == [of, "value"]
            assert table["value"].to_list() == result.table(one.table)[one.name].to_list()
    (row,) = metrics.compute(result, "sent_packets", link="sky").to_dicts()
    assert row["value"] == result.links.filter(name="sky")["sent_packets"].item()
    window = metrics.compute(result, "cwnd", "upload")
    assert window["value"].to_list() == result.gauges("upload", "cwnd")["value"].to_list() != []
    assert metrics.compute(result, "cwnd", "call").is_empty()
    with pytest.raises(ValueError, match=r"links\.drops is of links"):
        metrics.compute(result, "drops", "call")


def test_a_study_speaks_of_metrics_by_the_same_names(study):
    names = ["mos", "fairness", "oscillations"]
    summary = study.summary(names)
    assert summary["measure"].unique(maintain_order=True).to_list() == names
    run = study.runs[0]
    flow = run.flows["name"][0]
    row = summary.filter(
        **{"axis.delay": study.axis("delay").value(run.settings["delay"])},
        flow=flow,
        measure="fairness",
    ).to_dicts()[0]
    seen = [
        metrics.compute(one, "fairness", flow)["value"].item()
        for one in study.select(delay=run.settings["delay"])
    ]
    assert row["count"] == len(seen) == 3
    assert row["mean"] == pytest.approx(sum(seen) / 3)
    assert set(study.differences("delay", names=["fairness"])["measure"]) == {"fairness"}
    received = study.summary(["received_bytes"])["mean"]
    assert received.null_count() == 0
    for name, words in (
        ("utilisation", r"links\.utilisation is no number of a flow: it is of links"),
        ("cwnd", r"gauges\.cwnd is no number of a flow: it is over time"),
        ("mos_over_time", "it is mos against time_s"),
        ("jiter_s", "did you mean 'jitter_s'"),
        ("active_rate", r"record\.packets=true"),
    ):
        with pytest.raises(KeyError, match=words):
            study.summary([name])


def test_the_list_has_every_metric():
    document = json.loads(command("metrics", "--json").stdout)
    assert [one["full_name"] for one in document["metrics"]] == [one.full_name for one in ALL]
    told = command("metrics").stdout.split()
    for one in ALL:
        assert one.name in told


def test_values_are_shown_in_their_units():
    assert column("delay_p50_s").show(0.26789, unit=True) == "267.9 ms"
    assert column("loss_ratio").show(0.0234, unit=True) == "2.34 %"
    assert column("mos").show(4.405) in ("4.40", "4.41")
    assert column("sent_packets").show(12345) == "12\u202f345"
    assert column("mos").show(None) == column("mos").show(float("nan")) == "–"


def test_an_unknown_metric_names_the_nearest():
    with pytest.raises(KeyError, match="jitter_s"):
        column("jiter_s")
    with pytest.raises(KeyError, match="fairness is no column"):
        column("fairness")
    assert of_a_flow("fairness").formula


def test_a_gauge_of_a_direction_is_of_its_own_end(controlled):
    for gauge, there, back in (("rate", "from", "to"), ("jitter", "to", "from")):
        table = controlled.gauges("three", gauge)
        asked = {
            name: metrics.compute(controlled, gauge, name) for name in ("three", "three.reverse")
        }
        for name, side in (("three", there), ("three.reverse", back)):
            known = table.filter(side=side)
            assert known.height > 1
            assert asked[name]["value"].to_list() == known["value"].to_list()
            assert set(asked[name]["side"]) == {side}
        every = metrics.compute(controlled, gauge)
        assert every.filter(flow="three").height == table.height


SHOWN = {
    "MOS": "flows.mos",
    "unheard": "flows.concealed_ratio",
    "Mouth-to-ear mean": "flows.mouth_to_ear_mean_s",
    "Delay": "flows.delay_mean_s",
    "R": "flows.r_factor",
    "users' satisfaction": "flows.r_factor",
    "lost": "flows.lost_packets",
    "lost to delay": "flows.mos_lost_to_delay",
    "busy": "links.utilisation",
    "late": "flows.late_packets",
    "delay p95": "flows.delay_p95_s",
    "Goodput_BPS": "flows.goodput_bps",
}


@pytest.mark.parametrize("title", SHOWN)
def test_a_title_of_a_table_stands_for_its_metric(title):
    """In any letters; of several, the one of the first table."""
    assert metric(title).full_name == metric(title.upper()).full_name == SHOWN[title]


def test_a_name_means_what_it_meant_before_titles_did():
    for one in ALL:
        for name in one.names:
            assert name in metric(name).names
        assert one in (metric(one.full_name), metric(one.full_name, of_links=one.of_links))


def offered(name):
    with pytest.raises(KeyError) as error:
        metric(name)
    text = str(error.value.args[0])
    assert text.startswith(f"no metric {name!r}; did you mean ")
    return re.findall("'([^']*)'", text.partition("; did you mean ")[2])


def test_the_columns_of_every_view_have_places_of_their_own():
    """Two metrics at one place would be in any order, and a gap is a place that nothing has."""
    for view, columns in VIEWS.items():
        assert [shown.place for shown in columns.values()] == list(range(len(columns))), view


def test_every_title_of_a_terminal_table_leads_to_a_metric():
    views = ("calls", "video", "flows", "links")
    heads = (*(head for view in views for head in tables._heads(view)), tables._users(2))
    heads = [one for one in heads if one.kind != "name"]
    assert len(heads) > 20
    study = [tables._headed(m) for m in (*tables.CALL_COLUMNS, *tables.FLOW_COLUMNS, *tables.VIDEO)]
    for one in (*heads, *study):
        for title in {one.head.split("\n")[0], one.full or one.head}:
            known = [column for column in ALL if title in column.names]
            assert known or near_names(title), title
    for measure in (*tables.CALL_COLUMNS, *tables.FLOW_COLUMNS, *tables.VIDEO):
        assert measure in near_names(tables._headed(measure).full), measure


def test_every_label_and_every_name_in_other_letters_leads_to_its_metric():
    for one in ALL:
        names = {one.name, one.full_name}
        for said in (one.label, one.name.upper(), one.name.replace("_", " ")):
            assert names & set(near_names(said)), said


def test_the_table_before_a_name_does_not_hide_it():
    assert offered("gauges.cwnd_pakets")[0] == "cwnd_packets"
    assert offered("flows.unheard")[0] == "concealed_ratio"
    assert offered("cwnd_pack")[0] == "cwnd_packets"


def test_a_gauge_that_no_endpoint_has_is_answered_with_those_there(folder, tmp_path):
    dccp = {
        f"flows.{name}.transport": {"kind": "dccp", "ccid": 2} for name in ("tcp-call", "upload")
    }
    result = talkspurt.run(folder / "small.toml", set=dccp)
    assert "cwnd_packets" in result.gauge_names and "cwnd" not in result.gauge_names
    told = "nothing in these runs has a value of gauges.cwnd; there are: "
    with pytest.raises(ValueError, match=told) as error:
        result.figure("gauges.cwnd")
    assert str(error.value).endswith("; did you mean 'cwnd_packets'?")
    result.save(tmp_path / "out")
    for form in ((), ("--json",), ("--table",)):
        done = command("metrics", "out", "gauges.cwnd", *form, cwd=tmp_path)
        assert done.returncode == 2 and done.stderr.count("\n") == 1
        assert done.stderr.endswith("; did you mean 'cwnd_packets'?\n"), done.stderr
