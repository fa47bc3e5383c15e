"""`--quiet` of the commands in real time: nothing but errors, and the same results."""

import contextlib
import socket
import sys
import time

import pytest

import talkspurt
from command import start
from command import talkspurt as command
from ports import free_port
from test_emulate import NETWORK, real
from test_measure import SECRET
from texts import put

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="real time needs Linux")


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


@real
def test_a_quiet_emulation_prints_what_its_commands_print(tmp_path):
    case = put(tmp_path / "case.toml", NETWORK)
    out = tmp_path / "out"
    words = ("--for", "1s", "--out", out, "--no-report", "--at", "laptop", "--", "echo", "here")
    done = command("emulate", case, "--quiet", *words)
    assert (done.returncode, done.stdout, done.stderr) == (0, "here\n", "")
    assert talkspurt.load(out).manifest["real_time"]["commands"][0]["status"] == 0
