"""Tables of many runs as one are the tables of the runs one after the other."""

import dataclasses
import random
import shutil

import polars as pl
import pytest

import talkspurt as package
from conftest import fault
from talkspurt import api
from talkspurt._storage import file_access, output_folder, reader
from talkspurt._text import escaping
from talkspurt.results import concatenation
from talkspurt.results.run_data import SUMMARIES, TABLES
from talkspurt.scenarios import source


@pytest.fixture(scope="module")
def saved(study, tmp_path_factory):
    return study.save(tmp_path_factory.mktemp("stacking") / "study", report=False)


def one_by_one(runs, table):
    parts = [run.table(table) for run in runs]
    counts = [i for i, part in enumerate(parts) for _ in range(part.height)]
    frame = pl.concat(parts, how="vertical_relaxed")
    return frame.select(pl.Series(concatenation.RUN, counts, dtype=pl.Int64), pl.all())


@pytest.mark.parametrize("table", TABLES)
def test_files_read_at_once_are_those_read_one_by_one(saved, table):
    runs = package.load(saved, study=True).runs
    again = package.load(saved, study=True).runs
    assert concatenation.stack(runs, table).equals(one_by_one(again, table))
    if table in SUMMARIES:
        # No run has a frame of its own in memory.
        assert not any(run._tables for run in runs)


def test_a_mixture_of_files_and_memory_is_read(study, saved):
    runs = [*package.load(saved, study=True).runs[:3], *study.runs[3:]]
    assert concatenation.stack(runs, "links").equals(one_by_one(runs, "links"))


def test_a_damaged_file_among_many_is_named(saved, tmp_path):
    place = shutil.copytree(saved, tmp_path / "out")
    victim = sorted(place.glob("runs/*/flows.parquet"))[4]
    for harm in (lambda: victim.write_bytes(b"PAR1" + bytes(40)), victim.unlink):
        harm()
        with fault(victim):
            _ = package.load(place, study=True).flows


def test_other_columns_are_null(study):
    runs = list(study.runs[:2])
    old = runs[1].flows.drop("stand_in")
    runs[1] = dataclasses.replace(runs[1], _read_table=lambda _: old, _tables={})
    found = concatenation.stack(runs, "flows")
    assert found["stand_in"].is_null().to_list()[-old.height :] == [True] * old.height


def test_rows_gathered_in_any_order_are_the_tables(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(concatenation, "MAX_WAITING", 2)
    question = source.read(folder / "study.toml")
    here, there = concatenation.Gathered(), {}
    ended = {}

    def keep(i, result):
        ended[i] = result._outcome
        there[i] = reader.keep_run(result, tmp_path / str(i))
        return there[i]

    def place(i):
        where = output_folder.part(tmp_path / str(i))
        where.mkdir()
        return where

    package.api.collect(
        question,
        range(len(question.plan)),
        keeping=package.api.Keeping(keep, place),
        tables="folder",
    )
    order = list(ended)
    random.Random(5).shuffle(order)
    for i in order[:-2]:  # the others were there already
        here.add(i, ended[i])
    stacks = here.stacks(there)
    runs = [there[i] for i in sorted(there)]
    for name in SUMMARIES:
        assert stacks[name].equals(one_by_one(runs, name)), name
        assert stacks[name].schema == one_by_one(runs, name).schema


def test_results_that_are_equal_share_what_is_equal(saved):
    first, second = package.load(saved, study=True).runs[:2]
    assert first.topology is second.topology
    assert first.manifest["empty_tables"] is second.manifest["empty_tables"]


def test_files_are_in_the_order_of_their_folders(tmp_path):
    rng = random.Random(3)
    for _ in range(60):
        place = tmp_path.joinpath(*(rng.choice("ab- é!0") * 2 for _ in range(3)))
        place.mkdir(parents=True, exist_ok=True)
        (place / f"x{rng.choice('a.-/')}".replace("/", "")).write_text("")
    (tmp_path / "link").symlink_to(tmp_path)
    plain = [f for f in sorted(tmp_path.rglob("*")) if f.is_symlink() or not f.is_dir()]
    assert list(file_access.files_in(tmp_path)) == plain
    assert list(file_access.files_in(tmp_path / "none")) == []


def test_many_files_are_written_out_together_if_the_system_can(tmp_path, monkeypatch):
    files = [tmp_path / str(i) for i in range(file_access.MANY)]
    for file in files:
        file.write_text("x")
    flushed = []
    monkeypatch.setattr(file_access, "flush", flushed.append)
    together = file_access._write_out(tmp_path)
    file_access.flush_all(files, tmp_path)
    assert flushed == ([] if together else files) + [tmp_path]
    flushed.clear()
    monkeypatch.setattr(file_access, "_write_out", lambda _: False)
    file_access.flush_all(files, tmp_path)
    assert flushed == [*files, tmp_path]


def test_runs_of_which_no_table_is_wanted_are_their_rows_alone(folder, capsys):
    question = source.read(folder / "study.toml")
    keeping = api.Keeping(written_in=lambda _: None)
    short = api.answer(question, keeping=keeping, tables="none")
    whole = api.answer(question)
    assert not any(run._outcome for run in short.runs)
    for run, other in zip(short.runs, whole.runs, strict=True):
        assert run.flows.equals(other.flows) and run.links.equals(other.links)
        assert (run.seed, run.settings, run.scenario) == (
            other.seed,
            other.settings,
            other.scenario,
        )
    assert short.runs[0].heard == [] and not short.is_scored
    with pytest.raises(KeyError, match="series"):
        short.runs[0].series()
    document = whole.to_json()
    assert short.to_json() == document
    escaping.print_json(short._document())
    assert capsys.readouterr().out == escaping.to_json(document) + "\n"


def test_a_run_without_rows_has_none(study):
    names = study._stack("flows")[concatenation.RUN]
    study = dataclasses.replace(study)
    study._stacks["flows"] = whole = package.Study.of_run(study.runs[0])._stack("flows")
    assert names.n_unique() == len(study.runs) > 1
    assert [len(rows) for _, rows in study.by_run("flows")] == [
        whole.height,
        *[0] * (len(study.runs) - 1),
    ]


def test_an_empty_list_is_printed_as_one(capsys):
    escaping.print_json({"before": 1, "runs": iter(()), "after": [2]})
    assert capsys.readouterr().out == '{"before": 1, "runs": [], "after": [2]}\n'
