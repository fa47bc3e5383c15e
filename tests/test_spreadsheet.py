"""One table for spreadsheets: units in the header, and texts for values outside their model's range."""

import csv
import io
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
import zipfile

import polars as pl
import pytest

import talkspurt
from command import output, succeed, told
from talkspurt.metrics.catalogue import FLOWS, column
from talkspurt.runs import exporting, spreadsheet
from texts import UDP, axis_text, cbr, flow_text, link_text, scenario_text

SCENARIO = scenario_text(
    "=Sheet",
    "12s",
    link_text("sky", "west>east", "200kbit/s", "20ms", 10, loss=0.05),
    flow_text("call", "west>east"),
    flow_text("rest", "east>west", UDP, cbr("50kbit/s", "500B")),
    axis_text("links.sky.loss", "[0.0, 0.6]", name="loss"),
    axis_text("links.sky.delay", '["10ms", "20ms"]', name="delay"),
    replications="{ count = 2 }",
)
SUFFIXES = {"s": "_s", "bit/s": "_bps", "packets": "_packets", "bytes": "_bytes"}


@pytest.fixture(scope="module")
def study():
    return talkspurt.run(SCENARIO, study=True)


@pytest.fixture(scope="module")
def saved(study, tmp_path_factory):
    place = tmp_path_factory.mktemp("sheets")
    study.save(place / "study", report=False)
    study.runs[-1].save(place / "run", report=False)
    return place


def rows_of(file):
    return list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"))))


def test_a_row_for_each_run_and_flow_begins_with_the_axes(study, saved):
    done = succeed("export", saved / "study", "--to", "table")
    file = saved / "study.table.csv"
    assert done.stdout == f"Table: {file}\n"
    rows, flows = rows_of(file), study.flows
    assert len(rows) == flows.height == 2 * 2 * 2 * 2
    head = [*rows[0]]
    assert head[:5] == ["axis.loss", "axis.delay [s]", "replicate", "seed", "flow"]
    assert len(set(head)) == len(head)
    assert [float(row["axis.delay [s]"]) for row in rows] == flows["axis.delay"].to_list()
    assert [row["flow"] for row in rows] == flows["name"].to_list()


def test_numbers_are_in_the_unit_of_their_header(study, saved):
    succeed("export", saved / "study", "--to", "table", "-o", saved / "units.csv")
    rows = rows_of(saved / "units.csv")
    shown = 0
    for one in FLOWS:
        unit = one.shown_unit or one.quantity.counted
        name = one.name.removesuffix(SUFFIXES.get(one.unit, "\0"))
        head = f"{name} [{unit}]" if unit else name
        stored = study.flows[one.name].to_list()
        if one.name in spreadsheet.BOUNDS or not any(value is not None for value in stored):
            assert head not in rows[0], head
            continue
        shown += 1
        for row, value in zip(rows, stored, strict=True):
            if "out of range" in row[head]:
                continue
            found = float(row[head]) if row[head] else None
            assert found == (value and pytest.approx(value * one.scale, rel=1e-11, abs=1e-12)), head
    assert shown > 30
    sent, lost = (study.flows[f"{it}_packets"].to_list() for it in ("sent", "lost"))
    for row, of, count in zip(rows, sent, lost, strict=True):
        assert float(row["network_loss [%]"]) == pytest.approx(100 * count / of)


def outside(study):
    """Where the score of a call is outside the range of the E-model, and its bound."""
    flows = study.flows
    return {
        i: row["mos_bound"]
        for i, row in enumerate(flows.iter_rows(named=True))
        if row["mos"] is not None and row["mos_bound"] > row["mos"]
    }


def test_a_score_outside_its_range_is_a_text_everywhere(study, saved):
    there = outside(study)
    calls = study.flows["mos"].count()
    assert 0 < len(there) < calls
    succeed("export", saved / "study", "--to", "table", "-o", saved / "marks.csv")
    succeed("export", saved / "study", "--to", "csv", "-o", saved / "tables")
    asked = succeed("metrics", saved / "study", "mos").stdout
    whole = pl.read_csv(io.StringIO(asked), infer_schema=False)["value"].to_list()
    table = [row["mos"] for row in rows_of(saved / "marks.csv")]
    flows = [row["mos"] for row in rows_of(saved / "tables/flows.csv")]
    stored = study.flows["mos"].to_list()
    for i, value in enumerate(stored):
        cells = (table[i], flows[i], whole[i] or "")
        if i in there:
            for cell in cells:
                found = re.fullmatch(r"below (\d\.\d+): out of range", cell)
                assert found and float(found[1]) == pytest.approx(there[i], abs=0.0051), cell
        elif value is None:
            assert cells == ("", "", "")
        else:
            assert [float(cell) for cell in cells] == pytest.approx([value] * 3)
    for one in json.loads(succeed("metrics", saved / "study", "mos", "--json").stdout):
        assert (one["bound"] is None) or one["bound"] > one["value"]
    found = json.loads(succeed("metrics", saved / "study", "mos", "--json").stdout)
    assert sum(one["bound"] is not None for one in found) == len(there)
    summary = rows_of(saved / "tables/summary.csv")
    marked = [row for row in summary if row["measure"] == "mos" and row["bound"]]
    assert marked
    for row in marked:
        assert row["mean"] == f"below {round(float(row['bound']), 2)}: out of range"
        assert row["low"] == row["high"] == row["deviation"] == ""
    differences = rows_of(saved / "tables/differences-loss.csv")
    marked = [row for row in differences if row["measure"] == "mos" and row["bound"]]
    assert marked and {row["mean"] for row in marked} == {"out of range"}


