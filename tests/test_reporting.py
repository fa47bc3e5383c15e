"""`talkspurt report`, `talkspurt open`, and what `--no-report` leaves where it is."""

import json
import os
import sys

import pytest

import talkspurt as package
from command import refused, succeed, talkspurt
from conftest import STUDY
from test_cli import scenario, words
from texts import put

NO_BROWSER = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "BROWSER": ""}


@pytest.fixture(scope="module")
def made(folder, tmp_path_factory):
    """A run and a study without reports."""
    place = tmp_path_factory.mktemp("made")
    for name in ("small", "study"):
        package.run(folder / f"{name}.toml", study=name == "study").save(place / name, report=False)
    return place


def content(folder):
    """All files of a folder with their bytes."""
    return {f.relative_to(folder): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


@pytest.mark.parametrize("name", ["small", "study"])
def test_a_report_is_built_from_results(made, tmp_path, name):
    before = content(made / name)
    done = succeed("report", made / name)
    assert done.stdout.strip() == f"Report: {made / name}/report.html"
    after = content(made / name)
    assert {file: after[file] for file in before if file.name != "manifest.json"} == {
        file: data for file, data in before.items() if file.name != "manifest.json"
    }
    package.load(made / name, study=name == "study").report(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_bytes() == (made / name / "report.html").read_bytes()
    figures = {file.name for file in (made / name / "figures").iterdir()}
    drawn = {"delay", "queue", "mos", "fates"} if name == "small" else {"mos", "goodput_bps"}
    assert figures >= {"topology.svg", *(f"{one}.{e}" for one in drawn for e in ("svg", "png"))}
    listed = json.loads((made / name / "manifest.json").read_text())["files"]
    assert {str(file) for file in after} == {*listed, "manifest.json"}
    assert not [file for file in made.iterdir() if file.name.startswith(".")]


def test_a_run_of_a_study_gets_a_report_and_the_study_can_be_run_again(folder, tmp_path):
    file = put(scenario(folder, tmp_path), STUDY)
    assert talkspurt("run", file, "--no-report", "--out", tmp_path / "out").returncode == 0
    run = sorted((tmp_path / "out/runs").iterdir())[0]
    succeed("report", run)
    assert (run / "report.html").exists()
    succeed("run", file, "--no-report", "--out", tmp_path / "out")


def test_no_report_deletes_nothing_and_says_what_stays(folder, tmp_path):
    file = scenario(folder, tmp_path)
    out = tmp_path / "out"
    assert talkspurt("run", file, "--out", out).returncode == 0
    page = (out / "report.html").read_bytes()
    figures = sorted(file.name for file in (out / "figures").iterdir())
    done = succeed("run", file, "--no-report", "--seed", "9", "--out", out)
    assert "the report is of an earlier run" in words(done)
    assert package.load(out).seed == 9
    assert (out / "report.html").read_bytes() == page
    assert sorted(file.name for file in (out / "figures").iterdir()) == figures
    done = succeed("run", file, "--out", out)
    assert "earlier" not in words(done)


def test_save_without_a_report_keeps_the_earlier_one(result, tmp_path):
    result.save(tmp_path / "out")
    page = (tmp_path / "out/report.html").read_bytes()
    result.save(tmp_path / "out", report=False)
    assert (tmp_path / "out/report.html").read_bytes() == page
    result.save(tmp_path / "out")


def test_open_prints_the_path_where_there_is_no_browser(result, tmp_path):
    result.save(tmp_path / "out")
    done = succeed("open", tmp_path / "out", env=NO_BROWSER)
    said = f"There is no browser here; the report is {tmp_path}/out/report.html"
    assert done.stdout.strip() == said


@pytest.mark.skipif(sys.platform == "win32", reason="needs a script as browser")
def test_open_opens_a_browser(result, tmp_path):
    result.save(tmp_path / "a b")
    browser = put(tmp_path / "browser", f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    done = succeed("open", tmp_path / "a b", env={**NO_BROWSER, "BROWSER": f"{browser} %s"})
    assert done.stdout.strip() == f"Opened {tmp_path}/a b/report.html"
    assert (tmp_path / "opened").read_text().strip() == (tmp_path / "a b/report.html").as_uri()


@pytest.mark.parametrize("command", ["report", "open"])
def test_what_is_not_there_is_named(folder, tmp_path, command):
    done = refused(command, tmp_path / "nowhere")
    assert "there is no result of talkspurt here" in words(done)


def test_open_without_a_report_names_the_command(folder, tmp_path):
    package.run(folder / "small.toml").save(tmp_path / "out", report=False)
    done = refused("open", tmp_path / "out", env=NO_BROWSER)
    assert f"has no report; `talkspurt report {tmp_path}/out` writes it" in words(done)


def test_a_report_that_cannot_be_built_leaves_the_earlier_one(folder, tmp_path):
    package.run(folder / "small.toml").save(tmp_path / "out")
    page = (tmp_path / "out/report.html").read_bytes()
    os.truncate(tmp_path / "out/series.parquet", 100)
    done = talkspurt("report", tmp_path / "out")
    assert done.returncode == 1
    assert "series.parquet" in words(done)
    assert (tmp_path / "out/report.html").read_bytes() == page
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]
