"""Results that several users of a machine write: nobody's are lost, and no link leads out of them."""

import contextlib
import errno
import os
import shutil
import tempfile
from pathlib import Path

import pytest

import talkspurt
from conftest import fault
from talkspurt._commands import entry, reporting
from talkspurt._storage import output_folder, owners
from talkspurt._storage.output_folder import Claim, Resumable, Staging
from talkspurt.errors import StoreError
from talkspurt.report import pictures

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs owners and links")
needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be another user"
)

OTHER = 65534
"""The number of a user who owns nothing."""


@pytest.fixture
def shared():
    """A folder of this user that others can enter, unlike tmp_path."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@contextlib.contextmanager
def another():
    """Act as another user."""
    os.seteuid(OTHER)
    try:
        yield
    finally:
        os.seteuid(0)


def made(folder, manifest='{"talkspurt": "0", "kind": "result", "name": "x", "files": []}'):
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(manifest)
    return folder


def claimed(target):
    return Staging(target, Claim("run", "x"))


def content(folder):
    return sorted(str(file) for file in folder.rglob("*"))


@needs_root
@pytest.mark.parametrize("what", ["folder", "inside", "above", "sticky"])
def test_what_belongs_to_another_is_refused_before_the_work(shared, what):
    shared.chmod(0o1777 if what == "sticky" else 0o777)
    target = made(shared / "out") if what != "above" else shared / "runs" / "x"
    asked = target
    if what == "inside":
        asked = target / "figures"
        asked.mkdir()
        os.chown(target, OTHER, OTHER)
    elif what == "above":
        asked = shared / "runs"
        asked.mkdir()
    elif what == "sticky":
        target.chmod(0o777)
    before = content(shared)
    with another(), pytest.raises(StoreError) as raised:
        claimed(target).__enter__()
    assert content(shared) == before
    if what == "sticky":
        assert "belongs to root, who alone can replace it there; choose" in raised.value.strerror
        return
    assert "no permission to write there" in raised.value.strerror
    with another():
        said = entry._owned(raised.value)
    assert said.startswith(f"{asked} belongs to root with the permissions drwxr-xr-x, and this ")
    assert said.endswith(": change its owner or permissions")


@needs_root
def test_the_reason_of_a_failure_to_read_is_said(shared, capfd):
    place = made(shared / "out")
    place.chmod(0o700)
    with another(), pytest.raises(OSError, match="Permission") as raised:
        talkspurt.load(place)
    with another():
        assert entry.explain(raised.value) == 2
    assert f"; {place} belongs to root with the permissions drwx------" in capfd.readouterr().err
    own = StoreError(errno.EACCES, "cannot write", str(shared))
    assert entry._owned(own) == f"{shared} has the permissions drwxr-xr-x: change them"
    assert entry._owned(StoreError(errno.EACCES, "cannot write", "s3://bucket/x")) == ""


@needs_root
def test_a_report_of_a_folder_of_another_is_refused_before_it_is_drawn(result, shared, monkeypatch):
    place = result.save(shared / "out")
    os.chown(place, OTHER, OTHER)
    monkeypatch.setattr(pictures, "of_result", lambda *_, **__: pytest.fail("it is drawn"))
    talkspurt.load(place)
    with another(), fault(place / "figures", "no permission to write there"):
        reporting.rebuild(place, pdf=False)


@needs_root
@pytest.mark.parametrize("what", ["folder", "link"])
def test_what_another_left_is_named_and_left_alone(shared, what):
    """Whoever can foresee its name could have the content of another folder removed."""
    left = shared / ".out.partial-dead"
    victim = shared / "victim" if what == "link" else left
    made(victim / "old")
    (victim / ".lock").touch()
    if what == "link":
        left.symlink_to(victim)
    os.chown(left, OTHER, OTHER, follow_symlinks=False)
    before = content(shared)
    with claimed(shared / "out") as begun:
        (said,) = begun.news
    assert content(shared) == before
    assert said.startswith(f"{left} is not of this user but of ")
    assert said.endswith("it can be removed unless a talkspurt is at work there")


@pytest.mark.parametrize("what", ["link", pytest.param("folder", marks=needs_root)])
def test_a_study_does_not_go_on_in_a_folder_of_another(shared, what):
    left = shared / ".out.unfinished-key"
    victim = shared / "victim" if what == "link" else left
    made(victim / "runs" / "0000")
    (victim / "thesis.tex").touch()
    if what == "link":
        left.symlink_to(victim)
    else:
        os.chown(left, OTHER, OTHER)
    before = content(shared)
    with fault(left, "remove it, or choose another --out"):
        Resumable(shared / "out", "key", 2, Claim("run", "x")).__enter__()
    assert content(shared) == before


def test_links_in_an_unfinished_study_are_removed_and_not_followed(tmp_path):
    victim = made(tmp_path / "victim" / "0001.part").parent
    left = tmp_path / ".out.unfinished-key"
    (left / "runs").mkdir(parents=True)
    made(left / "runs" / "0000")
    (left / "runs" / "0001.part").symlink_to(victim / "0001.part")
    (left / "runs" / "0002").symlink_to(victim / "0001.part")
    (left / "figures").symlink_to(victim)
    before = content(victim)
    with Resumable(tmp_path / "out", "key", 3, Claim("run", "x")) as unfinished:
        assert [part.name for part in unfinished.finished] == ["0000"]
        assert sorted(file.name for file in left.iterdir()) == [".lock", "runs"]
    shutil.rmtree(left / "runs")
    (left / "runs").symlink_to(victim)
    with Resumable(tmp_path / "out", "key", 3, Claim("run", "x")):
        assert not (left / "runs").is_symlink()
    assert content(victim) == before


def test_a_part_that_was_being_written_is_not_said_to_be_kept(tmp_path):
    begun = Resumable(tmp_path / "out", "key", 12, Claim("run", "x"))
    with pytest.raises(StoreError, match="full") as raised, begun as unfinished:
        made(unfinished.folder / "runs" / "0000.part", "")
        raise StoreError(errno.ENOSPC, "the disk is full", str(unfinished.folder))
    assert not hasattr(raised.value, "__notes__")
    assert not content(tmp_path)


def test_a_report_is_not_written_through_links(result, tmp_path):
    place = result.save(tmp_path / "out")
    victim = tmp_path / "victim"
    (place / "figures").rename(victim)
    mine = tmp_path / "mine.html"
    for file in (*victim.iterdir(), mine):
        file.write_text("mine")
    (place / "figures").symlink_to(victim)
    (place / "report.html").unlink()
    (place / "report.html").symlink_to(mine)
    (place / "manifest.json").rename(tmp_path / "moved.json")
    (place / "manifest.json").symlink_to(tmp_path / "moved.json")
    manifest = (tmp_path / "moved.json").read_bytes()
    with fault(place / "figures", "is a symbolic link; remove it"):
        reporting.rebuild(place, pdf=False)
    # Also if it comes to be one while the report is drawn.
    with output_folder.beside(tmp_path / "victim") as drawn:
        (drawn / "figures").mkdir()
        (drawn / "figures" / "delay.svg").touch()
        with pytest.raises(StoreError, match="is a symbolic link or a file; remove it"):
            output_folder.add(drawn, place)
    (place / "figures").unlink()
    reporting.rebuild(place, pdf=False)
    assert not (place / "report.html").is_symlink()
    assert {file.read_text() for file in (*victim.iterdir(), mine)} == {"mine"}
    assert (tmp_path / "moved.json").read_bytes() == manifest


def test_a_report_is_drawn_beside_the_folder_and_not_beside_a_link_to_it(tmp_path):
    """From another file system, nothing could be moved into it."""
    place = made(tmp_path / "there" / "out")
    (tmp_path / "latest").symlink_to(place)
    with output_folder.beside(tmp_path / "latest") as drawn:
        assert drawn.parent == place.parent


def test_a_report_that_was_killed_half_way_does_not_make_the_folder_the_users(
    result, tmp_path, monkeypatch
):
    place = result.save(tmp_path / "out", report=False)
    move, moved = output_folder._move, []

    def stop(*words):
        moved.append(words)
        if len(moved) == 2:
            raise KeyboardInterrupt
        move(*words)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(output_folder, "_move", stop)
        reporting.rebuild(place, pdf=False)
    assert len(list((place / "figures").iterdir())) == 1
    result.save(place, report=False)
    assert talkspurt.load(place).digest == result.digest


@needs_root
def test_a_file_system_that_gives_all_files_to_one_user(tmp_path, monkeypatch):
    assert owners.is_ours(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: OTHER)
    assert owners.is_ours(tmp_path)  # a new folder there has the same owner
    os.chown(tmp_path, 1, 1)
    assert not owners.is_ours(tmp_path)