def test_a_table_of_a_mean_outside_its_range_has_its_bound(study, saved):
    text = succeed("metrics", saved / "study", "mos", "--table").stdout
    rows = study.summary(["mos"]).drop_nulls("bound")
    for bound in rows["bound"]:
        assert f"<{bound:.2f}" in text
    for mean in rows["mean"]:
        assert f"{mean:.2f}" not in text


def test_texts_are_no_formulas():
    assert spreadsheet._csv(["=a", "b"], [["-x", -1.5], ["+1", 2]]) == (b"'=a,b\n'-x,-1.5\n'+1,2\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("table -o a.xlsx", "--out a.xlsx: expected a name that ends in .csv"),
        ("xlsx -o a.csv", "--out a.csv: expected a name that ends in .xlsx"),
    ],
)
def test_another_ending_is_refused(saved, tmp_path, words, said):
    assert said in told("export", saved / "run", "--to", *words.split(), cwd=tmp_path)
    assert not list(tmp_path.iterdir())


def cells_of(file):
    """The cells of a workbook's only sheet, by place; texts as str, numbers as float."""
    space = {"m": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}
    with zipfile.ZipFile(file) as there:
        assert len([name for name in there.namelist() if "worksheets/" in name]) == 1
        strings = ElementTree.fromstring(there.read("xl/sharedStrings.xml"))
        texts = ["".join(one.itertext()) for one in strings.findall("m:si", space)]
        sheet = ElementTree.fromstring(there.read("xl/worksheets/sheet1.xml"))
    found = {}
    for cell in sheet.iterfind(".//m:c", space):
        assert cell.find("m:f", space) is None
        value = cell.find("m:v", space)
        if value is not None:
            is_text = cell.get("t") == "s"
            found[cell.get("r")] = texts[int(value.text)] if is_text else float(value.text)
    return found


def test_a_workbook_has_the_same_cells(study, saved):
    pytest.importorskip("xlsxwriter", reason="the extra xlsx is not installed")
    file = exporting.export(saved / "study", "xlsx", saved / "a.xlsx")
    head, rows = spreadsheet.table(study)
    cells = cells_of(file)
    by_row = {}
    for place, value in cells.items():
        by_row.setdefault(int(re.sub("[A-Z]", "", place)), []).append(value)
    assert by_row[1] == head
    for number, row in enumerate(rows, 2):
        told_of = [float(one) if isinstance(one, int) else one for one in row if one is not None]
        for cell, one in zip(by_row[number], told_of, strict=True):
            assert cell == (one if isinstance(one, str) else pytest.approx(one))
    assert any("out of range" in str(cell) for cell in cells.values())
    exporting.export(saved / "study", "xlsx", file)  # an earlier one is replaced
    file.write_bytes(b"another")
    with pytest.raises(talkspurt.errors.StoreError, match="is no table of talkspurt"):
        exporting.export(saved / "study", "xlsx", file)


def test_a_workbook_without_its_package_names_the_extra(saved, tmp_path):
    hidden = (
        "import sys; sys.modules['xlsxwriter'] = None\n"
        "from talkspurt.errors import MissingExtraError\n"
        "from talkspurt import export\n"
        "try: export(sys.argv[1], 'xlsx', sys.argv[2])\n"
        "except MissingExtraError as error: print(error)\n"
    )
    said = output(sys.executable, "-c", hidden, saved / "run", tmp_path / "a.xlsx")
    assert said == "a .xlsx needs XlsxWriter, not installed: pip install 'talkspurt[xlsx]'\n"
    assert not list(tmp_path.iterdir())


def test_headers_are_named_by_metric_and_unit():
    assert spreadsheet.header(column("mouth_to_ear_mean_s")) == "mouth_to_ear_mean [ms]"
    assert spreadsheet.header(column("goodput_bps")) == "goodput [kbit/s]"
    assert spreadsheet.header(column("sent_packets")) == "sent [packets]"
    assert spreadsheet.header(column("mos")) == "mos"
