"""`--quiet`: only the answer of runs, nothing but errors in real time, and the same results."""

import contextlib
import json
import socket
import sys
import time

import pytest

import talkspurt
from command import start, succeed, told
from command import talkspurt as command
from ports import free_port
from test_emulate import NETWORK, real
from test_measure import SECRET
from texts import put

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="real time needs Linux")


def answer_of(result):
    """The answer as it is printed on one line for each sentence."""
    found = result.answer
    lines = [*found.sentences, *filter(None, [found.about])]
    return "".join(f"{line}\n" for line in lines).replace("\u00a0", " ")


WIDE = {"COLUMNS": "2000"}


def test_quiet_runs_print_their_answer_alone(folder, tmp_path):
    options = ("--quiet", "--no-report", "--out")
    for name in ("small", "study"):
        out = tmp_path / name
        done = succeed("run", folder / f"{name}.toml", *options, out, env=WIDE)
        found = talkspurt.load(out, study=name == "study")
        assert (done.stdout, done.stderr) == (answer_of(found), "")
        # Not even that there is an earlier report, or that runs were there already.
        succeed("run", folder / f"{name}.toml", "--out", out)
        done = succeed("run", folder / f"{name}.toml", *options, out, env=WIDE)
        assert (done.stdout, done.stderr) == (answer_of(found), "")
        loud = succeed("run", folder / f"{name}.toml", *options[1:], out, env=WIDE)
        assert "Flows" in loud.stdout and "the report is of an earlier run" in loud.stderr


def test_quiet_with_json_prints_json(folder, tmp_path):
    done = succeed("run", folder / "small.toml", "--quiet", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["flows"] and done.stderr == ""


def test_a_quiet_comparison_and_quiet_shards_print_their_answer_alone(folder, tmp_path):
    for seed in (1, 2):
        words = ("run", folder / "small.toml", "--seed", seed, "--no-report", "--quiet")
        succeed(*words, "--out", tmp_path / str(seed))
    both = tmp_path / "both"
    words = ("compare", tmp_path / "1", tmp_path / "2", "--quiet", "--no-report", "--out", both)
    done = succeed(*words, env=WIDE)
    assert (done.stdout, done.stderr) == (answer_of(talkspurt.load(both, study=True)), "")
    shards = []
    for n in (1, 2):
        shards.append(tmp_path / f"shard-{n}")
        words = ("run", folder / "study.toml", "--shard", f"{n}/2", "--quiet", "--out", shards[-1])
        done = succeed(*words)
        assert (done.stdout, done.stderr) == ("", "")
    words = ("merge", *shards, "--quiet", "--no-report", "--out", tmp_path / "whole")
    done = succeed(*words, env=WIDE)
    whole = talkspurt.load(tmp_path / "whole", study=True)
    assert (done.stdout, done.stderr) == (answer_of(whole), "")


def test_a_quiet_run_still_says_what_is_wrong(folder, tmp_path):
    line = told("run", folder / "small.toml", "--quiet", "--set", "links.nix.delay=1s")
    assert "nix" in line


@on_linux
def test_a_quiet_measurement_with_a_quiet_server(tmp_path):
    port = free_port()
    server = start("serve", "--quiet", "--listen", f"127.0.0.1:{port}", env=SECRET)
    try:
        until = time.monotonic() + 20
        while time.monotonic() < until:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
        words = ("measure", "--quiet", f"127.0.0.1:{port}", "--for", "1s", "--out", tmp_path / "m")
        done = command(*words, "--no-report", env=SECRET)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert (talkspurt.load(tmp_path / "m").flows["received_packets"] > 0).all()
    finally:
        server.terminate()
        said, complained = server.communicate(timeout=20)
    assert said == ""
    assert "refused" not in complained


@on_linux
@real
def test_a_quiet_emulation_prints_what_its_commands_print(tmp_path):
    case = put(tmp_path / "case.toml", NETWORK)
    out = tmp_path / "out"
    words = ("--for", "1s", "--out", out, "--no-report", "--at", "laptop", "--", "echo", "here")
    done = command("emulate", case, "--quiet", *words)
    assert (done.returncode, done.stdout, done.stderr) == (0, "here\n", "")
    assert talkspurt.load(out).manifest["real_time"]["commands"][0]["status"] == 0
