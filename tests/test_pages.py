"""Every command and example in README and the documentation runs, and prints what is shown."""

import re
import shutil

import pytest

from pages import ROOT, Run, blocks, commands, has_r, words
from talkspurt._commands import app
from talkspurt._commands.entry import _in_full
from texts import put

NOT_RUN = {
    r"make test\b": "runs this test",
    r"\. \.venv/bin/activate$": "the test has its own path to talkspurt",
    r"talkspurt open\b": "opens a browser",
    r"pip install 'talkspurt\[": "make setup has installed it",
    r"sudo -E \.venv/bin/talkspurt measure far\b": "needs root on two machines; "
    "tests/test_measure_ip.py measures on one",
    r"(sudo|sudo -E) \.venv/bin/talkspurt emulate\b": "needs root; tests/test_emulate.py emulates",
    r"talkspurt run .*--scores\b": "takes a minute; tests/test_scores.py scores a shorter call",
    r"talkspurt import (call\.pcapng|sender\.pcap|out\.tr|a\.log)\b": "a file of the reader",
    r"talkspurt (serve\b|measure (far|localhost|\$)|plot runs/measure-far)": "needs two machines; "
    "tests/test_measure.py measures on one",
    r"talkspurt (answer|call)\b": "needs two machines; tests/test_call.py calls on one",
    r"sudo \.venv/bin/talkspurt reproduce\b": "needs root; tests/test_live.py measures",
    r"\(umask 077; openssl|export TALKSPURT_SECRET": "a secret for two machines",
    r"talkspurt reproduce\b": "takes two minutes; tests/test_reproduce_studies.py runs the studies",
}
"""Commands that are not run, by their beginning, with the reason."""

BLOCKS_NOT_RUN = {
    r"make setup$": "needs the code that the page adds",
    r"cargo run\b": "needs the code that the page adds",
    r"cd (runs/reproduce-all|\.\./nor2010)": "a dossier, which `talkspurt reproduce` writes",
    r"cp -rL /usr/share/tcltk": "needs nam",
    r"sudo validation/": "needs a virtual machine",
    r"sudo \.venv/bin/python validation/": "takes an hour, with other programs",
    r"\.venv/bin/python validation/captures/": "needs captures of other projects",
}
"""Blocks that are not run, by the beginning of their first command, with the reason."""

NEEDS = {r"talkspurt crosscheck\b": "ns", r"tshark\b": "tshark"}
"""Commands that are run only where a program is installed."""

INSTEAD = {r"make demo\b": "talkspurt run scenarios/first-call.toml"}
"""What a command does after the set-up."""

ADDED = {
    r"talkspurt run (?!.*--no-report)": "--no-report",
    # No page shows what these print, and other tests check what the pages tell about them.
    r"talkspurt run scenarios/(controllers|jitter-buffers|opus-repair)\.toml": "--set "
    "replications.count=1",
    r"talkspurt run scenarios/opus-repair\.toml": "--set duration=6s --set measure={}",
}
"""Options that shorten long commands."""

PAGES = sorted(
    page
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    if any(b.language in ("sh", "console", "r") or b.title for b in blocks(page))
    or page.parent.name == "how-to"
)


def shell(page):
    """The shell blocks of a page."""
    return [block for block in blocks(page) if block.language in ("sh", "console")]


def begins(command, *patterns):
    return any(re.match(pattern, command) for pattern in patterns)


def prepare(command):
    """The command as the test runs it; None if it does not."""
    command = next((does for begin, does in INSTEAD.items() if begins(command, begin)), command)
    missing = (name for begin, name in NEEDS.items() if begins(command, begin))
    if begins(command, *NOT_RUN) or not all(map(shutil.which, missing)):
        return None
    more = [options for begin, options in ADDED.items() if begins(command, begin)]
    command, comment, after = command.partition("  #")
    return " ".join([command.rstrip(), *more]) + comment + after


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_runs(page, tmp_path):
    Run(page, tmp_path, prepare, BLOCKS_NOT_RUN).all()


def test_commands_that_are_not_run_have_valid_arguments():
    found = [
        command
        for page in PAGES
        for block in shell(page)
        for command in commands(block)
        if command.startswith("talkspurt ")
        and (not prepare(command) or begins(commands(block)[0], *BLOCKS_NOT_RUN))
    ]
    assert found
    for command in found:
        app.parse_args(_in_full(words(command)[1:]), exit_on_error=False, print_error=False)


def test_every_entry_of_the_lists_is_in_use():
    of_pages = [commands(block) for page in PAGES for block in shell(page)]
    every = [command for block in of_pages for command in block]
    first = [block[0] for block in of_pages]
    assert [
        b for b in (*NOT_RUN, *NEEDS, *INSTEAD, *ADDED) if not any(begins(c, b) for c in every)
    ] == []
    assert [b for b in BLOCKS_NOT_RUN if not any(begins(c, b) for c in first)] == []


READERS = {"pandas": "python", "duckdb": "python", "polars": "python", "arrow": "r"}


@pytest.mark.parametrize("reader", READERS)
def test_results_are_read_with(reader, tmp_path):
    page = ROOT / "docs" / "how-to" / "read-results.md"
    if reader == "arrow" and not has_r():
        pytest.skip("needs Rscript and the R package arrow")
    used = rf"(import|library\()\s*{reader}\b"
    found = [b for b in blocks(page) if b.language == READERS[reader] and re.search(used, b.text)]
    assert found
    run = Run(page, tmp_path, prepare, BLOCKS_NOT_RUN)
    run.shell(next(b for b in blocks(page) if b.language == "sh"), 0)
    for block in found:
        run.one(block)
        assert run.printed.strip()


def test_a_command_that_fails_is_found(tmp_path):
    page = put(tmp_path / "page.md", "```sh\ntalkspurt run missing.toml\n```\n")
    (tmp_path / "run").mkdir()
    with pytest.raises((AssertionError, ValueError)):
        Run(page, tmp_path / "run", prepare, BLOCKS_NOT_RUN).all()
