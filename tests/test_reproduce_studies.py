"""The studies as they run: one document, known values, and pages a stranger can check a row from."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

import talkspurt
from command import talkspurt as command
from talkspurt import reproduce
from talkspurt.reproduce import NAMES, Reproduction, dossier, hops, ns2, running
from talkspurt.reproduce.rows import CLASSES

KEYS = ["id", "quantity", "unit", "paper", "stated", "inferred", "ns2", "verdict", "reason"]


@pytest.fixture(scope="module")
def all_but_the_long() -> dict[str, Reproduction]:
    """Four studies; the fifth takes as long as they together and has a test of its own."""
    names = [name for name in NAMES if name != "maldonado2005"]
    return {one.file.name: one for one in reproduce.reproduce(names)}


def row(found: dict[str, Reproduction], id: str):
    name, _, rest = id.partition("/")
    return next(row for row in found[name].rows if row.spec.id == rest)


def test_the_command_prints_one_document_and_nothing_else() -> None:
    done = command("reproduce", "sarao2019", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert list(document) == ["study", "rows"]
    assert document["study"] == "sarao2019"
    ids = [row["id"] for row in document["rows"]]
    assert len(set(ids)) == len(ids) > 50
    for found in document["rows"]:
        assert list(found) == KEYS
        assert found["verdict"] in CLASSES
        assert found["reason"].endswith(".")
        assert isinstance(found["unit"], str) and found["paper"] is not None
        for key in ("stated", "inferred", "ns2"):
            assert found[key] is None or isinstance(found[key], float | str)


def test_an_unknown_study_is_refused() -> None:
    done = command("reproduce", "nor2011")
    assert done.returncode == 2
    assert "nor2010" in done.stderr + done.stdout


def test_several_studies_are_one_document(all_but_the_long: dict[str, Reproduction]) -> None:
    document = reproduce.document(list(all_but_the_long.values()), "all")
    json.dumps(document, allow_nan=False)
    assert document["study"] == "all"
    assert {row["id"].split("/")[0] for row in document["rows"]} == set(all_but_the_long)


@pytest.mark.parametrize(
    ("id", "value"),
    [
        # Printed by the study, to the digit; each from what its own wiring must have been.
        ("sarao2019/table3/tcp", 611.108),
        ("sarao2019/table3/udp", 54.0),
        ("sarao2019/table3/tfrc", 82.25),
        ("sarao2019/table3/dccp", 52.75),
        ("sarao2019/table2/length/tcp", 10.3887),
        ("sarao2019/table2/generated-packets/tcp", 674.0),
        ("sarao2019/table2/sent-packets/tcp", 638.0),
        ("sarao2019/table2/received-packets/tcp", 634.0),
        ("sarao2019/table2/generated-packets/udp", 992.0),
        ("sarao2019/table2/length/sctp", 10.39787),
        ("sarao2019/table2/generated-packets/sctp", 204.0),
        ("sarao2019/table2/received-packets/sctp", 202.0),
        ("sarao2019/table2/generated-bytes/sctp", 150808.0),
        ("sarao2019/table3/sctp", 81.9691),
        # ns-2.35's with the same parameters.
        ("wheeb2017/table3/data/udp", 799.78),
        ("wheeb2017/table4/data/udp", 0.10846),
        ("nor2010/fig8/20", 20.5),
    ],
)
def test_known_values(all_but_the_long: dict[str, Reproduction], id: str, value: float) -> None:
    assert row(all_but_the_long, id).ours == pytest.approx(value, rel=2e-3)


@pytest.mark.parametrize(
    ("id", "band"),
    [
        # What the kernel's sender makes of its first loss, a second of queue before it.
        ("full/x-calc", 0.1),
        ("full/p", 0.15),
        ("full/rtt", 0.15),
        ("full/first-loss", 0.1),
        ("full/rtt-peak", 0.05),
        ("full/recovers", 0.05),
        ("3min/x-calc", 0.01),
        ("3min/rtt-load", 0.02),
        ("cbr2/rtt", 0.02),
    ],
)
def test_a_linux_kernel_does_the_same_on_the_same_wire(
    all_but_the_long: dict[str, Reproduction], id: str, band: float
) -> None:
    from talkspurt.reproduce import renker2008

    theirs = renker2008.linux()[id]
    assert row(all_but_the_long, f"renker2008/{id}").ours == pytest.approx(theirs, rel=band)


def test_the_notes_own_example_of_the_equation(all_but_the_long: dict[str, Reproduction]) -> None:
    assert row(all_but_the_long, "renker2008/equation/x-calc").stated == pytest.approx(753, abs=1)


def test_what_cannot_be_is_said_to(all_but_the_long: dict[str, Reproduction]) -> None:
    for id, words in (
        ("sarao2019/table3/dccp", "shorter than the link's"),
        ("nor2010/fig9/delay-stable", "shorter than the link's"),
        ("wheeb2017/table3/voip/sctp", "above the 64 kb/s"),
        ("nor2010/fig3/tcp-starved", "leave 400 kb/s"),
    ):
        found = row(all_but_the_long, id)
        assert found.verdict == "cannot follow from the stated parameters", id
        assert words in found.reason, id


def test_rows_rest_on_runs_that_are_there(all_but_the_long: dict[str, Reproduction]) -> None:
    for one in all_but_the_long.values():
        for id, cases in one.values.cases.items():
            assert any(row.spec.id == id for row in one.rows), id
            assert set(cases) <= set(one.cases), id
        known = {row.spec.id for row in one.rows}
        for values in (one.values.stated, one.values.inferred, one.values.ns2, one.values.notes):
            assert set(values) <= known, one.file.name


def test_a_dossier_has_all_it_takes_to_check_a_row(
    all_but_the_long: dict[str, Reproduction], tmp_path: Path
) -> None:
    dossier.write([all_but_the_long["sarao2019"]], "sarao2019", tmp_path)
    page = (tmp_path / "sarao2019" / "index.html").read_text(encoding="utf-8")
    part = page[page.index('id="table3-dccp"') :]
    commands = re.findall(
        r"<code>talkspurt run (scenarios/[a-z0-9-]+\.toml)</code>.*?digest (\w+)", part
    )
    file, digest = commands[1]
    assert "unanswered" in file
    again = talkspurt.run(tmp_path / "sarao2019" / file)
    assert isinstance(again, talkspurt.Result)
    assert again.digest.startswith(digest)
    packets = again.packets("voice").filter(link="wire")
    mean = (packets["received_s"] - packets["enqueued_s"]).mean()
    assert 1e3 * mean == pytest.approx(52.75)
    # Every figure is there twice, and the summary leads to the page.
    drawn = sorted(f.stem for f in (tmp_path / "sarao2019" / "figures").glob("*.svg"))
    assert drawn == sorted(f.stem for f in (tmp_path / "sarao2019" / "figures").glob("*.png"))
    assert "companion-mos" in drawn
    assert 'href="sarao2019/index.html"' in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_a_dossier_says_whence_a_kernels_series_comes(
    all_but_the_long: dict[str, Reproduction], tmp_path: Path
) -> None:
    dossier.write([all_but_the_long["renker2008"]], "renker2008", tmp_path)
    page = (tmp_path / "renker2008" / "index.html").read_text(encoding="utf-8")
    recorded = json.loads(
        (tmp_path / "renker2008" / "renker2008.linux.json").read_text(encoding="utf-8")
    )
    assert recorded["origin"] in page and recorded["licence"] in page
    assert 'href="renker2008.linux.json"' in page


def test_a_folder_of_dossiers_is_replaced_and_is_no_result(tmp_path: Path) -> None:
    for _ in range(2):
        done = command("reproduce", "sarao2019", "--out", tmp_path / "out")
        assert done.returncode == 0, done.stderr
        assert "sarao2019" in done.stdout and "index.html" in done.stdout
    rows = json.loads((tmp_path / "out" / "rows.json").read_text(encoding="utf-8"))
    assert rows["study"] == "sarao2019"
    with pytest.raises(OSError, match=r"open index\.html"):
        talkspurt.load(tmp_path / "out")


@pytest.mark.parametrize("name", ["nor2010", "wheeb2017", "sarao2019", "maldonado2005"])
def test_recorded_values_of_ns2_are_of_the_script_that_is_there(name: str) -> None:
    file = Path(str(ns2.FILES / f"{name}.ns2.json"))
    recorded = json.loads(file.read_text(encoding="utf-8"))
    script = (ns2.FILES / f"{name}.tcl").read_bytes()
    assert recorded["script_sha256"] == hashlib.sha256(script).hexdigest()
    assert recorded["origin"].startswith("ns-2") and recorded["date"]


@pytest.mark.skipif(not ns2.installed(), reason="ns is not installed")
def test_ns2_gives_what_was_recorded() -> None:
    again = ns2.measured("sarao2019")
    for id, value in ns2.recorded("sarao2019").items():
        assert again[id] == (
            pytest.approx(value, abs=1e-6) if isinstance(value, float) else value
        ), id


def test_ns2_that_is_not_there_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ns2.shutil, "which", lambda _: None)
    with pytest.raises(ns2.Ns2Error, match="ns is not installed"):
        reproduce.reproduce(["sarao2019"], fresh_ns2=True)


def test_a_trace_of_ns2_is_read_as_hops(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.write_text(
        "+ 1.0 0 1 cbr 100 ------- 7 0.0 1.0 0 5\n"
        "- 1.1 0 1 cbr 100 ------- 7 0.0 1.0 0 5\n"
        "r 1.25 0 1 cbr 100 ------- 7 0.0 1.0 0 5\n"
        "+ 1.3 0 1 cbr 100 ------- 7 0.0 1.0 1 6\n"
        "d 1.3 0 1 cbr 100 ------- 7 0.0 1.0 1 6\n",
        encoding="ascii",
    )
    found = hops.of_ns2(trace)
    assert hops.mean_delay_s(found) == pytest.approx(0.25)
    assert hops.counts(found)["received"] == 1 and hops.counts(found)["generated"] == 2


@pytest.fixture(scope="module")
def the_long() -> Reproduction:
    return reproduce.reproduce(["maldonado2005"])[0]


def test_the_page_says_what_comes_out(
    all_but_the_long: dict[str, Reproduction], the_long: Reproduction
) -> None:
    page = (Path(__file__).parent.parent / "docs" / "studies.md").read_text(encoding="utf-8")
    for one in (*all_but_the_long.values(), the_long):
        counts = [len(one.rows), *running.tally(one.rows)]
        line = f"| {one.file.name} | " + " | ".join(map(str, counts)) + " |"
        assert line in page


def test_the_fifth_study(the_long: Reproduction) -> None:
    one = the_long
    found = {"maldonado2005": one}
    assert row(found, "maldonado2005/restart/with").stated == 2
    assert row(found, "maldonado2005/restart/without").stated == 4
    assert row(found, "maldonado2005/restart/g711-rate").ours == pytest.approx(12.0, rel=1e-3)
    assert row(found, "maldonado2005/floyd/nominal").stated == pytest.approx(1460, rel=1e-3)
    assert row(found, "maldonado2005/floyd/interval").stated == pytest.approx(10.0, rel=1e-3)
    impossible = [r.spec.id for r in one.rows if "offer" in r.reason and "times what" in r.reason]
    assert impossible == ["fig5/load/50", "fig5/load/100", "fig6/load/25"]
    assert row(found, "maldonado2005/beritelli/40").verdict.startswith("cannot follow")
    assert row(found, "maldonado2005/fig3/best-codec").ours <= 80.8
