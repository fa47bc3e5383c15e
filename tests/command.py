"""The command line run as a user runs it: in a process of its own."""

import os
import re
import shutil
import subprocess
import sys
import time

import pytest


def needs(program, package, variable):
    """Skip a test whose program is missing, unless ``TALKSPURT_REQUIRE_<variable>`` is set."""
    required = os.environ.get(f"TALKSPURT_REQUIRE_{variable}")
    missing = shutil.which(program) is None and not required
    return pytest.mark.skipif(missing, reason=f"{program} is not installed (Debian: {package})")


needs_ns = needs("ns", "ns2", "NS2")
needs_tshark = needs("tshark", "tshark", "TSHARK")


def talkspurt(*words, cwd=None, env=None, **more):
    """Run ``talkspurt WORDS`` and wait for it."""
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "talkspurt",
            *(w if isinstance(w, bytes) else str(w) for w in words),
        ],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **more,
    )


def until(there, process=None, within=60.0):
    """Wait until something is true: at most so many seconds, and while a process runs."""
    end = time.monotonic() + within
    while not there():
        assert process is None or process.poll() is None, "the process ended before"
        assert time.monotonic() < end, "it does not come true"
        time.sleep(0.01)


def until_said(process, percent):
    """Wait until a command that has no terminal says that so much of its time has passed."""
    passed = 0.0
    while passed < percent:
        line = process.stderr.readline()
        said = re.search(r": +(\d+)%", line)
        assert said, line + process.stderr.read()
        passed = float(said[1])


def start(*words, cwd=None, stderr=subprocess.PIPE, **more):
    """Start ``talkspurt WORDS`` and do not wait."""
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "talkspurt",
            *(w if isinstance(w, bytes) else str(w) for w in words),
        ],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        **more,
    )
